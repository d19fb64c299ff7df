/** Collects the facts of each run for the sinks, such as the log, the metrics and the traces. */

import { toApiError } from "../protocol/errors.ts";
import {
  type DoneEvent,
  type ErrorEvent,
  isTerminal,
  type ToolCallEvent,
  type ToolResultEvent,
} from "../protocol/events.ts";
import type { ToolCall } from "../providers/provider.ts";
import { addUsage } from "../providers/usage.ts";
import type {
  Decision,
  ModelRequestObserver,
  ModelRequestOutcome,
  ObserveRun,
  OpenCall,
  PricedRequest,
  RunEntry,
  RunEvent,
  RunningCall,
  RunObserver,
  RunSink,
  RunSpans,
  RunStart,
  RunWords,
  StepEntry,
  ToolOutcome,
} from "./run-observer.ts";

/** Every run is recorded for each of the sinks. */
export function observeRuns(sinks: readonly RunSink[]): ObserveRun {
  return (start, own) => new RunRecorder(start, own === undefined ? sinks : [...sinks, own]);
}

class RunRecorder implements RunObserver {
  readonly #start: RunStart;
  readonly #sinks: readonly RunSink[];
  readonly #spans: readonly RunSpans[];
  readonly #startedAt = performance.now();
  readonly #tools: StepEntry[] = [];
  /** Calls that have no result yet: what they were called with, and what the tool threw. */
  readonly #calls = new Map<string, Pick<OpenCall, "name" | "arguments" | "parent"> & { thrown?: unknown }>();
  /** Calls that the user has decided on. */
  readonly #decided = new Map<string, { arguments: string; decision: Decision }>();
  #model: string;
  #turns = 0;
  #toolCalls = 0;
  #firstTokenMs: number | undefined;
  #last: DoneEvent | ErrorEvent | undefined;
  #providerRequestId: string | undefined;
  /** The tokens of each model request. */
  readonly #requests: PricedRequest[] = [];

  constructor(start: RunStart, sinks: readonly RunSink[]) {
    this.#start = start;
    this.#sinks = sinks;
    this.#model = start.model;
    this.#spans = sinks.flatMap((sink) => this.#safely(() => sink.begin?.(start)) ?? []);
  }

  events(batch: readonly RunEvent[]): void {
    for (const said of batch) {
      const event = said.type === "hidden" ? said.event : said;
      if (event.type === "token" || event.type === "thinking") {
        this.#firstTokenMs ??= this.#elapsedMs();
      } else if (event.type === "tool_call") this.#beginTool(event);
      else if (event.type === "tool_result") this.#recordTool(event);
      else if (event.type === "tool_approval" && this.#calls.delete(event.data.id)) this.#toolCalls -= 1;
      else if (isTerminal(event)) this.#last = event;
    }
  }

  modelRequest(): ModelRequestObserver {
    this.#turns += 1;
    const startedAt = performance.now();
    const spans = this.#spans.flatMap((one) => this.#safely(() => one.modelRequest?.()) ?? []);
    const turn = this.#turns;
    let attempts = 0;
    const [sending] = this.#sinks.flatMap((sink) => sink.sending?.bind(sink) ?? []);
    return {
      sending: sending && (({ id, model }) => sending(this.#start, { turn, attempt: ++attempts, id, model })),
      answered: (providerRequestId) => {
        this.#providerRequestId = providerRequestId;
        for (const span of spans) this.#safely(() => span.answered(providerRequestId));
      },
      report: (report) => this.failure(report),
      end: (outcome) => {
        const { usage, model = this.#model } = outcome;
        if (outcome.type === "finished") this.#model = model;
        const request = { model, usage };
        if (outcome.type === "finished" || usage !== undefined) this.#requests.push(request);
        const ms = Math.round(performance.now() - startedAt);
        const spent = { usage, cost: this.#start.costOf?.([request]) };
        this.#recordStep({ start: this.#start, kind: "model", name: model, outcome: nameOf(outcome), ms, ...spent });
        for (const span of spans) this.#safely(() => span.end(outcome));
      },
    };
  }

  /** The sinks get everything else from the `tool_result`. */
  async tool<Outcome extends ToolOutcome>(call: RunningCall, work: () => Promise<Outcome>): Promise<Outcome> {
    let begun: Promise<Outcome> | undefined;
    const once = () => {
      begun ??= work();
      return begun;
    };
    const traced = this.#spans.reduce((inner, spans) => () => spans.tool(call, inner), once);
    const outcome = await traced().catch((error: unknown) => {
      this.failure(error);
      return once();
    });
    const known = this.#calls.get(call.id);
    if (known !== undefined) known.thrown = outcome.thrown;
    return outcome;
  }

  approval({ id, name, arguments: args }: ToolCall, decision: Decision): void {
    this.#decided.set(id, { arguments: args, decision });
    for (const sink of this.#sinks) this.#safely(() => sink.approval?.(name, decision, this.#start));
  }

  failure(error: unknown): void {
    for (const sink of this.#sinks) {
      try {
        sink.failure?.(error, this.#start);
      } catch {
        // No other sink is there to report it to.
      }
    }
  }

  end(words: RunWords): void {
    const last = this.#last;
    for (const spans of this.#spans) this.#safely(() => spans.end?.(last));
    const entry: RunEntry = {
      start: this.#start,
      model: this.#model,
      end: last === undefined ? "gone" : last.type === "done" ? last.finish_reason : last.code,
      failed: last?.type === "error",
      last,
      ...words,
      usage: this.#requests.map(({ usage }) => usage).reduce(addUsage, undefined),
      cost: this.#start.costOf?.(this.#requests),
      ms: this.#elapsedMs(),
      queueMs: Math.round(this.#startedAt - this.#start.askedAt),
      firstTokenMs: this.#firstTokenMs,
      turns: this.#turns,
      toolCalls: this.#toolCalls,
      tools: this.#tools,
      openCalls: [...this.#calls].map(([id, { name, arguments: args, parent }]) => {
        return { id, name, arguments: args, parent, decision: this.#decided.get(id)?.decision };
      }),
      providerRequestId: this.#providerRequestId,
    };
    for (const sink of this.#sinks) this.#safely(() => sink.run?.(entry));
  }

  /** If a sink throws, such as a tracer of another package, the run and the other sinks go on. */
  #safely<Value>(report: () => Value): Value | undefined {
    try {
      return report();
    } catch (error) {
      this.failure(error);
      return undefined;
    }
  }

  #elapsedMs(): number {
    return Math.round(performance.now() - this.#start.askedAt);
  }

  #beginTool({ data }: ToolCallEvent): void {
    if (data.parent === undefined) this.#toolCalls += 1;
    const { id, tool: name, arguments: args, parent } = data;
    this.#calls.set(id, { name, arguments: args, parent });
  }

  #recordTool({ data }: ToolResultEvent): void {
    const { id, tool: name, status: outcome, duration_ms: ms, output, parent } = data;
    const begun = { ...this.#decided.get(id), ...this.#calls.get(id) };
    const entry: StepEntry = { ...begun, start: this.#start, kind: "tool", id, parent, name, outcome, ms, output };
    this.#calls.delete(id);
    this.#tools.push(entry);
    // A declined call did not run, so it has no duration.
    if (data.declined !== true) this.#recordStep(entry);
  }

  #recordStep(entry: StepEntry): void {
    for (const sink of this.#sinks) this.#safely(() => sink.step?.(entry));
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
