/** The JSON of a message, read so that no message exhausts the memory. */

import { ApiError, invalidRequest } from "../protocol/errors.ts";
import { tryParse } from "../protocol/json.ts";

/** Maximum number of values in one JSON text: 64 MiB of "[]," would take gigabytes of memory. */
const MAX_VALUES = 500_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const ARRAY = 0x5b;
const ARRAY_END = 0x5d;
const OBJECT = 0x7b;
const OBJECT_END = 0x7d;
const UTF8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Parses strict UTF-8, then JSON. Depth and number of values are counted in the bytes before parsing: a process that runs out
 * of memory ends, even if that happens in a worker thread.
 * @throws ApiError
 */
export function parseJson(bytes: Uint8Array, maxDepth: number): unknown {
  refuseMuchStructure(bytes, maxDepth);
  const value = tryParse(decodeUtf8(bytes));
  if (value === undefined) throw new ApiError("invalid_json", "The message is not valid JSON.");
  return value;
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw new ApiError("invalid_json", "The message is not valid UTF-8.");
  }
}

function refuseMuchStructure(bytes: Uint8Array, maxDepth: number): void {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE:
        at = endOfString(bytes, at + 1);
        break;
      case COMMA:
        values++;
        break;
      case ARRAY:
      case OBJECT:
        values++;
        depth++;
        if (depth > maxDepth) {
          throw invalidRequest("", `The message is nested deeper than ${maxDepth} levels.`);
        }
        break;
      case ARRAY_END:
      case OBJECT_END:
        depth--;
    }
    if (values > MAX_VALUES) {
      throw new ApiError("request_too_large", `The message has more than ${MAX_VALUES} values.`);
    }
  }
}

/** Where the string that begins at `from` ends. A string without escapes, such as a file, is skipped in one step. */
function endOfString(bytes: Uint8Array, from: number): number {
  const quote = bytes.indexOf(QUOTE, from);
  if (quote === -1) return bytes.length;
  if (bytes[quote - 1] !== BACKSLASH) return quote;
  let at = from;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}
