/** Text frames of RFC 6455, 5.2, as a server sends them: whole messages, not masked and not compressed. */

/** FIN, and the opcode of text. */
const WHOLE_TEXT = 0x81;
/** Said in the place of a length that needs two bytes of its own, and of one that needs eight. */
const TWO_BYTES = 126;
const EIGHT_BYTES = 127;

/** A message, and its size in UTF-8. */
export interface TextMessage {
  readonly json: string;
  readonly bytes: number;
}

/**
 * A frame for each message, in one piece of memory. `ws` would make two for each, and Node one system call with
 * all of them, which costs more than the bytes. In order with what `ws` writes itself, because nothing of ours
 * waits in its queue: that is for what it compresses.
 */
export function textFrames(messages: readonly TextMessage[]): Buffer {
  let size = 0;
  for (const { bytes } of messages) size += headBytes(bytes) + bytes;
  const frames = Buffer.allocUnsafe(size);
  let at = 0;
  for (const { json, bytes } of messages) {
    at = writeHead(frames, at, bytes);
    at += frames.write(json, at);
  }
  return frames;
}

function headBytes(bytes: number): number {
  if (bytes < TWO_BYTES) return 2;
  return bytes < 65_536 ? 4 : 10;
}

function writeHead(frames: Buffer, at: number, bytes: number): number {
  frames[at] = WHOLE_TEXT;
  if (bytes < TWO_BYTES) {
    frames[at + 1] = bytes;
    return at + 2;
  }
  if (bytes < 65_536) {
    frames[at + 1] = TWO_BYTES;
    return frames.writeUInt16BE(bytes, at + 2);
  }
  frames[at + 1] = EIGHT_BYTES;
  return frames.writeBigUInt64BE(BigInt(bytes), at + 2);
}
