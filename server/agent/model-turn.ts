import type { ModelRequestObserver } from "../observe/run-observer.ts";
import type { Usage } from "../protocol/chat.ts";
import { ApiError } from "../protocol/errors.ts";
import { type StreamEvent, unreachable } from "../protocol/events.ts";
import type { ModelEvent, ToolAnswer, ToolCall, TurnFinish } from "../providers/provider.ts";
import { cutOutput, toolCallEvent, toolResultEvent } from "./tools.ts";

/** One model request: what clients get of it, and what it comes to. */
export class ModelTurn {
  /** All text so far. */
  text = "";
  /** The tools that the model wants to be carried out. */
  readonly calls: ToolCall[] = [];
  /** `undefined` until the model has ended the turn. */
  finish: TurnFinish | undefined;
  usage: Usage | undefined;
  /** The model string of the model that answered, where the agent has several. */
  model: string | undefined;
  readonly #observer: ModelRequestObserver;
  readonly #maxOutputChars: number;
  /** Calls of tools that the provider runs itself and that have no result yet, and when each began. */
  readonly #hosted = new Map<string, { call: ToolCall; startedAt: number }>();

  constructor(observer: ModelRequestObserver, maxOutputChars: number) {
    this.#observer = observer;
    this.#maxOutputChars = maxOutputChars;
  }

  /** Takes what the model said, and returns the events that clients get of it. */
  read(batch: readonly ModelEvent[]): StreamEvent[] {
    const events: StreamEvent[] = [];
    for (const event of batch) {
      switch (event.type) {
        case "text":
          this.text += event.delta;
          events.push({ type: "token", data: event.delta });
          break;
        case "thinking":
          events.push({ type: "thinking", data: event.delta });
          break;
        case "call":
          this.calls.push(event.call);
          break;
        case "hosted_call":
          this.#hosted.set(event.call.id, { call: event.call, startedAt: performance.now() });
          events.push(toolCallEvent(event.call));
          break;
        case "hosted_result":
          events.push(this.#hostedResult(event.answer, event.durationMs));
          break;
        case "failover":
          this.#observer.failedOver(event.report);
          break;
        case "end":
          events.push(...this.#endHosted());
          this.finish = event.finish;
          this.usage = event.usage;
          this.model = event.model;
          break;
        default:
          unreachable(event);
      }
    }
    return events;
  }

  /** The model's answer is over. @throws ApiError if it broke off, or the reason of an abort */
  complete(signal: AbortSignal): TurnFinish {
    if (this.finish === undefined) {
      signal.throwIfAborted();
      // The readers of the providers find answers that broke off: only a fault of a provider's code leads here.
      const detail = "The provider's code ended the answer without an `end` event.";
      throw new ApiError("provider_truncated", "The answer broke off before its end. Please try again.", { detail });
    }
    const { finish, usage, model } = this;
    this.#observer.end({ type: "finished", finish, usage, model });
    return finish;
  }

  /** Returns results for the hosted calls that clients have seen begin. */
  fail(error: unknown, signal: AbortSignal): StreamEvent[] {
    this.#observer.end(signal.aborted ? { type: "aborted" } : { type: "failed", error });
    return this.#endHosted();
  }

  #hostedResult(answer: ToolAnswer, durationMs: number): StreamEvent {
    this.#hosted.delete(answer.id);
    const output = cutOutput(answer.output, this.#maxOutputChars);
    return toolResultEvent({ answer: { ...answer, output }, durationMs });
  }

  #endHosted(): StreamEvent[] {
    return [...this.#hosted.values()].map(({ call: { id, name }, startedAt }) => {
      const answer = { id, name, output: "It was not finished.", failed: true };
      return this.#hostedResult(answer, Math.round(performance.now() - startedAt));
    });
  }
}
