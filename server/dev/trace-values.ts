/** Values as the trace keeps them: plain JSON without secrets, and with a digest in place of a file. */

import { createHash } from "node:crypto";
import { isStrictBase64, SNIFF_BYTES, sniffMediaType } from "../protocol/attachments.ts";
import { isRecord } from "../protocol/json.ts";

export type Strike = (text: string) => string;

/** What stands for a secret, as in the log. */
const STRUCK = "[key]";

/** Names of headers whose values are secrets of somebody: `authorization`, `x-api-key`, `set-cookie`, `x-amz-security-token`. */
const SECRET_HEADER = /(?:auth|authorization|cookie2?|credentials?|key|password|secret|signature|token)$/i;

/** The same of a body: there, `token` and `key` are words of the APIs. */
const SECRET_FIELD =
  /^(?:(?:proxy[_-]?)?authorization|(?:x[_-])?(?:goog[_-])?api[_-]?key|(?:access|auth|bearer|session)[_-]?token|(?:client[_-]?)?secret|secret[_-]?(?:access[_-]?)?key|password)$/i;

const DATA_URL = /^data:[\w.+-]+\/[\w.+-]+;base64,/;

/** Shorter texts are kept as they are, whatever they hold. */
const MIN_FILE_CHARS = 1024;

/** Deeper than any API goes. What is deeper, or holds itself, is named and left out. */
const MAX_DEPTH = 100;

/** A copy that can be written as JSON. Never throws. */
export function traced(value: unknown, strike: Strike): unknown {
  try {
    return copyOf(value, strike, 0);
  } catch {
    // A package may have put an object there whose fields cannot be read.
    return "[cannot be read]";
  }
}

function copyOf(value: unknown, strike: Strike, depth: number): unknown {
  if (typeof value === "string") return fileIn(value) ?? strike(value);
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth > MAX_DEPTH) return "[too deep]";
  if (ArrayBuffer.isView(value)) {
    return digestOf(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
  }
  if (value instanceof ArrayBuffer) return digestOf(Buffer.from(value));
  // The errors of packages hold the request, with its key.
  if (value instanceof Error) return { name: value.name, message: strike(value.message) };
  if (value instanceof Date || value instanceof URL) return strike(String(value.toJSON()));
  if (Array.isArray(value)) return value.map((item) => copyOf(item, strike, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => {
      const isSecret = typeof field === "string" && SECRET_FIELD.test(name);
      return [strike(name), isSecret ? STRUCK : copyOf(field, strike, depth + 1)];
    }),
  );
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

/** Without what a query says. */
export function tracedUrl(url: string, strike: Strike): string {
  return strike(url.replace(/([?&][^=&#]*=)[^&#]+/g, `$1${STRUCK}`));
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

/** Strikes, in the messages themselves, a secret that came in pieces: where the texts at one place of all of them hold it when they are joined. */
export function strikeAcross(events: readonly TracedEvent[], strike: Strike): void {
  const places = new Map<string, Piece[]>();
  for (const { event = "", data } of events) {
    const type = isRecord(data) && typeof data.type === "string" ? data.type : "";
    gather(data, `${event} ${type}`, places);
  }
  for (const pieces of places.values()) {
    const text = pieces.map(({ holder, name }) => holder[name]).join("");
    const struck = strike(text);
    if (struck === text) continue;
    for (const [index, { holder, name }] of pieces.entries()) holder[name] = index === 0 ? struck : "";
  }
}

/** A text, and the object or list that it stands in. */
interface Piece {
  readonly holder: Record<string, unknown>;
  readonly name: string;
}

function gather(value: unknown, path: string, places: Map<string, Piece[]>): void {
  if (typeof value !== "object" || value === null) return;
  const holder = value as Record<string, unknown>;
  for (const [name, field] of Object.entries(holder)) {
    const place = `${path}.${name}`;
    if (typeof field !== "string") gather(field, place, places);
    else if (places.has(place)) places.get(place)?.push({ holder, name });
    else places.set(place, [{ holder, name }]);
  }
}
