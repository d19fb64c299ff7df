/** Server-Sent Events in both directions: an encoder, and a decoder that accepts input split at any place. */

import type { NumberedEvent } from "./events.ts";

/** One frame. The JSON has all fields, so that a client may read only the `data:` lines. */
export function encodeFrame(event: NumberedEvent): string {
  return `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** A comment frame, which clients ignore: keeps proxies from closing a silent stream. */
export const KEEP_ALIVE_FRAME = ": keep-alive\n\n";

/** One dispatched event of a stream. */
export interface SseMessage {
  /** The `event:` field; "message" where there is none (WHATWG HTML, 9.2.6). */
  event: string;
  data: string;
}

/**
 * Decodes an event stream that arrives in any pieces: feed it text, get the events that became complete.
 * An event that is not ended by a blank line is discarded, as WHATWG HTML 9.2.6 demands.
 * Throws `RangeError` when one event grows beyond `maxChars`, so that an endless line cannot fill the memory.
 */
export class SseDecoder {
  readonly #maxChars: number;
  #rest: string[] = [];
  #restChars = 0;
  #data: string | undefined;
  #event = "";
  #atStart = true;
  #afterCarriageReturn = false;

  constructor({ maxChars = 16 * 1024 * 1024 } = {}) {
    this.#maxChars = maxChars;
  }

  feed(chunk: string): SseMessage[] {
    const messages: SseMessage[] = [];
    let text = chunk;
    if (text === "") return messages;
    if (this.#atStart) {
      this.#atStart = false;
      if (text.startsWith("\uFEFF")) text = text.slice(1);
    }
    // A CRLF that is split between two chunks ends one line, not two.
    if (this.#afterCarriageReturn && text.startsWith("\n")) text = text.slice(1);
    this.#afterCarriageReturn = chunk.endsWith("\r");

    // Almost every stream ends its lines with LF alone: one check per chunk saves the search for CR in each line.
    const nextLineEnd = text.includes("\r") ? nextLineFeedOrCarriageReturn : nextLineFeed;
    let from = 0;
    for (let at = nextLineEnd(text, 0); at !== -1; at = nextLineEnd(text, from)) {
      const message =
        this.#rest.length === 0 ? this.#line(text, from, at) : this.#line(this.#takeRest(text.slice(from, at)));
      from = text.charCodeAt(at) === 13 && text.charCodeAt(at + 1) === 10 ? at + 2 : at + 1;
      if (message !== undefined) messages.push(message);
    }
    if (from < text.length) {
      this.#rest.push(text.slice(from));
      this.#restChars += text.length - from;
    }
    if (this.#restChars + (this.#data?.length ?? 0) > this.#maxChars) {
      throw new RangeError(`an event is longer than ${this.#maxChars} characters`);
    }
    return messages;
  }

  /** Pieces of an unfinished line are joined once, when it ends: joining at each chunk would be quadratic. */
  #takeRest(end: string): string {
    const line = this.#rest.join("") + end;
    this.#rest = [];
    this.#restChars = 0;
    return line;
  }

  /** Reads the line between `from` and `to`, without copying it from `text`. */
  #line(text: string, from = 0, to = text.length): SseMessage | undefined {
    if (from === to) return this.#dispatch();
    // Not a field of the standard: llama.cpp reports its failures in it.
    const error = fieldValue("error", text, from, to);
    if (error !== undefined) this.#event = "error";
    const data = error ?? fieldValue("data", text, from, to);
    if (data !== undefined) {
      this.#data = this.#data === undefined ? data : `${this.#data}\n${data}`;
    } else {
      this.#event = fieldValue("event", text, from, to) ?? this.#event;
    }
    return undefined;
  }

  #dispatch(): SseMessage | undefined {
    const data = this.#data;
    const event = this.#event || "message";
    this.#data = undefined;
    this.#event = "";
    return data === undefined ? undefined : { event, data };
  }
}

/** The value of `field`; `undefined` if the line has another field or is a comment. */
function fieldValue(field: string, text: string, from: number, to: number): string | undefined {
  if (!text.startsWith(field, from)) return undefined;
  const end = from + field.length;
  if (end === to) return "";
  if (text.charCodeAt(end) !== 58) return undefined;
  return text.slice(text.charCodeAt(end + 1) === 32 ? end + 2 : end + 1, to);
}

function nextLineFeed(text: string, from: number): number {
  return text.indexOf("\n", from);
}

function nextLineFeedOrCarriageReturn(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === 10 || char === 13) return at;
  }
  return -1;
}
