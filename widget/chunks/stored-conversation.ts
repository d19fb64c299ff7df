/** A conversation as text for the tab's storage, and back. Bytes of files and keys never go along. */

import type { ConversationState } from "../../server/protocol/chat.ts";
import type { ConversationData, Fork, KeptDraft } from "../conversation.ts";
import type { Block, Message, SentFile } from "../transcript.ts";
import type { RunPosition } from "../transport/transport.ts";

/** Grows when older versions of this file could misread what is written. */
const VERSION = 2;

/** Everything that a reload must not lose. */
export interface StoredConversation extends ConversationData {
  /** Whose conversation it is: another agent at the same address must not get it. */
  readonly agent: string;
  readonly draft: KeptDraft;
  readonly run?: RunPosition | undefined;
}

/** What was written once and does not change is not written again. */
const written = new WeakMap<object, string>();

/** `maxChars` bounds the messages: the newest are kept, and the state always is. */
export function encodeConversation(stored: StoredConversation, maxChars: number): string {
  const { agent, draft, run, state } = stored;
  const messages: string[] = [];
  const forks: unknown[] = [];
  let chars = 0;
  for (const message of stored.messages.toReversed()) {
    const text = write(message);
    chars += text.length;
    if (chars > maxChars) break;
    messages.unshift(text);
    forks.unshift(stored.forks.get(message.id) ?? null);
  }
  const cut = stored.cut || messages.length < stored.messages.length;
  const rest = JSON.stringify({ v: VERSION, agent, draft, run, cut, forks });
  return `${rest.slice(0, -1)},"state":${write(state)},"messages":[${messages.join()}]}`;
}

/** Content of another version, of somebody else or with damage is `undefined`. */
export function decodeConversation(text: string): StoredConversation | undefined {
  try {
    const { v, agent, draft, run, cut, forks, state, messages } = JSON.parse(text);
    if (v !== VERSION || !messages.every(isMessage)) return undefined;
    const known = new Map<string, Fork>();
    for (const [index, { id }] of messages.entries()) {
      // Without the state there is no telling what it began with.
      if (isObject(forks[index]) && isObject(state)) known.set(id, forks[index] as Fork);
    }
    return {
      agent: String(agent),
      draft: { text: String(draft.text), files: draft.files.map(String) },
      cut: cut === true,
      run: run && { run: String(run.run), after: Number(run.after) },
      messages: isObject(state) ? messages : messages.map(markLast),
      state: isObject(state) ? (state as unknown as ConversationState) : {},
      forks: known,
    };
  } catch {
    return undefined;
  }
}

/** A state that the agent was not told is `null`: then it knows nothing of what is above. */
function markLast(message: Message, index: number, all: readonly Message[]): Message {
  const isLast = all.findLastIndex(({ role }) => role === "assistant") === index;
  return isLast && message.role === "assistant" ? { ...message, forgotten: true } : message;
}

function write(value: object): string {
  const text = written.get(value) ?? stringify(value);
  written.set(value, text);
  return text;
}

function stringify(value: object): string {
  let dropped = false;
  const text = JSON.stringify(value, (key, item: unknown) => {
    // An object URL dies with its page.
    if (key === "url" && String(item).startsWith("blob:")) return undefined;
    if (!isObject(item) || item.role !== "user" || !Array.isArray(item.content)) return item;
    const content = item.content.map((part) => (part.type === "text" ? part : notice(part)));
    dropped ||= item.content.some(({ type }) => type !== "text");
    return { ...item, content };
  });
  // A signed state without its files is another one, which the server would refuse.
  return dropped && "signature" in value ? "null" : text;
}

function notice({ file }: { file?: { filename?: string } }): object {
  const name = file?.filename ?? "an image";
  return { type: "text", text: `[${name} was attached here earlier and is no longer included]` };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isMessage(value: unknown): value is Message {
  if (!isObject(value) || typeof value.id !== "string" || !/^m\d+$/.test(value.id)) return false;
  const { role, text, files, blocks, status, failure, feedback } = value;
  if (role === "user") {
    return typeof text === "string" && Array.isArray(files) && files.every(isSentFile);
  }
  const known = status === "streaming" || status === "done" || status === "failed";
  const failed = isObject(failure) && typeof failure.message === "string";
  const whole = Array.isArray(blocks) && blocks.every(isBlock);
  const rated = isObject(feedback) && (feedback.rating === "up" || feedback.rating === "down");
  const sound = (failure === undefined || failed) && (feedback === undefined || rated);
  return role === "assistant" && known && whole && sound;
}

function isSentFile(value: unknown): value is SentFile {
  return isObject(value) && typeof value.name === "string" && typeof value.mediaType === "string";
}

function isBlock(value: unknown): value is Block {
  if (!isObject(value) || typeof value.id !== "string") return false;
  return value.type === "tool"
    ? typeof value.tool === "string" && typeof value.arguments === "string"
    : (value.type === "text" || value.type === "thinking") && typeof value.text === "string";
}
