/** A request as JSON. What is large in it, such as a file, is written piece by piece, with turns of the event loop between. */

import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";

/** Longest text that is written with the rest, in UTF-16 units. */
const LONG = 256 * 1024;

/** One step: less than a millisecond of work, since several requests may be written at a time. */
const STEP = 128 * 1024;

/** As it is sent: one text, or the bytes of a long one in pieces. */
export type RequestBody = string | readonly Uint8Array[];

/** The JSON of a request's body: at once, unless a text in it is long. */
export function requestBody(value: unknown): RequestBody | Promise<readonly Uint8Array[]> {
  return holdsLong(value) ? inPieces(value) : JSON.stringify(value);
}

/** How many bytes are sent. */
export function lengthOf(body: RequestBody): number {
  if (typeof body === "string") return Buffer.byteLength(body);
  return body.reduce((sum, { byteLength }) => sum + byteLength, 0);
}

function holdsLong(value: unknown): boolean {
  if (typeof value === "string") return value.length > LONG;
  if (typeof value !== "object" || value === null) return false;
  return Array.isArray(value) ? value.some(holdsLong) : Object.values(value).some(holdsLong);
}

async function inPieces(value: unknown): Promise<Uint8Array[]> {
  const long: string[] = [];
  // Stands for each long text in the JSON of all the others, and in no text of a client's.
  const mark = randomUUID();
  const json = JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part !== "string" || part.length <= LONG) return part;
    long.push(part);
    return mark;
  });
  const pieces: Uint8Array[] = [];
  for (const [index, rest] of json.split(mark).entries()) {
    const text = long[index - 1];
    if (text !== undefined) {
      // Looking into a text that was put together makes one piece of it.
      await nextTurn();
      for (let at = 0; at < text.length; at += STEP) {
        // A pair of surrogates that is cut here goes as two escapes, which mean the pair.
        pieces.push(Buffer.from(JSON.stringify(text.slice(at, at + STEP)).slice(1, -1)));
        await nextTurn();
      }
    }
    pieces.push(Buffer.from(rest));
  }
  return pieces;
}
