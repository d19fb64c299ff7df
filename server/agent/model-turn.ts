import type { Usage } from "../protocol/chat.ts";
import type { StreamEvent } from "../protocol/events.ts";
import { ProviderError } from "../providers/failures/provider-error.ts";
import { GrowingText } from "../providers/growing-text.ts";
import type { ProviderEvent, ToolCall, TurnFinish } from "../providers/provider.ts";
import { HostedCalls } from "./hosted-calls.ts";
import type { TurnWatch } from "./run-watch.ts";
import type { Progress, Runner } from "./runner.ts";

/** One model request: what it says to clients, and what it comes to. */
export class ModelTurn {
  readonly #progress: Progress;
  readonly #watch: TurnWatch;
  readonly #hosted: HostedCalls;
  readonly #calls: ToolCall[] = [];
  readonly #said = new GrowingText();
  #finish: TurnFinish | undefined;

  /** What the run has come to stands in its progress once this is closed. */
  constructor({ toolLimits }: Runner, progress: Progress, watch: TurnWatch) {
    this.#progress = progress;
    this.#watch = watch;
    this.#hosted = new HostedCalls(toolLimits.maxOutputChars);
  }

  /** All text of the turn. */
  get said(): string {
    return this.#said.text;
  }

  /** The tools that the model wants to be run. */
  get calls(): readonly ToolCall[] {
    return this.#calls;
  }

  /** Why the turn ended; `undefined` until it has. */
  get finish(): TurnFinish | undefined {
    return this.#finish;
  }

  /** Takes the next events of the conversation, and returns what clients are told of them. */
  take(events: readonly ProviderEvent[]): StreamEvent[] {
    const told: StreamEvent[] = [];
    for (const event of events) {
      switch (event.type) {
        case "text":
          this.#said.add(event.delta);
          told.push({ type: "token", data: event.delta });
          break;
        case "thinking":
          told.push({ type: "thinking", data: event.delta });
          break;
        case "call":
          this.#calls.push(event.call);
          break;
        case "hosted_call":
          told.push(this.#hosted.begin(event.call));
          break;
        case "hosted_result":
          told.push(this.#hosted.end(event.answer, event.durationMs));
          break;
        case "failover":
          this.#watch.failedOver(event.report);
          break;
        case "end":
          told.push(...this.#hosted.giveUp());
          this.#progress.model = event.model;
          this.#progress.usage = addUsage(this.#progress.usage, event.usage);
          this.#finish = event.finish;
          this.#watch.end(event.finish, event.usage, event.model);
          return told;
      }
    }
    return told;
  }

  /** For a turn that failed: whoever saw a call begin must see how it ended. */
  fail(error: unknown): StreamEvent[] {
    this.#watch.failed(error);
    return this.#hosted.giveUp();
  }

  /** Must be called in the end, whatever happened before. A turn that says nothing leaves what the one before said. */
  close(): void {
    if (this.#said.length > 0) {
      this.#progress.said = this.said;
      this.#progress.unfinished = this.#finish === undefined ? this.said : "";
    }
    this.#watch.close();
  }

  /** What ended a turn that has no end: an abort after which the provider ended quietly, or a cut line. */
  broken(signal: AbortSignal): unknown {
    if (signal.aborted) return signal.reason;
    return new ProviderError("provider_truncated", "The model's answer broke off. Please try again.");
  }
}

function addUsage(sum: Usage | undefined, more: Usage | undefined): Usage | undefined {
  if (sum === undefined || more === undefined) return sum ?? more;
  return {
    input_tokens: sum.input_tokens + more.input_tokens,
    output_tokens: sum.output_tokens + more.output_tokens,
  };
}
