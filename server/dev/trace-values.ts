/** Values as the trace keeps them: plain JSON without secrets, and with a digest in place of a file. */

import { createHash } from "node:crypto";
import { cutSpans, type Span, STRUCK } from "../config/secrets.ts";
import { isStrictBase64, SNIFF_BYTES, sniffMediaType } from "../protocol/attachments.ts";
import { isRecord } from "../protocol/json.ts";

export type Strike = (text: string) => string;

/** Names of headers whose values are secrets: `authorization`, `x-api-key`, `set-cookie`, `x-amz-security-token`. */
const SECRET_HEADER = /(?:auth|authorization|cookie2?|credentials?|key|password|secret|signature|token)$/i;

/** The same for other fields, except `token` and `key` alone, which are words of the APIs, and the model's `signature`. */
const SECRET_FIELD = /(?:authorization|secret|password|.key|.token)$/i;

const ADDRESS_FIELD = /ur[il]s?$/i;

const DATA_URL = /^data:[\w.+-]+\/[\w.+-]+;base64,/;

/** Shorter texts are never taken for a file. */
const MIN_FILE_CHARS = 1024;

/** More depth and values than any API uses. What exceeds them is replaced by a note. */
const MAX_DEPTH = 100;
const MAX_VALUES = 200_000;

/** A copy that can be written as JSON. Never throws. */
export function traced(value: unknown, strike: Strike): unknown {
  try {
    return new Copy(strike).of(value, "");
  } catch {
    // A package may have put an object there whose fields cannot be read.
    return "[cannot be read]";
  }
}

class Copy {
  readonly #strike: Strike;
  /** The objects and lists that contain the value. */
  readonly #above = new Set<object>();
  #left = MAX_VALUES;

  constructor(strike: Strike) {
    this.#strike = strike;
  }

  /** `name`: the field of the value, or of the list that has the value. */
  of(value: unknown, name: string): unknown {
    if (this.#left === 0) return "[too much]";
    this.#left -= 1;
    if (typeof value === "string")
      return fileIn(value) ?? (ADDRESS_FIELD.test(name) ? tracedUrl(value, this.#strike) : this.#strike(value));
    if (typeof value === "bigint") return String(value);
    if (typeof value !== "object" || value === null) return value;
    if (ArrayBuffer.isView(value)) {
      return digestOf(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
    }
    if (value instanceof ArrayBuffer) return digestOf(Buffer.from(value));
    // Errors of packages may contain the request, with its key.
    if (value instanceof Error) return { name: value.name, message: this.#strike(value.message) };
    if (value instanceof Date) return value.toJSON();
    if (value instanceof URL) return tracedUrl(value.href, this.#strike);
    if (this.#above.has(value)) return "[circular]";
    if (this.#above.size > MAX_DEPTH) return "[too deep]";
    this.#above.add(value);
    // One more than allowed, to become the note that the rest is left out.
    const end = this.#left + 1;
    const copy = Array.isArray(value)
      ? value.slice(0, end).map((item) => this.of(item, name))
      : this.#fields(Object.entries(value).slice(0, end), name);
    this.#above.delete(value);
    return copy;
  }

  #fields(fields: [string, unknown][], holderName: string): unknown {
    const copyOf = (name: string, value: unknown) =>
      isSecret(name, value, holderName) ? STRUCK : this.of(value, name);
    return Object.fromEntries(fields.map(([name, value]) => [this.#strike(name), copyOf(name, value)]));
  }
}

function isSecret(name: string, value: unknown, holderName: string): boolean {
  if (value === null || value === undefined || typeof value === "boolean") return false;
  if (/headers$/i.test(holderName)) return SECRET_HEADER.test(name);
  // In a JSON Schema, this describes a parameter of a tool.
  return SECRET_FIELD.test(name) && !(holderName === "properties" && isRecord(value));
}

export function tracedHeaders(
  headers: Iterable<readonly [name: string, value: string]>,
  strike: Strike,
): Record<string, string> {
  const entries = [...headers].map(([name, value]) => [
    name.toLowerCase(),
    SECRET_HEADER.test(name) ? STRUCK : strike(value),
  ]);
  return Object.fromEntries(entries);
}

/** The URL without a user's name and password, and without the values of its query. */
export function tracedUrl(url: string, strike: Strike): string {
  const withoutUser = url.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#]+@/i, `$1${STRUCK}@`);
  return strike(withoutUser.replace(/([?&](?:[^=&#]*=)?)[^&#]+/g, `$1${STRUCK}`));
}

/** The type, size and digest of a file, in place of its base64. The beginning of a `data:` URL is kept. */
function fileIn(text: string): string | undefined {
  if (text.length < MIN_FILE_CHARS) return undefined;
  const [start = ""] = DATA_URL.exec(text.slice(0, MIN_FILE_CHARS)) ?? [];
  const base64 = text.slice(start.length);
  if (!isStrictBase64(base64)) return undefined;
  const bytes = Buffer.from(base64, "base64");
  // Encrypted reasoning and signatures are base64, too, and a model wants them back.
  if (start === "" && sniffMediaType(bytes.subarray(0, SNIFF_BYTES)) === undefined) return undefined;
  return `${start}${digestOf(bytes)}`;
}

function digestOf(bytes: Uint8Array): string {
  const type = sniffMediaType(bytes.subarray(0, SNIFF_BYTES)) ?? "file";
  return `[${type}, ${bytes.byteLength} bytes, sha256 ${createHash("sha256").update(bytes).digest("hex")}]`;
}

/** One message of a stream. */
export interface TracedEvent {
  readonly event?: string | undefined;
  readonly data: unknown;
}

/**
 * Fields that distinguish the parts of an answer: indices and ids beside a piece and around it; one of the two, if the
 * other changes from piece to piece; or only places in lists.
 */
const PARTS = [/(?:index|id)$/i, /index$/i, /id$/i, undefined];

/**
 * Removes, from the messages themselves, a secret that came in pieces: one that is found when the texts of one part, at
 * the same place of each message, are joined. Other texts stay as they are.
 */
export function strikeAcross(events: readonly TracedEvent[], find: (text: string) => Span[]): void {
  for (const part of PARTS) {
    const places = new Map<string, Piece[]>();
    for (const { event = "", data } of events) {
      const type = isRecord(data) && typeof data.type === "string" ? data.type : "";
      gather(data, `${event} ${type}`, part, places);
    }
    for (const pieces of places.values()) strikePieces(pieces, find);
  }
}

/** A text, and the object or list that contains it. */
interface Piece {
  readonly holder: Record<string, unknown>;
  readonly name: string;
  readonly text: string;
}

function gather(value: unknown, path: string, part: RegExp | undefined, places: Map<string, Piece[]>): void {
  if (typeof value !== "object" || value === null) return;
  const holder = value as Record<string, unknown>;
  const fields = Object.entries(holder);
  const label = part ? fields.filter(([name, field]) => part.test(name) && typeof field !== "object").join() : "";
  for (const [name, field] of fields) {
    const place = `${path}${label}.${part && Array.isArray(value) ? "" : name}`;
    if (typeof field !== "string") gather(field, place, part, places);
    else if (places.has(place)) places.get(place)?.push({ holder, name, text: field });
    else places.set(place, [{ holder, name, text: field }]);
  }
}

function strikePieces(pieces: readonly Piece[], find: (text: string) => Span[]): void {
  const spans = find(pieces.map(({ text }) => text).join(""));
  let at = 0;
  for (const { holder, name, text } of pieces) {
    if (spans.length === 0) return;
    holder[name] = cutSpans(text, spans, at);
    at += text.length;
    while ((spans[0]?.[1] ?? Number.POSITIVE_INFINITY) <= at) spans.shift();
  }
}
