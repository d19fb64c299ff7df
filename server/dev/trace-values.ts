/** Values as the trace keeps them: plain JSON without secrets, and with a digest in place of a file. */

import { createHash } from "node:crypto";
import { cutSpans, type Span, STRUCK } from "../config/secrets.ts";
import { isStrictBase64, SNIFF_BYTES, sniffMediaType } from "../protocol/attachments.ts";
import { isRecord } from "../protocol/json.ts";

export type Strike = (text: string) => string;

/** Names of headers whose values are secrets of somebody: `authorization`, `x-api-key`, `set-cookie`, `x-amz-security-token`. */
const SECRET_HEADER = /(?:auth|authorization|cookie2?|credentials?|key|password|secret|signature|token)$/i;

/** The same of other fields: alone, `token` and `key` are words of the APIs, and `signature` is the model's. */
const SECRET_FIELD = /(?:authorization|secret|password|.key|.token)$/i;

const ADDRESS_FIELD = /ur[il]s?$/i;

const DATA_URL = /^data:[\w.+-]+\/[\w.+-]+;base64,/;

/** Shorter texts are kept as they are, whatever they hold. */
const MIN_FILE_CHARS = 1024;

/** Deeper, and more, than any API goes. What is beyond that is named and left out. */
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
  /** The objects and lists that hold the value. */
  readonly #above = new Set<object>();
  #left = MAX_VALUES;

  constructor(strike: Strike) {
    this.#strike = strike;
  }

  /** `name`: of the field that the value, or the list with it, stands in. */
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
    // The errors of packages hold the request, with its key.
    if (value instanceof Error) return { name: value.name, message: this.#strike(value.message) };
    if (value instanceof Date) return value.toJSON();
    if (value instanceof URL) return tracedUrl(value.href, this.#strike);
    if (this.#above.has(value)) return "[circular]";
    if (this.#above.size > MAX_DEPTH) return "[too deep]";
    this.#above.add(value);
    // One more than may follow is there to be named.
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
  // A JSON Schema says there what a tool takes.
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

/** Without a user's name and password, and what a query says. */
export function tracedUrl(url: string, strike: Strike): string {
  const withoutUser = url.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#]+@/i, `$1${STRUCK}@`);
  return strike(withoutUser.replace(/([?&](?:[^=&#]*=)?)[^&#]+/g, `$1${STRUCK}`));
}

/** The type, size and digest of a file, in place of its base64, with which a `data:` URL goes on to begin. */
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
 * What distinguishes the parts of an answer: indices and ids beside a piece and around it, or one of them where the other
 * changes from piece to piece, or places in lists.
 */
const PARTS = [/(?:index|id)$/i, /index$/i, /id$/i, undefined];

/**
 * Strikes, in the messages themselves, a secret that came in pieces: where the texts of one part, at one place of all of
 * them, hold it when they are joined. Other texts stay where they are.
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

/** A text, and the object or list that it stands in. */
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
