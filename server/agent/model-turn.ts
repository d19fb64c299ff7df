/** One model request: makes events for clients and entries of the record from what the model says. */

import type { ModelRequestObserver, RecordedUsage, RunEvent } from "../observe/run-observer.ts";
import { ApiError } from "../protocol/errors.ts";
import { type StreamEvent, unreachable } from "../protocol/events.ts";
import { textContent } from "../providers/history.ts";
import type { ModelEvent, ModelSetup, ToolAnswer, ToolCall } from "../providers/provider.ts";
import type { Entry, Exchange } from "./exchange.ts";
import type { Sources } from "./sources.ts";
import { cutContent, toolCallEvent, toolResultEvent } from "./tool-events.ts";

export class ModelTurn {
  readonly #exchange: Exchange;
  readonly #observer: ModelRequestObserver;
  readonly #setup: ModelSetup;
  readonly #maxOutputChars: number;
  /** Index of this turn among the entries. */
  readonly #from: number;
  /** Tokens of the conversation after the previous turn; 0 if they were not counted. */
  readonly #knownTokens: number;
  /** Characters of the model's text, thinking and arguments of calls. */
  #chars = 0;
  #isOver = false;
  /** Calls of tools that run elsewhere and that have no result yet, and when each began. */
  readonly #hosted = new Map<string, HostedCall>();

  constructor(exchange: Exchange, observer: ModelRequestObserver, setup: ModelSetup, maxOutputChars: number) {
    const { input_tokens: input = 0, output_tokens: output = 0 } = exchange.turn.usage ?? {};
    this.#exchange = exchange;
    this.#observer = observer;
    this.#setup = setup;
    this.#maxOutputChars = maxOutputChars;
    this.#knownTokens = input + output;
    exchange.begin();
    this.#from = exchange.entries.length - 1;
  }

  /** Records what the model said, and returns the events for clients. Without `sources`, sources are dropped. */
  read(batch: readonly ModelEvent[], sources?: Sources): RunEvent[] {
    const exchange = this.#exchange;
    const events: RunEvent[] = [];
    for (const event of batch) {
      switch (event.type) {
        case "text":
          this.#chars += event.delta.length;
          exchange.say(event.delta);
          events.push({ type: "token", data: event.delta });
          break;
        case "thinking":
          this.#chars += event.delta.length;
          events.push({ type: "thinking", data: event.delta });
          break;
        case "text_was_thinking":
          events.push({ type: "unsaid", data: exchange.unsay() });
          sources?.withdraw(exchange);
          break;
        case "source":
          events.push(...(sources?.found(event.source, exchange) ?? []));
          break;
        case "text_begins_anew":
          exchange.beginAnew();
          break;
        case "call":
          this.#chars += event.call.arguments.length;
          exchange.turn.calls.push(event.call);
          break;
        case "hosted_call":
          events.push(this.#hostedCall(event));
          break;
        case "hosted_result":
          events.push(...this.#hostedResult(event));
          break;
        case "progress":
          events.push({ type: "tool_progress", data: { id: event.id, text: event.text } });
          break;
        case "approval":
          events.push(...this.#endHosted(event.asked.call.id));
          this.#hosted.delete(event.asked.call.id);
          exchange.ask(event.asked);
          break;
        case "report":
          this.#observer.report(event.report);
          break;
        case "model":
          exchange.turn.model = event.model;
          break;
        case "usage":
          exchange.turn.usage = event.usage;
          break;
        case "end":
          events.push(...this.#endHosted());
          exchange.end({ finish: event.finish, usage: event.usage });
          break;
        default:
          unreachable(event);
      }
    }
    return events;
  }

  /** Records hosted calls and their results in a batch that came after the abort. No client gets events of it. */
  readDone(batch: readonly ModelEvent[]): void {
    for (const event of batch) {
      if ("parent" in event) continue;
      if (event.type === "hosted_call") this.#exchange.call(event.call);
      if (event.type === "hosted_result" && !event.isOpen) this.#exchange.callEnded(this.#cut(event.answer));
    }
  }

  /** Ends the turn after the model's answer. @throws ApiError if the answer broke off, or the reason of an abort */
  complete(signal: AbortSignal): void {
    const { finish, usage, model } = this.#exchange.turn;
    if (finish === undefined) {
      signal.throwIfAborted();
      // The providers' readers detect answers that broke off, so only a bug in a provider's code leads here.
      const detail = "The provider's code ended the answer without an `end` event.";
      throw new ApiError("provider_truncated", "The answer broke off before its end. Please try again.", { detail });
    }
    this.#isOver = true;
    this.#observer.end({ type: "finished", finish, usage, model });
  }

  /** Returns failed results for the hosted calls that are still open. Does nothing if the turn has ended. */
  fail(error: unknown, signal: AbortSignal): StreamEvent[] {
    if (this.#isOver) return [];
    this.#isOver = true;
    const { model } = this.#exchange.turn;
    // A request that was refused costs nothing.
    const isEstimated = signal.aborted || this.#chars > 0;
    const spent = { usage: isEstimated ? this.#guessUsage() : this.#exchange.turn.usage, model };
    this.#observer.end(signal.aborted ? { type: "aborted", ...spent } : { type: "failed", error, ...spent });
    return this.#endHosted();
  }

  /** Tokens of the request so far: as counted, or else estimated from the characters that were sent and received. */
  #guessUsage(): RecordedUsage {
    const { entries, start, turn } = this.#exchange;
    const { state, history, message } = start;
    const sent = [this.#setup, state, history, message, entries.slice(0, this.#from).map(wordsOf)];
    const { input_tokens = Math.max(tokensIn(charsIn(sent)), this.#knownTokens), output_tokens = 0 } = turn.usage ?? {};
    return {
      ...turn.usage,
      input_tokens,
      output_tokens: Math.max(tokensIn(this.#chars), output_tokens),
      estimated: true,
    };
  }

  #hostedCall({ call, parent }: Extract<ModelEvent, { type: "hosted_call" }>): StreamEvent {
    this.#chars += call.arguments.length;
    if (parent === undefined) this.#exchange.call(call);
    this.#hosted.set(call.id, { call, parent, startedAt: performance.now() });
    return toolCallEvent(call, { parent });
  }

  /** Ends the steps of a call before the call. */
  #hostedResult({ answer, durationMs, isOpen }: Extract<ModelEvent, { type: "hosted_result" }>): StreamEvent[] {
    const cut = this.#cut(answer);
    const isStep = this.#hosted.get(answer.id)?.parent !== undefined;
    if (!isOpen && !isStep) this.#exchange.callEnded(cut);
    return [...this.#endHosted(answer.id), this.#resultEvent(cut, durationMs)];
  }

  #cut(answer: ToolAnswer): ToolAnswer {
    return { ...answer, content: cutContent(answer.content, this.#maxOutputChars) };
  }

  #resultEvent(answer: ToolAnswer, durationMs: number): StreamEvent {
    const parent = this.#hosted.get(answer.id)?.parent;
    this.#hosted.delete(answer.id);
    return toolResultEvent({ answer, durationMs, parent });
  }

  /** Failed results for what has none: the steps of the call `of`, or all calls. */
  #endHosted(of?: string): StreamEvent[] {
    const open = [...this.#hosted.values()].filter(({ parent }) => parent === of);
    return open.flatMap(({ call: { id, name }, startedAt }) => {
      const answer = { id, name, content: textContent("It was not finished."), failed: true };
      return [...this.#endHosted(id), this.#resultEvent(answer, Math.round(performance.now() - startedAt))];
    });
  }
}

interface HostedCall {
  readonly call: ToolCall;
  /** Id of the call that this one is a step of. */
  readonly parent: string | undefined;
  readonly startedAt: number;
}

const CHARS_PER_TOKEN = 4;

function tokensIn(chars: number): number {
  return Math.ceil(chars / CHARS_PER_TOKEN);
}

function wordsOf(entry: Entry): unknown {
  if (entry.type === "result") return entry.answer.content;
  return entry.type === "turn" && (entry.kept ?? [entry.text.toString(), entry.calls]);
}

/** Characters of all texts in a value, without files. */
function charsIn(value: unknown): number {
  if (typeof value === "string") return value.startsWith("data:") ? 0 : value.length;
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce((sum: number, one) => sum + charsIn(one), 0);
}
