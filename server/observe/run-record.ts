import type { RunTransport, RunWatch, ToolOutcome, TurnWatch } from "../agent/run-watch.ts";
import type { KeyKind } from "../http/caller.ts";
import { toApiError } from "../protocol/api-error.ts";
import type { DoneEvent, ErrorEvent, StreamEvent } from "../protocol/events.ts";
import type { RunEntry, StepEntry } from "./entries.ts";

/** What is known of a run before it begins. */
export interface RunAbout {
  readonly runId: string;
  readonly requestId: string;
  readonly model: string;
  readonly transport: RunTransport;
  readonly key: KeyKind | "none";
  /** When its message was there, as `performance.now()`. */
  readonly askedAt: number;
}

/** Takes what a record has gathered. */
export interface RunSink {
  run(entry: RunEntry): void;
  step(entry: StepEntry): void;
  failure(error: unknown, of: Pick<RunEntry, "requestId" | "runId">): void;
}

/** Gathers what happens in one run, which begins now, and hands it over at the end. */
export class RunRecord implements RunWatch {
  readonly #about: RunAbout;
  readonly #sink: RunSink;
  readonly #startedAt = performance.now();
  #firstTokenMs: number | undefined;
  #model: string;
  #turns = 0;
  #tools = 0;
  #last: DoneEvent | ErrorEvent | undefined;
  #providerRequestId: string | undefined;
  #over = false;

  constructor(about: RunAbout, sink: RunSink) {
    this.#about = about;
    this.#model = about.model;
    this.#sink = sink;
  }

  event(event: StreamEvent): void {
    switch (event.type) {
      case "token":
      case "thinking":
        this.#firstTokenMs ??= this.#elapsed();
        break;
      case "tool_call":
        this.#tools++;
        break;
      case "tool_result":
        this.#step("tool", event.data.tool, event.data.status, event.data.duration_ms);
        break;
      case "done":
      case "error":
        this.#last = event;
    }
  }

  turn(): TurnWatch {
    this.#turns++;
    const start = performance.now();
    let outcome: string | undefined;
    return {
      answered: (requestId) => {
        this.#providerRequestId = requestId;
      },
      failedOver: (report) => this.failure(report),
      end: (finish, _usage, model) => {
        outcome = finish;
        this.#model = model ?? this.#model;
      },
      failed: (error) => {
        outcome = toApiError(error).code;
      },
      close: () => {
        const ms = Math.round(performance.now() - start);
        this.#step("model", this.#model, outcome ?? "aborted", ms);
      },
    };
  }

  /** Its `tool_result` says what there is to say. */
  tool<Outcome extends ToolOutcome>(_call: unknown, work: () => Promise<Outcome>): Promise<Outcome> {
    return work();
  }

  failure(error: unknown): void {
    this.#sink.failure(error, this.#about);
  }

  end(): void {
    if (this.#over) return;
    this.#over = true;
    // Spelled out: the rest of an object is another one, which V8 is slow to make.
    const { runId, requestId, transport, key, askedAt } = this.#about;
    const last = this.#last;
    const usage = last?.type === "done" ? last.usage : undefined;
    this.#sink.run({
      runId,
      requestId,
      transport,
      key,
      model: this.#model,
      end: last === undefined ? "gone" : last.type === "done" ? last.finish_reason : last.code,
      failed: last?.type === "error",
      inputTokens: usage?.input_tokens,
      outputTokens: usage?.output_tokens,
      ms: this.#elapsed(),
      queueMs: Math.round(this.#startedAt - askedAt),
      firstTokenMs: this.#firstTokenMs,
      turns: this.#turns,
      tools: this.#tools,
      providerRequestId: this.#providerRequestId,
    });
  }

  #elapsed(): number {
    return Math.round(performance.now() - this.#about.askedAt);
  }

  #step(kind: StepEntry["kind"], name: string, outcome: string, ms: number): void {
    const { requestId, runId } = this.#about;
    this.#sink.step({ requestId, runId, kind, name, outcome, ms });
  }
}
