/** Serves an agent's own `run` in place of a model: each answer is one model request whose tools run elsewhere. */

import type { Exchange } from "../agent/exchange.ts";
import { decidedCalls, type RunContext } from "../agent/run-context.ts";
import {
  isAgentObject,
  type OwnRun,
  type RunAttachment,
  type RunInput,
  type TextMessage,
  wordsOfMessage,
} from "../agent/run-function.ts";
import type { AnswerSource } from "../agent/served-agent.ts";
import { isToolError } from "../agent/tool-definition.ts";
import { ToolTexts } from "../agent/tool-texts.ts";
import type { Settings } from "../config/settings.ts";
import { AgentNotice } from "../errors.ts";
import { ALL_MEDIA_TYPES, type ReceivedFile } from "../protocol/attachments.ts";
import type { DecidedCall, HistoryMessage } from "../protocol/chat.ts";
import { ApiError } from "../protocol/errors.ts";
import {
  toProviderError,
  UpstreamFailure,
  UpstreamGarbage,
  UpstreamRefusal,
  UpstreamTimeout,
  UpstreamTruncation,
} from "../providers/failures.ts";
import { endEvent, partsOf, textContent, textOf } from "../providers/history.ts";
import type { ModelEvent } from "../providers/provider.ts";
import { Answer, type ApprovedCall, failure, failureInWords, MAX_WORDS, messageOf } from "./answer.ts";
import { Items } from "./items.ts";
import { ItemReader } from "./shapes.ts";
import { callsBefore, lastState, stateOf } from "./states.ts";

interface HostedParts {
  readonly settings: Pick<
    Settings,
    "firstChunkSeconds" | "idleSeconds" | "maxToolOutputChars" | "maxToolCalls" | "maxJsonDepth"
  >;
  /** A sentence for the log. */
  notice(text: string): void;
}

type Parts = HostedParts & { onFramework(name: string): void };

const LABEL = "The agent";

/** States are signed and bound with this in place of a provider's id. */
const ID = "run";

export function hostedSource(own: OwnRun, parts: HostedParts): AnswerSource {
  let framework: string | undefined;
  const onFramework = (name: string) => {
    if (framework === undefined) parts.notice(`Recognised what the agent's run streams: ${name}.`);
    framework = name;
  };
  return {
    id: ID,
    label: LABEL,
    mediaTypes: ALL_MEDIA_TYPES,
    stateKind: "conversation_history",
    ask: (exchange, { context }) => new HostedAnswer(own, exchange, context, { ...parts, onFramework }).events(),
    stateOf,
    toolTexts: (...calling) => new ToolTexts(...calling),
  };
}

/** One answer. It calls `run` only once, because a second call could do something twice. */
class HostedAnswer {
  readonly #own: OwnRun;
  readonly #exchange: Exchange;
  readonly #context: RunContext;
  readonly #parts: Parts;
  readonly #answer: Answer;
  readonly #reader: ItemReader;
  /** Whether an item was emitted since the last check. */
  #hasEmitted = false;
  /** The first error from reading an item, emitted or yielded. */
  #failed: { error: unknown } | undefined;
  #items: Items | undefined;
  #isOver = false;
  #wake = (): void => {};

  constructor(own: OwnRun, exchange: Exchange, context: RunContext, parts: Parts) {
    this.#own = own;
    this.#exchange = exchange;
    this.#context = context;
    this.#parts = parts;
    this.#answer = new Answer(parts.settings, context);
    this.#reader = new ItemReader(this.#answer);
  }

  async *events(): AsyncGenerator<ModelEvent[]> {
    const { signal } = this.#context;
    const { run } = this.#own;
    const { firstChunkSeconds, idleSeconds } = this.#parts.settings;
    const limits = { firstChunkMs: firstChunkSeconds * 1000, idleMs: idleSeconds * 1000 };
    const input = this.#input();
    const answer = this.#answer;
    const sources: Record<string, unknown>[] = [];
    try {
      if (answer.beginApproved(this.#approved(input), callsBefore(this.#exchange))) yield answer.take();
      const items = new Items(typeof run === "function" && !isAgentObject(run) ? run(input) : run, {
        input,
        limits,
        sources,
        onStray: () => this.#parts.notice(STRAY),
      });
      this.#items = items;
      for (;;) {
        const pending = items.next(answer.isWorking);
        let hasYielded = false;
        const onYield = () => {
          hasYielded = true;
          this.#wake();
        };
        pending.then(onYield, onYield);
        while (!hasYielded && this.#failed === undefined) {
          await this.#news();
          answer.releaseDue();
          const said = answer.take();
          if (said.length > 0) yield said;
        }
        const next = this.#failed === undefined ? await pending : undefined;
        if (next !== undefined) this.#read(next.item);
        const events = answer.take();
        if (events.length > 0) yield events;
        if (this.#failed !== undefined) throw this.#failed.error;
        if (next === undefined) break;
      }
      yield await this.#end(sources, input, items);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (answer.release()) yield answer.take();
      throw this.#explain(error);
    } finally {
      this.#isOver = true;
      this.#items?.close();
      this.#items = undefined;
      this.#keepState();
      this.#exchange.agentState = answer.state;
      this.#exchange.turn.usage ??= answer.usage;
      // Calls that no client has been sent may have begun.
      if (this.#exchange.turn.finish === undefined && answer.release()) answer.take().forEach(this.#recordCall);
    }
  }

  #input(): RunInput {
    const { past, start } = this.#exchange;
    const { message, state } = start;
    const attachments = start.attachments.map(toBytes);
    const exchange = state.open?.messages ?? [];
    const asked = wordsOfMessage({ message, attachments });
    // Of the open exchange, only the first message is past; the rest is part of the answer.
    const texts = [...past, ...exchange.slice(0, 1)].flatMap(toText);
    return {
      message,
      messages: joinSpeakers([...texts, ...(asked === "" ? [] : [{ role: "user" as const, content: asked }])]),
      attachments,
      state: structuredClone(lastState([...past, ...exchange])),
      exchange: structuredClone(exchange),
      ctx: { ...this.#context, approvals: this.#decisions() },
      signal: this.#context.signal,
      emit: this.#emit,
    };
  }

  readonly #emit = (item: unknown): void => {
    if (this.#isOver) return;
    this.#hasEmitted = true;
    this.#read(item);
    this.#items?.heard();
    this.#wake();
  };

  /** Resolves when the agent has yielded or emitted an item, or when held events are due. */
  async #news(): Promise<void> {
    const { dueMs } = this.#answer;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      if (this.#hasEmitted) resolve();
      else if (dueMs !== undefined) timer = setTimeout(resolve, dueMs);
    });
    this.#hasEmitted = false;
    clearTimeout(timer);
  }

  /** The decisions. A message in their place declines all waiting calls, but answers those that ask for text. */
  #decisions(): readonly DecidedCall[] {
    const { approvals } = this.#context;
    if (approvals.length > 0) return approvals;
    const { message, state } = this.#exchange.start;
    const declined = this.#exchange.entries.flatMap((entry) => (entry.type === "result" ? [entry.answer] : []));
    const decided = (state.open?.waiting?.calls ?? []).map((call) => {
      const { shownId: id = call.id } = call;
      const refusal = declined.find((one) => one.id === call.id);
      if (refusal === undefined && call.question) return { id, approved: true, reason: message };
      return { id, approved: false, reason: `${textOf(refusal?.content ?? [])} They wrote: ${message}`.trim() };
    });
    return decidedCalls({ state, approvals: decided });
  }

  #approved({ ctx: { approvals } }: RunInput): ApprovedCall[] {
    const waiting = this.#exchange.start.state.open?.waiting?.calls ?? [];
    return waiting.flatMap((call) => {
      const decision = approvals.find(({ id }) => id === call.id);
      if (!decision?.approved) return [];
      return [{ ...call, arguments: decision.arguments ?? call.arguments, reason: decision.reason }];
    });
  }

  /** Reads an item. An error from that ends the answer. */
  #read(item: unknown): void {
    const reader = this.#reader;
    const { unknown: known } = reader;
    try {
      reader.read(item);
    } catch (error) {
      this.#failed ??= { error };
      return;
    }
    if (reader.unknown !== known) {
      this.#answer.notice(new AgentNotice(`The agent's run yielded what Parley does not know: ${reader.unknown}.`));
    }
    if (reader.framework !== undefined) this.#parts.onFramework(reader.framework);
  }

  async #end(sources: Record<string, unknown>[], input: RunInput, items: Items): Promise<ModelEvent[]> {
    const reader = this.#reader;
    reader.end(sources);
    this.#answer.keepChanging();
    // While other calls wait for a decision, held calls stay held: they begin only afterwards.
    if (this.#answer.asked.size === 0) this.#answer.release();
    else this.#exchange.keptOfAll = await items.within(this.#answer.keptOfAll(sources, input));
    const { finish, usage, asked } = this.#answer;
    // Open calls beside waiting ones may still begin after the decisions.
    if (asked.size === 0) this.#noticeOpenCalls(input);
    const events = this.#answer.take();
    // Items without text or calls, such as a state, suffice if all were known; after decisions, none are needed.
    if (!this.#hasBegun(events) && !(reader.hasKnown && reader.unknown === undefined)) throw noAnswer(reader.unknown);
    return [...events, ...(asked.size === 0 ? [] : this.#unknownResults(input)), endEvent(finish, usage)];
  }

  /** Interim results: some frameworks report an approved call's result only after the next question. It stays open. */
  #unknownResults(input: RunInput): ModelEvent[] {
    const approved = new Set(this.#approved(input).map(({ id }) => id));
    const calls = this.#answer.openCalls().filter(({ id }) => approved.has(id));
    return calls.map(({ id, name }) => {
      const answer = { id, name, content: textContent("Its result is not known yet."), failed: false };
      return { type: "hosted_result", answer, durationMs: 0, isOpen: true };
    });
  }

  /** Logs, for each call without a result (it is closed as failed), why that may be. */
  #noticeOpenCalls(input: RunInput): void {
    const approved = new Set(this.#approved(input).map(({ id }) => id));
    const hasDeclined = input.ctx.approvals.some((decision) => !decision.approved);
    for (const { id, name } of this.#answer.openCalls()) {
      const why = approved.has(id)
        ? `run has to give ctx.approvals to what asked for them${hasDeclined ? ", which may carry out none of its calls if one is declined" : ""}`
        : this.#reader.framework === "LangGraph"
          ? 'if it interrupts the graph, stream the mode "updates", too'
          : "run has ended before it";
      this.#answer.notice(new AgentNotice(`The call of "${name}" got no result: ${why}.`));
    }
  }

  /** For an answer that was cut off: a state that cannot be kept must not hide the reason. */
  #keepState(): void {
    try {
      this.#answer.keepChanging();
    } catch (error) {
      this.#parts.notice(
        `The agent's state was not kept: ${error instanceof ApiError ? error.detail : messageOf(error)}`,
      );
    }
  }

  readonly #recordCall = (event: ModelEvent): void => {
    if (event.type === "hosted_call" && event.parent === undefined) this.#exchange.call(event.call);
  };

  #explain(error: unknown): ApiError {
    const retryable = this.#answer.hasUsedTools ? false : undefined;
    if (error instanceof ApiError || isOfUpstream(error)) {
      const { code, message, detail, cause, ...known } = toProviderError(LABEL, error, this.#hasBegun());
      // The provider's sentences about messages that are too long, or overloaded servers, fit an agent as well.
      const isRefused =
        error instanceof UpstreamRefusal && error.status < 500 && /^provider_(?:error|auth)$/.test(code);
      return new ApiError(code, message, {
        ...{ detail: isRefused ? refusalOf(error) : withWords(detail, error), cause },
        retryable: retryable ?? known.retryable,
        retryAfter: known.retryAfter,
      });
    }
    if (isToolError(error)) return new ApiError("provider_error", messageOf(error), { cause: error, retryable });
    const { message, detail } = failureInWords("The agent's run failed", error);
    return new ApiError("provider_error", message, { detail, cause: error, retryable });
  }

  /** Whether there is any text, call or decision, in the record or in these events. */
  #hasBegun(events: readonly ModelEvent[] = []): boolean {
    const { start, entries, hasUsedTools } = this.#exchange;
    if (start.state.open !== undefined || hasUsedTools || this.#exchange.said !== "") return true;
    if (entries.some((entry) => entry.type === "turn" && entry.calls.length > 0)) return true;
    return events.some(({ type }) => type === "text" || type === "hosted_call" || type === "approval");
  }
}

/** Says why there is no answer, and what to yield instead. `unknown` describes the first unknown item. */
function noAnswer(unknown: string | undefined): ApiError {
  if (unknown !== undefined)
    return failure(`The agent's run yielded nothing that Parley knows, but ${unknown}. ${ADVICE}`);
  const detail = `The agent's run returned and yielded nothing. ${ADVICE}`;
  return new ApiError("provider_error", "The agent gave an empty answer. Please try again.", { detail });
}

const STRAY = "The agent's run goes on although its answer has ended. Pass signal on to what it waits for.";

const ADVICE =
  'Return or yield strings, events such as { type: "token", data: "Hello" }, or the stream of a framework, not its finished result: agent.stream(), graph.stream(…, { streamMode: "messages" }) or run(…, { stream: true }).';

/** What to check if an agent behind HTTP refuses a request: a provider's sentences are about models and keys. */
function refusalOf({ status, headers }: UpstreamRefusal): string {
  const type = status < 300 ? ` and the content type ${headers.get("content-type") ?? "(none)"}` : "";
  const advice = status === 401 || status === 403 ? "the headers that it is sent" : "its address, and what it speaks";
  return `The agent answered with HTTP status ${status}${type}. Check ${advice}.`;
}

/** Adds the message of a failed agent behind HTTP, as is done for errors that `run` throws. */
function withWords(detail: string | undefined, error: unknown): string | undefined {
  const text = error instanceof UpstreamFailure ? error.detail.text : "";
  return text === "" ? detail : `${detail} It says: ${text.slice(0, MAX_WORDS)}`;
}

/** Whether the error is a timeout, or a failure of an agent behind HTTP. */
function isOfUpstream(error: unknown): boolean {
  const kinds = [UpstreamTimeout, UpstreamRefusal, UpstreamFailure, UpstreamGarbage, UpstreamTruncation];
  return kinds.some((kind) => error instanceof kind);
}

function toText(message: HistoryMessage): TextMessage[] {
  if (message.role === "tool") return [];
  if (message.role === "user") return [{ role: "user", content: textOf(partsOf(message)) }];
  return message.content ? [{ role: "assistant", content: message.content }] : [];
}

/** Joins consecutive messages of one role, because several APIs refuse them. */
function joinSpeakers(messages: readonly TextMessage[]): TextMessage[] {
  const joined: TextMessage[] = [];
  for (const message of messages) {
    const last = joined.at(-1);
    if (last?.role === message.role) last.content += `\n\n${message.content}`;
    else joined.push({ ...message });
  }
  return joined;
}

function toBytes({ type, name, mime_type: mimeType, url, text }: ReceivedFile): RunAttachment {
  const bytes = text === undefined ? Buffer.from(url.slice(url.indexOf(",") + 1), "base64") : Buffer.from(text);
  // Copied, because the memory behind a small Buffer is shared with other conversations.
  return { type, name, mimeType, data: new Uint8Array(bytes) };
}
