/** Seals messages whose tool calls clients may not read: clients keep them, but only this server can open them. */

import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";
import type { HistoryMessage, HistoryToolCall } from "../protocol/chat.ts";
import { isRecord } from "../protocol/json.ts";

/** What sealed messages are bound to: they cannot be opened in another conversation or for another user. */
export interface Seal {
  /** Id of the agent. */
  readonly agent: string;
  /** Id of the provider. */
  readonly provider: string;
  /** Id of the user whose conversation it is; `undefined` if the user is not known. */
  readonly user: string | undefined;
  readonly conversation: string | undefined;
  /** The first one seals; each of them can open. */
  readonly secrets: readonly string[];
}

/** Whether clients may not read a call. */
export type IsHidden = (call: HistoryToolCall) => boolean;

const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * The messages as clients keep them. In a message with a hidden call only the text stays readable, because the fields
 * that providers need back may contain the calls, too. Without a hidden call, returns the same array.
 */
export function sealMessages(messages: readonly HistoryMessage[], isHidden: IsHidden, seal: Seal): HistoryMessage[] {
  const hidden = new Set<string>();
  let key: Buffer | undefined;
  const lock = (value: object): string => {
    key ??= keyOf(seal.secrets[0] ?? "", seal);
    return encrypt(value, key);
  };
  const sealed = messages.map((message): HistoryMessage => {
    if (message.role === "assistant") {
      const ids = (message.tool_calls ?? []).filter(isHidden).map(({ id }) => id);
      if (ids.length === 0) return message;
      for (const id of ids) hidden.add(id);
      const { role, content, ...rest } = message;
      return { role, content, sealed: lock(rest) };
    }
    if (message.role === "user" || !hidden.has(message.tool_call_id)) return message;
    const { role, ...rest } = message;
    return { role, tool_call_id: "", content: "", sealed: lock(rest) };
  });
  return key === undefined ? (messages as HistoryMessage[]) : sealed;
}

export function isSealed(messages: unknown): messages is unknown[] {
  return Array.isArray(messages) && messages.some((message) => typeof message?.sealed === "string");
}

/**
 * The messages as they were before they were sealed; `undefined` if one cannot be opened. Adds the ids of their hidden
 * calls to `hidden`, so that these stay hidden even if their tools have changed.
 */
export function openMessages(messages: readonly unknown[], seal: Seal, hidden: Set<string>): unknown[] | undefined {
  // All messages of a state were sealed with one key.
  return firstOf(keysOf(seal), (key) => openAll(messages, key, hidden));
}

/** Seals any value with the same binding as messages. */
export function sealValue(value: object, seal: Seal): string {
  return encrypt(value, keyOf(seal.secrets[0] ?? "", seal));
}

export function openValue(sealed: string, seal: Seal): Record<string, unknown> | undefined {
  return firstOf(keysOf(seal), (key) => decrypt(sealed, key));
}

/** A user may also open what was sealed without a user; it is theirs from then on. */
function keysOf(seal: Seal): Buffer[] {
  const owners = seal.user === undefined ? [seal] : [seal, { ...seal, user: undefined }];
  return seal.secrets.flatMap((secret) => owners.map((owner) => keyOf(secret, owner)));
}

function openAll(messages: readonly unknown[], key: Buffer, hidden: Set<string>): unknown[] | undefined {
  const plain = new Set<unknown>();
  const calls: string[] = [];
  const opened: unknown[] = [];
  for (const message of messages) {
    if (!isRecord(message) || typeof message.sealed !== "string") {
      if (isRecord(message) && message.role === "tool") plain.add(message.tool_call_id);
      opened.push(message);
      continue;
    }
    const { sealed, ...rest } = message;
    const inside = decrypt(sealed, key);
    if (inside === undefined) return undefined;
    if (Array.isArray(inside.tool_calls)) calls.push(...inside.tool_calls.map(({ id }) => String(id)));
    opened.push({ ...rest, ...inside });
  }
  // A sealed message may also have calls that are not hidden: their results are not sealed.
  for (const id of calls) if (!plain.has(id)) hidden.add(id);
  return opened;
}

function firstOf<Item, Found>(items: readonly Item[], find: (item: Item) => Found | undefined): Found | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Two keys: to encrypt, and for `ivOf`. The text begins with its purpose, so no other use of the secret gives them. */
function keyOf(secret: string, { agent, provider, user, conversation }: Seal): Buffer {
  const bound = JSON.stringify(["parley-sealed-1", agent, provider, user ?? null, conversation ?? null]);
  return createHmac("sha512", secret).update(bound).digest();
}

/** Derived from the text: a message is always sealed to the same value, so the signature over it stays valid. */
function ivOf(text: string, key: Buffer): Buffer {
  return createHmac("sha256", key.subarray(KEY_BYTES)).update(text).digest().subarray(0, IV_BYTES);
}

function encrypt(value: object, key: Buffer): string {
  const text = JSON.stringify(value);
  const iv = ivOf(text, key);
  const cipher = createCipheriv(CIPHER, key.subarray(0, KEY_BYTES), iv);
  const body = [cipher.update(text, "utf8"), cipher.final()];
  return Buffer.concat([iv, cipher.getAuthTag(), ...body]).toString("base64url");
}

function decrypt(sealed: string, key: Buffer): Record<string, unknown> | undefined {
  const bytes = Buffer.from(sealed, "base64url");
  const [iv, tag] = [bytes.subarray(0, IV_BYTES), bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES)];
  if (tag.length < TAG_BYTES) return undefined;
  try {
    const decipher = createDecipheriv(CIPHER, key.subarray(0, KEY_BYTES), iv, { authTagLength: TAG_BYTES }).setAuthTag(
      tag,
    );
    const text = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString();
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
