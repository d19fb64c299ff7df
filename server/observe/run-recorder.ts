/** Gathers the facts of one run for the log and the metrics, and hands what happens on to its spans. */

import { toApiError } from "../protocol/errors.ts";
import {
  type DoneEvent,
  type ErrorEvent,
  isTerminal,
  type StreamEvent,
  type ToolResultEvent,
} from "../protocol/events.ts";
import type { ToolCall } from "../providers/provider.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import type {
  ModelRequestObserver,
  ModelRequestOutcome,
  ObserveRun,
  RunEntry,
  RunObserver,
  RunStart,
  StepEntry,
  ToolOutcome,
} from "./run-observer.ts";
import type { RunSpans, Tracing } from "./tracing.ts";

export interface RunRecorderParts {
  /** The agent's model string. */
  readonly model: string;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Every run is recorded for the log and the metrics, and traced where an SDK takes spans. */
export function observeRuns(parts: RunRecorderParts, tracing?: Tracing): ObserveRun {
  return (start) => new RunRecorder(start, parts, tracing?.observe(start));
}

class RunRecorder implements RunObserver {
  readonly #start: RunStart;
  readonly #log: Log;
  readonly #metrics: Metrics;
  readonly #spans: RunSpans | undefined;
  readonly #startedAt = performance.now();
  readonly #tools: StepEntry[] = [];
  #model: string;
  #turns = 0;
  #toolCalls = 0;
  #firstTokenMs: number | undefined;
  #last: DoneEvent | ErrorEvent | undefined;
  #providerRequestId: string | undefined;

  constructor(start: RunStart, { model, log, metrics }: RunRecorderParts, spans: RunSpans | undefined) {
    this.#start = start;
    this.#spans = spans;
    this.#model = model;
    this.#log = log;
    this.#metrics = metrics;
    metrics.runStarted();
  }

  events(batch: readonly StreamEvent[]): void {
    for (const event of batch) {
      if (event.type === "token" || event.type === "thinking") this.#firstTokenMs ??= this.#elapsedMs();
      else if (event.type === "tool_call") this.#toolCalls += 1;
      else if (event.type === "tool_result") this.#recordTool(event);
      else if (isTerminal(event)) this.#last = event;
    }
  }

  modelRequest(): ModelRequestObserver {
    this.#turns += 1;
    const startedAt = performance.now();
    const span = this.#spans?.modelRequest();
    return {
      answered: (providerRequestId) => {
        this.#providerRequestId = providerRequestId;
        span?.answered(providerRequestId);
      },
      failedOver: (report) => this.failure(report),
      end: (outcome) => {
        if (outcome.type === "finished") this.#model = outcome.model ?? this.#model;
        const ms = Math.round(performance.now() - startedAt);
        this.#recordStep({ start: this.#start, kind: "model", name: this.#model, outcome: nameOf(outcome), ms });
        span?.end(outcome);
      },
    };
  }

  /** The log gets all that it needs from the `tool_result`. */
  tool<Outcome extends ToolOutcome>(call: ToolCall, work: () => Promise<Outcome>): Promise<Outcome> {
    return this.#spans === undefined ? work() : this.#spans.tool(call, work);
  }

  failure(error: unknown): void {
    this.#log.failure(error, this.#start);
  }

  end(): void {
    const last = this.#last;
    this.#spans?.end(last);
    const usage = last?.type === "done" ? last.usage : undefined;
    const entry: RunEntry = {
      start: this.#start,
      model: this.#model,
      end: last === undefined ? "gone" : last.type === "done" ? last.finish_reason : last.code,
      failed: last?.type === "error",
      inputTokens: usage?.input_tokens,
      outputTokens: usage?.output_tokens,
      ms: this.#elapsedMs(),
      queueMs: Math.round(this.#startedAt - this.#start.askedAt),
      firstTokenMs: this.#firstTokenMs,
      turns: this.#turns,
      toolCalls: this.#toolCalls,
      tools: this.#tools,
      providerRequestId: this.#providerRequestId,
    };
    this.#log.run(entry);
    this.#metrics.run(entry);
  }

  #elapsedMs(): number {
    return Math.round(performance.now() - this.#start.askedAt);
  }

  #recordTool({ data }: ToolResultEvent): void {
    const { tool: name, status: outcome, duration_ms: ms } = data;
    const entry: StepEntry = { start: this.#start, kind: "tool", name, outcome, ms };
    this.#tools.push(entry);
    this.#recordStep(entry);
  }

  #recordStep(entry: StepEntry): void {
    this.#log.step(entry);
    this.#metrics.step(entry);
  }
}

function nameOf(outcome: ModelRequestOutcome): string {
  switch (outcome.type) {
    case "finished":
      return outcome.finish;
    case "failed":
      return toApiError(outcome.error).code;
    case "aborted":
      return "aborted";
  }
}
