/** An agent that is written elsewhere, in a model's place: each of its answers is one model request whose tools run there. */

import { isToolError } from "../agent/define.ts";
import type { AnswerSource } from "../agent/run-agent.ts";
import type { RunContext } from "../agent/run-context.ts";
import {
  isAgentObject,
  type OwnRun,
  type RunAttachment,
  type RunInput,
  type TextMessage,
} from "../agent/run-function.ts";
import { cutContent } from "../agent/tools.ts";
import type { Settings } from "../config/settings.ts";
import { AgentNotice } from "../errors.ts";
import type { ReceivedFile } from "../protocol/attachments.ts";
import type { AssistantMessage, ConversationState, HistoryMessage } from "../protocol/chat.ts";
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
import type { Conversation, ConversationStart, ModelEvent } from "../providers/provider.ts";
import { Answer, failure } from "./answer.ts";
import { Items } from "./items.ts";
import { ItemReader } from "./shapes.ts";
import { Told } from "./told.ts";

interface HostedParts {
  readonly settings: Pick<Settings, "firstChunkSeconds" | "idleSeconds" | "maxToolOutputChars">;
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
    if (framework === undefined) parts.notice(`The agent's run streams what ${name} makes.`);
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
  readonly #told = new Told();
  readonly #answer = new Answer();
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
  }

  async *ask(signal: AbortSignal): AsyncGenerator<ModelEvent[]> {
    const { firstChunkSeconds, idleSeconds } = this.#parts.settings;
    const limits = { firstChunkMs: firstChunkSeconds * 1000, idleMs: idleSeconds * 1000 };
    const input = this.#input(signal);
    const answer = this.#answer;
    const reader = new ItemReader(answer);
    let items: Items | undefined;
    try {
      items = new Items(this.#call(input), { input, limits, onStray: this.#onStray });
      for (;;) {
        const next = await items.next(answer.isWorking);
        if (next === undefined) break;
        const failed = this.#read(reader, next.item);
        const events = this.#take();
        if (events.length > 0) yield events;
        if (failed !== undefined) throw failed.error;
      }
      yield this.#end(reader);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw this.#explain(error);
    } finally {
      items?.close();
    }
  }

  answer(): void {
    throw new Error("an agent that is written elsewhere runs its own tools");
  }

  interrupt(said: string): void {
    this.#isOver = true;
    if (said.trim() !== "" && !this.#told.lastText.endsWith(said)) this.#told.say(said);
  }

  withhold(said: string): void {
    this.#isOver = true;
    this.#told.withhold(said);
  }

  state(): ConversationState {
    return this.#isOver ? this.#history() : this.#start.state;
  }

  /** The agent may have done what it told of: whoever sends the message again should know. */
  stateAfterFailure(): ConversationState {
    return this.#told.isEmpty ? this.#start.state : this.#history();
  }

  #input(signal: AbortSignal): RunInput {
    const { message, attachments, state } = this.#start;
    const past = state.conversation_history ?? [];
    const asked = message === "" ? attachments.map(({ name }) => `[${name}]`).join("\n") : message;
    return {
      message,
      messages: joinSpeakers([...past.flatMap(toText), { role: "user", content: asked }]),
      attachments: attachments.map(toBytes),
      state: structuredClone(lastState(past)),
      ctx: this.#context,
      signal,
    };
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

  #end(reader: ItemReader): ModelEvent[] {
    reader.end();
    if (!reader.hasKnown && reader.unknown !== undefined) {
      throw failure(`The agent's run yielded nothing that Parley knows, but ${reader.unknown}.`);
    }
    const { finish, usage } = this.#answer;
    const events = this.#take();
    this.#isOver = true;
    return [...events, endEvent(finish, usage)];
  }

  #take(): ModelEvent[] {
    const events = this.#answer.take();
    for (const event of events) this.#told.add(this.#asKept(event));
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
      const { code, message, detail, cause, ...known } = toProviderError(LABEL, error, !this.#told.isEmpty);
      return new ApiError(code, message, {
        ...{ detail, cause, retryable: retryable ?? known.retryable, retryAfter: known.retryAfter },
      });
    }
    if (isToolError(error)) return new ApiError("provider_error", error.message, { cause: error, retryable });
    const words = error instanceof Error ? error.message : String(error);
    const { message, detail } = failure(`The agent's run failed: ${words.slice(0, MAX_WORDS)}`);
    return new ApiError("provider_error", message, { detail, cause: error, retryable });
  }

  #history(): ConversationState {
    const { message, attachments, state } = this.#start;
    const past = state.conversation_history ?? [];
    const told = this.#told.toMessages();
    const { state: own } = this.#answer;
    if (own !== undefined) {
      const last = told.findLast((one): one is AssistantMessage => one.role === "assistant");
      if (last === undefined) told.push({ role: "assistant", content: "", [STATE_FIELD]: own });
      else last[STATE_FIELD] = own;
    }
    const before = own === undefined ? past : past.map(withoutState);
    // The agent gets the files of a message once: of those before, it gets to know what they were.
    return { conversation_history: [...before, ...slimHistory([userMessage(message, attachments)], 0), ...told] };
  }

  readonly #onStray = (): void => {
    this.#parts.notice("The agent's run goes on although its answer has ended. Pass signal on to what it waits for.");
  };
}

/** A limit of time, or a failure of an agent behind HTTP. */
function isOfUpstream(error: unknown): boolean {
  const kinds = [UpstreamTimeout, UpstreamRefusal, UpstreamFailure, UpstreamGarbage, UpstreamTruncation];
  return kinds.some((kind) => error instanceof kind);
}

/** Of what was thrown, in sentences for the operator. */
const MAX_WORDS = 300;

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

function withoutState(message: HistoryMessage): HistoryMessage {
  if (message.role !== "assistant" || message[STATE_FIELD] === undefined) return message;
  const { [STATE_FIELD]: _former, ...rest } = message;
  return rest as AssistantMessage;
}

function toBytes({ type, name, mime_type: mimeType, url }: ReceivedFile): RunAttachment {
  // A copy of its own: the memory behind a small Buffer is shared with other conversations.
  return { type, name, mimeType, data: new Uint8Array(Buffer.from(url.slice(url.indexOf(",") + 1), "base64")) };
}
