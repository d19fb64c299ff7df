/**
 * The frames of `application/vnd.amazon.eventstream`: total length, length of the headers, checksum of both; headers; payload;
 * checksum of all. https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html
 */

import { crc32 } from "node:zlib";
import { asString } from "../../protocol/json.ts";
import type { SseMessage } from "../../protocol/sse.ts";
import { UpstreamGarbage } from "../failures.ts";

/** The largest accepted frame. AWS's frames are far smaller; a length field could announce up to 4 GiB. */
const MAX_FRAME_BYTES = 16 * 1024 * 1024;

const LENGTH_BYTES = 4;
const PRELUDE_BYTES = 12;
const CHECKSUM_BYTES = 4;
const MIN_FRAME_BYTES = PRELUDE_BYTES + CHECKSUM_BYTES;

/** Packets must be pushed in their order. */
export class EventStreamParser {
  /** Packets of a frame whose end has not arrived yet. */
  #packets: Buffer[] = [];
  #bytes = 0;
  /** How many bytes are needed next: the length of the frame, once it is known. */
  #needed = LENGTH_BYTES;

  /** Yields the messages that this packet completes, also those before bytes that are not a frame. @throws UpstreamGarbage */
  *push(packet: Buffer): Generator<SseMessage> {
    this.#packets.push(packet);
    this.#bytes += packet.length;
    if (this.#bytes < this.#needed) return;
    let rest = this.#packets.length === 1 ? packet : Buffer.concat(this.#packets);
    for (;;) {
      this.#needed = rest.length < LENGTH_BYTES ? LENGTH_BYTES : frameLength(rest);
      if (rest.length < this.#needed) break;
      yield readFrame(rest.subarray(0, this.#needed));
      rest = rest.subarray(this.#needed);
    }
    this.#packets = rest.length === 0 ? [] : [rest];
    this.#bytes = rest.length;
  }
}

function frameLength(bytes: Buffer): number {
  const length = bytes.readUInt32BE(0);
  if (length < MIN_FRAME_BYTES || length > MAX_FRAME_BYTES)
    throw new UpstreamGarbage(`the stream has a frame of ${length} bytes`);
  return length;
}

function readFrame(frame: Buffer): SseMessage {
  const end = frame.length - CHECKSUM_BYTES;
  if (crc32(frame.subarray(0, end)) !== frame.readUInt32BE(end))
    throw new UpstreamGarbage("a frame has a wrong checksum");
  const payloadStart = PRELUDE_BYTES + frame.readUInt32BE(4);
  if (payloadStart > end) throw new UpstreamGarbage("the headers of a frame are longer than the frame");
  const headers = readHeaders(frame.subarray(PRELUDE_BYTES, payloadStart));
  const data = frame.toString("utf8", payloadStart, end);
  switch (headers.get(":message-type")) {
    case "exception":
      return exception(headers.get(":exception-type"), messageOf(data));
    case "error":
      return exception(headers.get(":error-code"), headers.get(":error-message"));
    default:
      return { event: headers.get(":event-type") ?? "", data };
  }
}

/** Both kinds of failure in the one form that `transport/request.ts` recognizes. */
function exception(type = "", message = ""): SseMessage {
  return { event: "error", data: JSON.stringify({ type, message }) };
}

function messageOf(payload: string): string {
  try {
    return asString(JSON.parse(payload).message);
  } catch {
    return payload;
  }
}

/** The length of a value in bytes, by its type; values of types 6 and 7 begin with their length. */
const VALUE_BYTES: Readonly<Record<number, number>> = { 0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16 };
const TEXT = 7;

function readHeaders(bytes: Buffer): Map<string, string> {
  const headers = new Map<string, string>();
  let at = 0;
  try {
    while (at < bytes.length) {
      const nameEnd = at + 1 + bytes.readUInt8(at);
      const type = bytes.readUInt8(nameEnd);
      const fixed = VALUE_BYTES[type];
      const valueStart = nameEnd + (fixed === undefined ? 3 : 1);
      const valueEnd = valueStart + (fixed ?? bytes.readUInt16BE(nameEnd + 1));
      if (type === TEXT)
        headers.set(bytes.toString("utf8", at + 1, nameEnd), bytes.toString("utf8", valueStart, valueEnd));
      at = valueEnd;
    }
  } catch (cause) {
    throw new UpstreamGarbage("a header of a frame is cut", { cause });
  }
  if (at > bytes.length) throw new UpstreamGarbage("a header of a frame is cut");
  return headers;
}
