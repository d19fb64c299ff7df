import type { Duplex } from "node:stream";
import { unmask } from "./unmask.ts";

/** Payload of one piece. */
const PIECE_BYTES = 128 * 1024;

/** More pieces than this make no pause shorter, and `ws` bounds their number. */
const MOST_PIECES = 1024;

/** RFC 6455, 5.2. */
const FIN = 0x80;
const RESERVED = 0x70;
const OPCODE = 0x0f;
const CONTINUATION = 0x0;
const TEXT = 0x1;
const BINARY = 0x2;
const MASKED = 0x80;
const LENGTH = 0x7f;
const TWO_BYTES = 126;
const EIGHT_BYTES = 127;

/** A data frame's first bytes: two, a length of up to eight, a key of four. */
interface Header {
  readonly first: number;
  readonly isMasked: boolean;
  readonly size: number;
  /** Bytes of the payload. */
  readonly length: number;
}

/** A frame that is passed on in pieces. */
interface LargeFrame {
  /** Bit and opcode of the first piece, and the bit of the last one. */
  opcode: number;
  readonly fin: number;
  readonly key: Buffer;
  /** Bytes that were passed on. */
  passed: number;
  /** Bytes that are still to be passed on, in all and of this piece. */
  left: number;
  leftOfPiece: number;
}

/**
 * Between a connection and `ws`: makes fragments of each large frame while it comes. `ws` takes a frame's payload out of its
 * mask when all of it is there, byte by byte in one turn of the event loop, and for 28 MB everybody else would wait for that. Of a text
 * in fragments `ws` makes one piece in one turn, of a binary message it need not: so such a text goes on as one.
 * Whatever `ws` would refuse is passed on as it is.
 */
export class FrameSplitter {
  readonly #maxPayload: number;
  readonly #pieceBytes: number;
  readonly #pass: (bytes: Buffer) => void;
  readonly #textBegins: () => void;
  /** Bytes of the message so far. */
  #message = 0;
  /** Bytes of a frame that goes on as it is. */
  #left = 0;
  #large: LargeFrame | undefined;
  /** A header that has come in part. */
  #part: Buffer | undefined;

  /**
   * `maxPayload`: bytes of one message. `pass` is given what is to be read in place of what came; before it is given
   * a text under the name of a binary message, `textBegins` is called.
   */
  constructor(maxPayload: number, pass: (bytes: Buffer) => void, textBegins: () => void) {
    this.#maxPayload = maxPayload;
    this.#pieceBytes = Math.max(PIECE_BYTES, Math.ceil(maxPayload / MOST_PIECES));
    this.#pass = pass;
    this.#textBegins = textBegins;
  }

  push(chunk: Buffer): void {
    const bytes = this.#part === undefined ? chunk : Buffer.concat([this.#part, chunk]);
    this.#part = undefined;
    // What stands between `from` and `at` goes on as it is.
    let from = 0;
    let at = 0;
    while (at < bytes.length) {
      if (this.#large !== undefined) {
        at = this.#passPiece(this.#large, bytes, at);
        from = at;
      } else if (this.#left > 0) {
        const count = Math.min(this.#left, bytes.length - at);
        this.#left -= count;
        at += count;
      } else {
        const header = readHeader(bytes, at);
        if (header === undefined) break;
        const isToSplit = this.#isToSplit(header);
        const isRenamed = isTextInPieces(header, isToSplit);
        if (isToSplit || isRenamed) {
          if (at > from) this.#pass(bytes.subarray(from, at));
          from = at + header.size;
        }
        if (isRenamed) this.#textBegins();
        const first = isRenamed ? asBinary(header.first) : header.first;
        if (isToSplit) {
          this.#large = largeFrame({ ...header, first }, bytes, at);
        } else {
          if (isRenamed) this.#pass(Buffer.concat([Buffer.of(first), bytes.subarray(at + 1, from)]));
          this.#left = header.length;
        }
        at += header.size;
      }
    }
    if (at > from) this.#pass(bytes.subarray(from, at));
    if (at < bytes.length) this.#part = Buffer.from(bytes.subarray(at));
  }

  #isToSplit({ first, isMasked, length }: Header): boolean {
    const opcode = first & OPCODE;
    if (opcode > BINARY || (first & RESERVED) !== 0 || !isMasked) return false;
    this.#message = length + (opcode === CONTINUATION ? this.#message : 0);
    return length > this.#pieceBytes && this.#message <= this.#maxPayload;
  }

  #passPiece(frame: LargeFrame, bytes: Buffer, from: number): number {
    if (frame.leftOfPiece === 0) {
      frame.leftOfPiece = Math.min(this.#pieceBytes, frame.left);
      const fin = frame.leftOfPiece === frame.left ? frame.fin : 0;
      this.#pass(writeHeader(fin | frame.opcode, frame.leftOfPiece));
      frame.opcode = CONTINUATION;
    }
    const to = Math.min(bytes.length, from + frame.leftOfPiece);
    const payload = bytes.subarray(from, to);
    unmask(payload, frame.key, frame.passed);
    frame.passed += payload.length;
    frame.leftOfPiece -= payload.length;
    frame.left -= payload.length;
    if (frame.left === 0) this.#large = undefined;
    this.#pass(payload);
    return to;
  }
}

/** Who is told what a connection brings. */
interface FrameListener {
  /** So much came from the network, and has been read. */
  received(bytes: number): void;
  /** What `ws` will call the next binary message is a text, of which nobody has seen whether it is UTF-8. */
  textBegins(): void;
}

/** Whether `ws` will have this message in more than one piece. */
function isTextInPieces({ first }: Header, isToSplit: boolean): boolean {
  return (first & OPCODE) === TEXT && (isToSplit || (first & FIN) === 0);
}

function asBinary(first: number): number {
  return (first & ~OPCODE) | BINARY;
}

/**
 * Puts a splitter before what `ws` reads with. `ws` stops reading by taking its listener away, which it finds in
 * the property that `EventEmitter.rawListeners` documents.
 */
export function splitLargeFrames(connection: Duplex, maxPayload: number, listener: FrameListener): void {
  const [read, ...others] = connection.listeners("data");
  if (read === undefined || others.length > 0) throw new Error("ws reads in a new way");
  // Made when the peer says something: there are many sockets, and most are idle.
  let splitter: FrameSplitter | undefined;
  const split = (chunk: Buffer) => {
    splitter ??= splitterOf(connection, maxPayload, read, listener);
    splitter.push(chunk);
    listener.received(chunk.length);
  };
  connection.removeListener("data", read as () => void);
  connection.on("data", Object.assign(split, { listener: read }));
}

function splitterOf(
  connection: Duplex,
  maxPayload: number,
  // As `listeners` has it.
  // biome-ignore lint/complexity/noBannedTypes: it is called with `call`.
  read: Function,
  listener: FrameListener,
): FrameSplitter {
  const pass = (bytes: Buffer) => {
    // It may have had enough in the middle of a chunk.
    if (connection.listeners("data").includes(read)) read.call(connection, bytes);
  };
  return new FrameSplitter(maxPayload, pass, () => listener.textBegins());
}

/** `undefined`: not all of it is there. */
function readHeader(bytes: Buffer, at: number): Header | undefined {
  const second = bytes[at + 1];
  if (second === undefined) return undefined;
  const isMasked = (second & MASKED) !== 0;
  const short = second & LENGTH;
  const lengthBytes = short === TWO_BYTES ? 2 : short === EIGHT_BYTES ? 8 : 0;
  const size = 2 + lengthBytes + (isMasked ? 4 : 0);
  if (at + size > bytes.length) return undefined;
  const length =
    lengthBytes === 0 ? short : lengthBytes === 2 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2));
  return { first: bytes[at] ?? 0, isMasked, size, length };
}

function largeFrame({ first, size, length }: Header, bytes: Buffer, at: number): LargeFrame {
  const key = Buffer.from(bytes.subarray(at + size - 4, at + size));
  return { opcode: first & OPCODE, fin: first & FIN, key, passed: 0, left: length, leftOfPiece: 0 };
}

/** `ws` leaves alone what this key masks. */
const NO_MASK = Buffer.alloc(4);

function writeHeader(first: number, length: number): Buffer {
  const lengthBytes = length < TWO_BYTES ? 0 : length < 65_536 ? 2 : 8;
  const header = Buffer.alloc(2 + lengthBytes);
  header[0] = first;
  header[1] = MASKED | (lengthBytes === 0 ? length : lengthBytes === 2 ? TWO_BYTES : EIGHT_BYTES);
  if (lengthBytes === 2) header.writeUInt16BE(length, 2);
  if (lengthBytes === 8) header.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([header, NO_MASK]);
}
