/** The conversation of every provider that gets the whole history with each request, and what its messages are made of. */

import { decodedBytes, isMediaType, MEDIA_TYPES, type MediaType, type ReceivedFile } from "../protocol/attachments.ts";
import type {
  AssistantMessage,
  ContentPart,
  ConversationState,
  HistoryMessage,
  HistoryToolCall,
  ToolMessage,
  Usage,
  UserMessage,
} from "../protocol/chat.ts";
import { isRecord, tryParse } from "../protocol/json.ts";
import type {
  Conversation,
  ConversationStart,
  HistoryModel,
  ModelEvent,
  ModelSetup,
  OnRequestId,
  Provider,
  ProviderFacts,
  ToolAnswer,
  ToolCall,
  TurnFinish,
} from "./provider.ts";

/** A provider that gets the whole conversation with each request. */
export class HistoryProvider implements Provider {
  readonly stateKind = "conversation_history";
  readonly id: string;
  readonly label: string;
  readonly mediaTypes: readonly MediaType[];
  readonly models?: readonly string[];
  /** Any other model can go on with the same history. */
  readonly model: HistoryModel;

  constructor({ id, label, mediaTypes, models }: ProviderFacts, model: HistoryModel) {
    this.id = id;
    this.label = label;
    this.mediaTypes = mediaTypes;
    if (models !== undefined) this.models = models;
    this.model = model;
  }

  open(start: ConversationStart): Conversation {
    return new HistoryConversation(this.model, start);
  }
}

class HistoryConversation implements Conversation {
  readonly #model: HistoryModel;
  readonly #setup: ModelSetup;
  readonly #messages: HistoryMessage[];
  /** Calls of the last turn that have no answer yet. */
  readonly #openCalls = new Set<string>();
  /** Results that clients do not get as the model does. */
  readonly #shown = new Map<HistoryMessage, ToolMessage>();
  /** How many of the messages make a history that can be continued. */
  #settled: number;

  constructor(model: HistoryModel, { setup, state, message, attachments }: ConversationStart) {
    const past = state.conversation_history ?? [];
    this.#model = model;
    this.#setup = setup;
    this.#messages = [...past, userMessage(message, attachments)];
    this.#settled = past.length;
  }

  ask(signal: AbortSignal, onRequestId?: OnRequestId): AsyncIterable<ModelEvent[]> {
    if (this.#openCalls.size > 0) throw new Error("a call of the last turn is not answered");
    const keep = (message: AssistantMessage) => this.#keep(message);
    return this.#model.stream({ setup: this.#setup, messages: this.#messages, keep, onRequestId }, signal);
  }

  answer(answers: readonly ToolAnswer[]): void {
    for (const { id, output, shown, failed } of answers) {
      if (!this.#openCalls.delete(id)) throw new Error(`no open call has the id ${id}`);
      const message = toolMessage(id, output, failed);
      this.#messages.push(message);
      if (shown !== undefined) this.#shown.set(message, toolMessage(id, shown, failed));
    }
  }

  interrupt(said: string): void {
    // At the turn limit the run may hand in the text that came with the calls, which is kept already.
    const last = this.#messages.at(-1);
    const isKept = last?.role === "assistant" && last.content === said;
    for (const id of this.#openCalls) this.#messages.push(toolMessage(id, CANCELLED_OUTPUT, true));
    this.#openCalls.clear();
    if (said.trim() !== "" && !isKept) this.#messages.push({ role: "assistant", content: said });
    this.#settled = this.#messages.length;
  }

  state(): ConversationState {
    const settled = this.#messages.slice(0, this.#settled).map((message) => this.#shown.get(message) ?? message);
    const history = slimHistory(settled);
    return history.length === 0 ? {} : { conversation_history: history };
  }

  #keep(message: AssistantMessage): void {
    const calls = message.tool_calls ?? [];
    // An empty message says nothing to the model, and several APIs refuse it.
    if (calls.length > 0 || (message.content ?? "") !== "") this.#messages.push(message);
    for (const call of calls) this.#openCalls.add(call.id);
    if (calls.length === 0) this.#settled = this.#messages.length;
  }
}

/** What the model gets to know of a call that was never finished. */
export const CANCELLED_OUTPUT = "Cancelled: the run ended before this call was finished.";

export function toolMessage(id: string, output: string, failed: boolean): ToolMessage {
  return { role: "tool", tool_call_id: id, content: output, ...(failed ? { is_error: true } : {}) };
}

/** The result of a call for an API that has no flag for a failure. */
export function resultText({ content, is_error }: ToolMessage): string {
  return is_error === true ? `Error: ${content}` : content;
}

/** Plain text, or parts where something is attached. */
export function userMessage(message: string, attachments: readonly ReceivedFile[]): UserMessage {
  if (attachments.length === 0) return { role: "user", content: message };
  // Several APIs refuse an empty text part.
  const text: ContentPart[] = message === "" ? [] : [{ type: "text", text: message }];
  return { role: "user", content: [...text, ...attachments.map(attachmentPart)] };
}

function attachmentPart({ type, name, url }: ReceivedFile): ContentPart {
  if (type === "image") return { type: "image_url", image_url: { url } };
  return { type: "file", file: { filename: name, file_data: url } };
}

/** A message of calls alone has no content. */
export function assistantMessage(said: string, calls: HistoryToolCall[]): AssistantMessage {
  return {
    role: "assistant",
    content: said === "" && calls.length > 0 ? null : said,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

export function toHistoryCall({ id, name, arguments: written }: ToolCall): HistoryToolCall {
  return { id, type: "function", function: { name, arguments: written } };
}

/** The events at the end of a turn: the message's calls, and the end. */
export function endOfTurn(message: AssistantMessage, finish: TurnFinish, usage: Usage | undefined): ModelEvent[] {
  const calls = (message.tool_calls ?? []).map(
    ({ id, function: called }): ModelEvent => ({
      type: "call",
      call: { id, name: called.name, arguments: called.arguments },
    }),
  );
  return [...calls, { type: "end", finish, ...(usage === undefined ? {} : { usage }) }];
}

/** The arguments of a call. APIs take an object only; what a model wrote instead stays readable to it. */
export function argumentsOf(call: HistoryToolCall): Record<string, unknown> {
  const { arguments: written } = call.function;
  const value = tryParse(written);
  return isRecord(value) ? value : { unparsed_arguments: written };
}

/** Every tool call of a history, in its order. */
export function callsOf(history: readonly HistoryMessage[]): HistoryToolCall[] {
  return history.flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []));
}

/** The ids that a new call of the conversation must not have. */
export function callIds(history: readonly HistoryMessage[]): Set<string> {
  return new Set(callsOf(history).map(({ id }) => id));
}

/** Base64 characters of all attachments that one state may hold: 8 MiB. */
const MAX_STATE_ATTACHMENT_CHARS = 8 * 1024 * 1024;

/**
 * The history as it leaves the server. The client sends it back with each message, so it must not grow without bound:
 * attachments that alone are beyond the limit, and then the oldest ones until the rest is within it, are replaced by a text
 * that says what was there.
 */
export function slimHistory(
  history: readonly HistoryMessage[],
  maxChars = MAX_STATE_ATTACHMENT_CHARS,
): HistoryMessage[] {
  const dropped = partsToDrop(history, maxChars);
  if (dropped.size === 0) return [...history];
  return history.map((message) => {
    if (message.role !== "user" || typeof message.content === "string") return message;
    return { ...message, content: message.content.map((part) => (dropped.has(part) ? notice(part) : part)) };
  });
}

function partsToDrop(history: readonly HistoryMessage[], maxChars: number): Set<ContentPart> {
  const dropped = new Set<ContentPart>();
  let chars = 0;
  for (const message of history.toReversed()) {
    if (message.role !== "user" || typeof message.content === "string") continue;
    for (const part of message.content.toReversed()) {
      const size = base64Of(part).length;
      if (size === 0) continue;
      if (size <= maxChars) chars += size;
      if (size > maxChars || chars > maxChars) dropped.add(part);
    }
  }
  return dropped;
}

function notice(part: ContentPart): ContentPart {
  const megabytes = (decodedBytes(base64Of(part)) / 1e6).toFixed(1);
  const { name, label } = describeFile(part);
  return {
    type: "text",
    text: `[${name} (${label}, ${megabytes} MB) was attached here earlier and is no longer included]`,
  };
}

/** How a file of the history is called in texts that take its place. */
export function describeFile(part: ContentPart): { name: string; label: string; mediaType: string } {
  const mediaType = /^data:([^;,]*)/.exec(dataUrl(part))?.[1] ?? "";
  return {
    name: part.type === "file" ? part.file.filename : "an image",
    label: isMediaType(mediaType) ? MEDIA_TYPES[mediaType].label : "a file",
    mediaType,
  };
}

function base64Of(part: ContentPart): string {
  const url = dataUrl(part);
  return url.slice(url.indexOf(",") + 1);
}

function dataUrl(part: ContentPart): string {
  if (part.type === "image_url") return part.image_url.url;
  return part.type === "file" ? part.file.file_data : "";
}
