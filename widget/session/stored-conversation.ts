/** A conversation as it is stored, and back. Bytes of files and keys are never part of it. */

import type { ContentPart, ConversationState, HistoryMessage } from "../../server/protocol/chat.ts";
import { isRecord } from "../../server/protocol/json.ts";
import type { SessionData } from "./chat-session.ts";
import type { StateSnapshot } from "./conversation.ts";
import type { Block, Message, SentFile } from "./messages.ts";

/** Grows when older versions of this file could misread what is written. */
const VERSION = 3;

/** Everything that a reload must not lose. */
export interface StoredConversation extends SessionData {
  readonly id: string;
  /** Another agent at the same address must not get it. */
  readonly agent: string;
  /** When it was saved, in milliseconds. */
  readonly updatedAt: number;
}

/** A copy to be stored. `maxChars` bounds the messages: the newest are kept, and the state always is. */
export function toRow(conversation: StoredConversation, maxChars: number): object {
  const messages: Message[] = [];
  let chars = 0;
  for (const message of conversation.messages.toReversed()) {
    const { copy, size } = copyOf(message);
    chars += size;
    if (chars > maxChars) break;
    messages.unshift(copy);
  }
  const isCut = conversation.isCut || messages.length < conversation.messages.length;
  const { id, agent, updatedAt, run, statesBefore } = conversation;
  const state = withoutFiles(conversation.state);
  return { version: VERSION, id, agent, updatedAt, run, statesBefore, isCut, messages, state };
}

/** A row of another version, of another program or with damage gives `undefined`. */
export function fromRow(row: unknown): StoredConversation | undefined {
  if (!isRecord(row) || row.version !== VERSION) return undefined;
  const { id, agent, updatedAt, run, statesBefore, isCut, messages, state } = row;
  if (typeof id !== "string" || !Array.isArray(messages) || !messages.every(isMessage)) return undefined;
  // Without the state there is no telling what an earlier one began with.
  const isComplete = isRecord(state) && statesBefore instanceof Map;
  return {
    id,
    agent: String(agent),
    updatedAt: Number(updatedAt),
    isCut: isCut === true,
    run: isRecord(run) ? { run: String(run.run), after: Number(run.after) } : undefined,
    messages: isComplete ? messages : messages.map(markLastAnswer),
    state: isComplete ? (state as ConversationState) : {},
    statesBefore: isComplete ? (statesBefore as Map<string, StateSnapshot>) : new Map(),
  };
}

/** The agent knows nothing of a conversation whose state could not be stored. */
function markLastAnswer(message: Message, index: number, all: readonly Message[]): Message {
  const isLast = all.findLastIndex(({ role }) => role === "assistant") === index;
  return isLast && message.role === "assistant" ? { ...message, forgotten: true } : message;
}

/** Messages never change: each is copied and measured once. */
const copies = new WeakMap<Message, { readonly copy: Message; readonly size: number }>();

function copyOf(message: Message) {
  const known = copies.get(message);
  if (known) return known;
  const copy = withoutPreviews(message);
  const made = { copy, size: JSON.stringify(copy).length };
  copies.set(message, made);
  return made;
}

/** Object URLs end with the page. */
function withoutPreviews(message: Message): Message {
  if (message.role !== "user" || message.files.length === 0) return message;
  return { ...message, files: message.files.map(({ previewUrl: _, ...file }) => file) };
}

const slimStates = new WeakMap<ConversationState, { readonly state: ConversationState | undefined }>();

/** `undefined` for a signed state with files: without them it is another one, which the server would refuse. */
function withoutFiles(state: ConversationState): ConversationState | undefined {
  const known = slimStates.get(state);
  if (known) return known.state;
  const { conversation_history: history, signature } = state;
  const slim = history?.map(withoutFileParts);
  const hasFiles = slim?.some((message, index) => message !== history?.[index]);
  const made = !slim || !hasFiles ? state : signature ? undefined : { ...state, conversation_history: slim };
  slimStates.set(state, { state: made });
  return made;
}

function withoutFileParts(message: HistoryMessage): HistoryMessage {
  if (message.role !== "user" || typeof message.content === "string") return message;
  if (message.content.every(({ type }) => type === "text")) return message;
  return { ...message, content: message.content.map((part) => (part.type === "text" ? part : notice(part))) };
}

function notice(part: ContentPart): ContentPart {
  const name = part.type === "file" ? part.file.filename : "an image";
  return { type: "text", text: `[${name} was attached here earlier and is no longer included]` };
}

function isMessage(value: unknown): value is Message {
  if (!isRecord(value) || typeof value.id !== "string" || !/^m\d+$/.test(value.id)) return false;
  const { role, text, files, blocks, status, failure, feedback } = value;
  if (role === "user") return typeof text === "string" && Array.isArray(files) && files.every(isSentFile);
  const isStatus = status === "streaming" || status === "done" || status === "failed";
  const isFailure = failure === undefined || (isRecord(failure) && typeof failure.code === "string");
  const isRating = feedback === undefined || (isRecord(feedback) && /^(up|down)$/.test(String(feedback.rating)));
  return role === "assistant" && isStatus && isFailure && isRating && Array.isArray(blocks) && blocks.every(isBlock);
}

function isSentFile(value: unknown): value is SentFile {
  return isRecord(value) && typeof value.name === "string" && typeof value.mediaType === "string";
}

function isBlock(value: unknown): value is Block {
  if (!isRecord(value)) return false;
  return value.type === "tool"
    ? typeof value.tool === "string" && typeof value.arguments === "string"
    : (value.type === "text" || value.type === "thinking") && typeof value.text === "string";
}
