/** An agent that is written elsewhere, in a model's place: each of its answers is one model request whose tools run there. */

import { decidedCalls } from "../agent/approvals.ts";
import { isToolError } from "../agent/define.ts";
import type { RunContext } from "../agent/run-context.ts";
import {
  isAgentObject,
  type OwnRun,
  type RunAttachment,
  type RunInput,
  type TextMessage,
} from "../agent/run-function.ts";
import type { AnswerSource } from "../agent/served-agent.ts";
import { cutContent } from "../agent/tools.ts";
import type { Settings } from "../config/settings.ts";
import { AgentNotice } from "../errors.ts";
import type { ReceivedFile } from "../protocol/attachments.ts";
import type {
  AssistantMessage,
  ConversationState,
  DecidedCall,
  HistoryMessage,
  UserMessage,
  WaitingCall,
  WaitingCalls,
} from "../protocol/chat.ts";
import { ApiError } from "../protocol/errors.ts";
import {
  toProviderError,
  UpstreamFailure,
  UpstreamGarbage,
  UpstreamRefusal,
  UpstreamTimeout,
  UpstreamTruncation,
} from "../providers/failures.ts";
import { endEvent, partsOf, slimHistory, textOf, userMessage } from "../providers/history.ts";
import type { Conversation, ConversationStart, ModelEvent, ToolAnswer } from "../providers/provider.ts";
import { Answer, type ApprovedCall, failure, failureInWords, MAX_WORDS, wordsOf } from "./answer.ts";
import { Exchange } from "./exchange.ts";
import { Items } from "./items.ts";
import { ItemReader } from "./shapes.ts";

interface HostedParts {
  readonly settings: Pick<
    Settings,
    "firstChunkSeconds" | "idleSeconds" | "maxToolOutputChars" | "maxToolCalls" | "maxJsonDepth"
  >;
  /** A sentence for the log. */
  notice(text: string): void;
}

const LABEL = "The agent";

/** Signs states and binds them, as the id of a provider does. */
const ID = "run";

/** The field of an assistant message that has the agent's own state. */
const STATE_FIELD = "run_state";

export function hostedSource(own: OwnRun, parts: HostedParts): AnswerSource {
  let framework: string | undefined;
  const onFramework = (name: string) => {
    if (framework === undefined) parts.notice(`Recognised what the agent's run streams: ${name}.`);
    framework = name;
  };
  return {
    id: ID,
    label: LABEL,
    mediaTypes: own.accepts,
    stateKind: "conversation_history",
    open: (start, context) => new HostedConversation(own, start, context, { ...parts, onFramework }),
  };
}

class HostedConversation implements Conversation {
  readonly #own: OwnRun;
  readonly #start: ConversationStart;
  readonly #context: RunContext;
  readonly #parts: HostedParts & { onFramework(name: string): void };
  readonly #exchange: Exchange;
  readonly #answer: Answer;
  #declined: readonly ToolAnswer[] = [];
  /** What the framework needs to go on with what waits. */
  #kept: unknown;
  #isOver = false;

  constructor(
    own: OwnRun,
    start: ConversationStart,
    context: RunContext,
    parts: HostedParts & { onFramework(name: string): void },
  ) {
    this.#own = own;
    this.#start = start;
    this.#context = context;
    this.#parts = parts;
    this.#exchange = new Exchange(start.state.open?.messages ?? [], askedOf(start));
    this.#answer = new Answer(parts.settings, context);
  }

  async *ask(signal: AbortSignal): AsyncGenerator<ModelEvent[]> {
    const { firstChunkSeconds, idleSeconds } = this.#parts.settings;
    const limits = { firstChunkMs: firstChunkSeconds * 1000, idleMs: idleSeconds * 1000 };
    const input = this.#input(signal);
    const answer = this.#answer;
    const reader = new ItemReader(answer);
    const sources: Record<string, unknown>[] = [];
    let items: Items | undefined;
    try {
      if (answer.settle(this.#approved(input), this.#exchange.calls())) yield this.#take();
      const onOpen = (source: Record<string, unknown>) => void sources.push(source);
      items = new Items(this.#call(input), { input, limits, onOpen, onStray: this.#onStray });
      for (;;) {
        const pending = items.next(answer.isWorking);
        const { heldMs } = answer;
        if (heldMs !== undefined && (await isLaterThan(heldMs, pending)) && answer.release()) yield this.#take();
        const next = await pending;
        if (next === undefined) break;
        const failed = this.#read(reader, next.item);
        const events = this.#take();
        if (events.length > 0) yield events;
        if (failed !== undefined) throw failed.error;
      }
      yield await this.#end(reader, sources, input, items);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (answer.release()) yield this.#take();
      throw this.#explain(error);
    } finally {
      items?.close();
      this.#keepState();
      // Calls of which no client has heard may have begun.
      if (!this.#isOver && answer.release()) this.#take();
    }
  }

  /** Takes the answers to calls that were declined: the others are the agent's own. */
  answer(declined: readonly ToolAnswer[]): void {
    this.#declined = declined;
    for (const one of declined) this.#exchange.decline(one);
  }

  interrupt(said: string): void {
    this.#isOver = true;
    if (said.trim() !== "" && !this.#exchange.text.endsWith(said)) this.#exchange.say(said);
  }

  withhold(said: string): void {
    this.#isOver = true;
    this.#exchange.withhold(said);
  }

  state(): ConversationState {
    return this.#isOver ? this.#history() : this.#start.state;
  }

  openState(waiting?: WaitingCalls): ConversationState {
    const { past, exchange } = this.#messages(waiting?.calls);
    const kept = this.#kept === undefined ? {} : { kept: this.#kept };
    return {
      ...(past.length === 0 ? {} : { conversation_history: past }),
      open: { messages: exchange, ...(waiting === undefined ? {} : { waiting: { ...waiting, ...kept } }) },
    };
  }

  /** The agent may have done what it reported: the state says so, for a client that sends the message again. */
  failure(): { state: ConversationState; canContinue: boolean } {
    return { state: this.#hasBegun ? this.#history() : this.#start.state, canContinue: false };
  }

  #input(signal: AbortSignal): RunInput {
    const { message, attachments, state } = this.#start;
    const { conversation_history: past = [], open } = state;
    const exchange = open?.messages ?? [];
    const asked = message === "" ? attachments.map(({ name }) => `[${name}]`).join("\n") : message;
    // What was said in the exchange that goes on is a part of the answer.
    const texts = [...past, ...exchange.slice(0, 1)].flatMap(toText);
    return {
      message,
      messages: joinSpeakers([...texts, ...(asked === "" ? [] : [{ role: "user" as const, content: asked }])]),
      attachments: attachments.map(toBytes),
      state: structuredClone(lastState([...past, ...exchange])),
      exchange: structuredClone(exchange),
      ctx: { ...this.#context, approvals: this.#decisions() },
      signal,
    };
  }

  /** A message in their place declines all that waits, but is the answer where words are wanted. */
  #decisions(): readonly DecidedCall[] {
    const { approvals } = this.#context;
    if (approvals.length > 0) return approvals;
    const { message, state } = this.#start;
    const decided = (state.open?.waiting?.calls ?? []).map((call) => {
      const { shownId: id = call.id } = call;
      const refusal = this.#declined.find((one) => one.id === call.id);
      if (refusal === undefined && call.question) return { id, approved: true, reason: message };
      return { id, approved: false, reason: `${textOf(refusal?.content ?? [])} They wrote: ${message}`.trim() };
    });
    return decidedCalls({ state, approvals: decided });
  }

  #approved({ ctx: { approvals } }: RunInput): ApprovedCall[] {
    const waiting = this.#start.state.open?.waiting?.calls ?? [];
    return waiting.flatMap((call) => {
      const decision = approvals.find(({ id }) => id === call.id);
      if (!decision?.approved) return [];
      return [{ ...call, arguments: decision.arguments ?? call.arguments, reason: decision.reason }];
    });
  }

  #call(input: RunInput): unknown {
    const { run } = this.#own;
    return isAgentObject(run) || typeof run !== "function" ? run : run(input);
  }

  #read(reader: ItemReader, item: unknown): { error: unknown } | undefined {
    const { unknown: known } = reader;
    try {
      reader.read(item);
    } catch (error) {
      return { error };
    }
    if (reader.unknown !== known) {
      this.#answer.report(new AgentNotice(`The agent's run yielded what Parley does not know: ${reader.unknown}.`));
    }
    if (reader.framework !== undefined) this.#parts.onFramework(reader.framework);
    return undefined;
  }

  async #end(
    reader: ItemReader,
    sources: Record<string, unknown>[],
    input: RunInput,
    items: Items,
  ): Promise<ModelEvent[]> {
    reader.end(sources);
    this.#answer.keepChanging();
    // Calls that have not begun when their neighbours wait begin when those are decided.
    if (this.#answer.asked.size === 0) this.#answer.release();
    else this.#kept = await items.within(this.#answer.keptOfAll(sources, input));
    const { finish, usage, asked } = this.#answer;
    // Calls beside those that are asked about begin later.
    if (asked.size === 0) this.#noticeOpenCalls(reader, input);
    const events = this.#take();
    // A state beside what is not known is no answer; after decisions, nothing more has to be said.
    if (!this.#hasBegun && !(reader.hasKnown && reader.unknown === undefined)) throw noAnswer(reader.unknown);
    this.#isOver = true;
    return [...events, endEvent(finish, usage)];
  }

  /** Calls without a result, which are closed as failed: the author reads why that may be. */
  #noticeOpenCalls({ framework }: ItemReader, input: RunInput): void {
    const approved = new Set(this.#approved(input).map(({ id }) => id));
    for (const { id, name } of this.#answer.openCalls()) {
      const why = approved.has(id)
        ? "run has to give ctx.approvals to what asked for them"
        : framework === "LangGraph"
          ? 'if it interrupts the graph, stream the mode "updates", too'
          : "run has ended before it";
      this.#answer.notice(new AgentNotice(`The call of "${name}" got no result: ${why}.`));
    }
  }

  /** For an answer that ended before its end: a state that cannot be kept must not hide why. */
  #keepState(): void {
    try {
      this.#answer.keepChanging();
    } catch (error) {
      this.#parts.notice(
        `The agent's state was not kept: ${error instanceof ApiError ? error.detail : wordsOf(error)}`,
      );
    }
  }

  #take(): ModelEvent[] {
    const events = this.#answer.take();
    for (const event of events) this.#exchange.add(this.#asKept(event));
    return events;
  }

  /** As clients get it: uncut, outputs could make a state larger than what the next message may bring. */
  #asKept(event: ModelEvent): ModelEvent {
    if (event.type !== "hosted_result") return event;
    const content = cutContent(event.answer.content, this.#parts.settings.maxToolOutputChars);
    return { ...event, answer: { ...event.answer, content } };
  }

  #explain(error: unknown): ApiError {
    const retryable = this.#answer.hasUsedTools ? false : undefined;
    if (error instanceof ApiError || isOfUpstream(error)) {
      const { code, message, detail, cause, ...known } = toProviderError(LABEL, error, this.#hasBegun);
      // What is said of a message that is too long, or of a server that is overloaded, fits an agent as well.
      const isRefused =
        error instanceof UpstreamRefusal && error.status < 500 && /^provider_(?:error|auth)$/.test(code);
      return new ApiError(code, message, {
        ...{ detail: isRefused ? refusalOf(error) : withWords(detail, error), cause },
        retryable: retryable ?? known.retryable,
        retryAfter: known.retryAfter,
      });
    }
    if (isToolError(error)) return new ApiError("provider_error", wordsOf(error), { cause: error, retryable });
    const { message, detail } = failureInWords("The agent's run failed", error);
    return new ApiError("provider_error", message, { detail, cause: error, retryable });
  }

  /** Whether anything was said or done, or decided. */
  get #hasBegun(): boolean {
    return this.#start.state.open !== undefined || !this.#exchange.isEmpty;
  }

  #history(): ConversationState {
    const { past, exchange } = this.#messages();
    return { conversation_history: [...past, ...exchange] };
  }

  /** All that is over, and the exchange that goes on: from the last message of the user on. */
  #messages(waiting?: readonly WaitingCall[]): { past: HistoryMessage[]; exchange: HistoryMessage[] } {
    const { conversation_history: past = [] } = this.#start.state;
    const { state } = this.#answer;
    const all = [...past, ...this.#exchange.toMessages(waiting)];
    const messages = state === undefined ? all : withState(all, state);
    const begin = messages.findLastIndex(({ role }) => role === "user");
    return { past: messages.slice(0, begin), exchange: messages.slice(begin) };
  }

  readonly #onStray = (): void => {
    this.#parts.notice("The agent's run goes on although its answer has ended. Pass signal on to what it waits for.");
  };
}

/** Why there is no answer, and what to write; `unknown` is what came in its place. */
function noAnswer(unknown: string | undefined): ApiError {
  if (unknown !== undefined)
    return failure(`The agent's run yielded nothing that Parley knows, but ${unknown}. ${ADVICE}`);
  const detail = `The agent's run returned and yielded nothing. ${ADVICE}`;
  return new ApiError("provider_error", "The agent gave an empty answer. Please try again.", { detail });
}

const ADVICE =
  'Return or yield strings, events such as { type: "token", data: "Hello" }, or the stream of a framework, not its finished result: agent.stream(), graph.stream(…, { streamMode: "messages" }) or run(…, { stream: true }).';

/** Whether a promise is still pending after so many milliseconds. */
async function isLaterThan(ms: number, pending: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const isOver = () => false;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, true);
  });
  try {
    return await Promise.race([pending.then(isOver, isOver), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What to check where an agent behind HTTP refuses a request: the provider's sentences are of models and keys. */
function refusalOf({ status, headers }: UpstreamRefusal): string {
  const type = status < 300 ? ` and the content type ${headers.get("content-type") ?? "(none)"}` : "";
  const advice = status === 401 || status === 403 ? "the headers that it is sent" : "its address, and what it speaks";
  return `The agent answered with HTTP status ${status}${type}. Check ${advice}.`;
}

/** Adds what an agent behind HTTP says of its failure, as what `run` throws is said. */
function withWords(detail: string | undefined, error: unknown): string | undefined {
  const text = error instanceof UpstreamFailure ? error.detail.text : "";
  return text === "" ? detail : `${detail} It says: ${text.slice(0, MAX_WORDS)}`;
}

/** A limit of time, or a failure of an agent behind HTTP. */
function isOfUpstream(error: unknown): boolean {
  const kinds = [UpstreamTimeout, UpstreamRefusal, UpstreamFailure, UpstreamGarbage, UpstreamTruncation];
  return kinds.some((kind) => error instanceof kind);
}

/**
 * The message that begins an exchange; absent where decisions come alone. The agent gets its files once: of those before, it gets
 * to know what they were.
 */
function askedOf({ message, attachments }: ConversationStart): UserMessage | undefined {
  if (message === "" && attachments.length === 0) return undefined;
  return slimHistory([userMessage(message, attachments)], 0)[0] as UserMessage;
}

function toText(message: HistoryMessage): TextMessage[] {
  if (message.role === "tool") return [];
  if (message.role === "user") return [{ role: "user", content: textOf(partsOf(message)) }];
  return message.content ? [{ role: "assistant", content: message.content }] : [];
}

/** Several APIs refuse two messages of one speaker in a row. */
function joinSpeakers(messages: readonly TextMessage[]): TextMessage[] {
  const joined: TextMessage[] = [];
  for (const message of messages) {
    const last = joined.at(-1);
    if (last?.role === message.role) last.content += `\n\n${message.content}`;
    else joined.push({ ...message });
  }
  return joined;
}

function lastState(history: readonly HistoryMessage[]): unknown {
  const last = history.findLast((message) => message.role === "assistant" && message[STATE_FIELD] !== undefined);
  return last?.role === "assistant" ? last[STATE_FIELD] : undefined;
}

/** The state stands on the last message of the agent, and nowhere else. */
function withState(history: readonly HistoryMessage[], state: unknown): HistoryMessage[] {
  const messages = history.map(withoutState);
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  if (last < asked) return [...messages, { role: "assistant", content: "", [STATE_FIELD]: state }];
  return messages.with(last, { ...messages[last], [STATE_FIELD]: state } as AssistantMessage);
}

function withoutState(message: HistoryMessage): HistoryMessage {
  if (message.role !== "assistant" || message[STATE_FIELD] === undefined) return message;
  const { [STATE_FIELD]: _former, ...rest } = message;
  return rest as AssistantMessage;
}

function toBytes({ type, name, mime_type: mimeType, url }: ReceivedFile): RunAttachment {
  // A copy of its own: the memory behind a small Buffer is shared with other conversations.
  return { type, name, mimeType, data: new Uint8Array(Buffer.from(url.slice(url.indexOf(",") + 1), "base64")) };
}
