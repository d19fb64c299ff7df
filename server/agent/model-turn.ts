/** One model request: what clients get of it, and what goes into the record. */

import type { ModelRequestObserver } from "../observe/run-observer.ts";
import { ApiError } from "../protocol/errors.ts";
import { type StreamEvent, unreachable } from "../protocol/events.ts";
import { textContent } from "../providers/history.ts";
import type { ModelEvent, ToolAnswer, ToolCall } from "../providers/provider.ts";
import type { Exchange } from "./exchange.ts";
import { cutContent, toolCallEvent, toolResultEvent } from "./tools.ts";

export class ModelTurn {
  readonly #exchange: Exchange;
  readonly #observer: ModelRequestObserver;
  readonly #maxOutputChars: number;
  /** Calls of tools that run elsewhere and that have no result yet, and when each began. */
  readonly #hosted = new Map<string, { call: ToolCall; startedAt: number }>();

  constructor(exchange: Exchange, observer: ModelRequestObserver, maxOutputChars: number) {
    this.#exchange = exchange;
    this.#observer = observer;
    this.#maxOutputChars = maxOutputChars;
    exchange.begin();
  }

  /** Takes what the model said, and returns the events that clients get of it. */
  read(batch: readonly ModelEvent[]): StreamEvent[] {
    const exchange = this.#exchange;
    const events: StreamEvent[] = [];
    for (const event of batch) {
      switch (event.type) {
        case "text":
          exchange.say(event.delta);
          events.push({ type: "token", data: event.delta });
          break;
        case "thinking":
          events.push({ type: "thinking", data: event.delta });
          break;
        case "text_was_thinking":
          events.push({ type: "thinking", data: exchange.unsay() });
          break;
        case "text_begins_anew":
          exchange.beginAnew();
          break;
        case "call":
          exchange.turn.calls.push(event.call);
          break;
        case "hosted_call":
          exchange.call(event.call);
          this.#hosted.set(event.call.id, { call: event.call, startedAt: performance.now() });
          events.push(toolCallEvent(event.call));
          break;
        case "hosted_result":
          events.push(this.#hostedResult(event));
          break;
        case "approval":
          this.#hosted.delete(event.asked.call.id);
          exchange.ask(event.asked);
          break;
        case "report":
          this.#observer.report(event.report);
          break;
        case "end":
          for (const ended of this.#endHosted()) events.push(ended);
          exchange.end({ finish: event.finish, usage: event.usage, model: event.model });
          break;
        default:
          unreachable(event);
      }
    }
    return events;
  }

  /** Keeps what was done, though the run is over and no client hears of it. */
  readDone(batch: readonly ModelEvent[]): void {
    for (const event of batch) {
      if (event.type === "hosted_call") this.#exchange.call(event.call);
      if (event.type === "hosted_result" && !event.isOpen) this.#exchange.callEnded(this.#cut(event.answer));
    }
  }

  /** The model's answer is over. @throws ApiError if it broke off, or the reason of an abort */
  complete(signal: AbortSignal): void {
    const { finish, usage, model } = this.#exchange.turn;
    if (finish === undefined) {
      signal.throwIfAborted();
      // The readers of the providers find answers that broke off: only a fault of a provider's code leads here.
      const detail = "The provider's code ended the answer without an `end` event.";
      throw new ApiError("provider_truncated", "The answer broke off before its end. Please try again.", { detail });
    }
    this.#observer.end({ type: "finished", finish, usage, model });
  }

  /** Returns results for the hosted calls that clients have seen begin. */
  fail(error: unknown, signal: AbortSignal): StreamEvent[] {
    this.#observer.end(signal.aborted ? { type: "aborted" } : { type: "failed", error });
    return this.#endHosted();
  }

  #hostedResult({ answer, durationMs, isOpen }: Extract<ModelEvent, { type: "hosted_result" }>): StreamEvent {
    const cut = this.#cut(answer);
    if (!isOpen) this.#exchange.callEnded(cut);
    return this.#resultEvent(cut, durationMs);
  }

  #cut(answer: ToolAnswer): ToolAnswer {
    return { ...answer, content: cutContent(answer.content, this.#maxOutputChars) };
  }

  #resultEvent(answer: ToolAnswer, durationMs: number): StreamEvent {
    this.#hosted.delete(answer.id);
    return toolResultEvent({ answer, durationMs });
  }

  #endHosted(): StreamEvent[] {
    return [...this.#hosted.values()].map(({ call: { id, name }, startedAt }) => {
      const answer = { id, name, content: textContent("It was not finished."), failed: true };
      return this.#resultEvent(answer, Math.round(performance.now() - startedAt));
    });
  }
}
