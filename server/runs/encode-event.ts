import type { EncodedEvent } from "../protocol/encoded-event.ts";
import type { StreamEvent } from "../protocol/events.ts";

/** Encodes an event once, whoever reads it and over whatever line. */
export function encodeEvent(event: StreamEvent, id: number): EncodedEvent {
  const { type } = event;
  // Almost every event is a piece of text, and writing out one known shape costs half.
  if (type === "token" || type === "thinking") {
    const { data } = event;
    // What a project's own code says may be no text, whatever its type promises: it is told as it is.
    if (typeof data === "string" && isPlain(data)) {
      const json = `{"type":"${type}","data":"${data}","id":${id}}`;
      // To tell a character, V8 makes one piece of what was joined: a log of pieces would be several times as large.
      json.charCodeAt(0);
      return { id, type, json, bytes: json.length };
    }
    return sized(id, type, `{"type":"${type}","data":${JSON.stringify(data)},"id":${id}}`);
  }
  return sized(id, type, `${JSON.stringify(event).slice(0, -1)},"id":${id}}`);
}

function sized(id: number, type: StreamEvent["type"], json: string): EncodedEvent {
  return { id, type, json, bytes: Buffer.byteLength(json) };
}

/** Longest text that is looked at here: V8's own writer is quicker with more. */
const PLAIN_CHARS = 64;

/** Whether this is short and stands in JSON as it is: printable ASCII without a quotation mark or backslash (RFC 8259, 7). */
function isPlain(text: string): boolean {
  if (text.length > PLAIN_CHARS) return false;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char < 32 || char > 126 || char === 34 || char === 92) return false;
  }
  return true;
}
