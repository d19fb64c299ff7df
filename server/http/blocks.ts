/** Up to here bytes are kept as they come; beyond, they are copied together while they come. */
export const SMALL_BYTES = 256 * 1024;

const BLOCK_BYTES = 1024 * 1024;

/** Less is copied together: each block is handed over by itself. */
const MIN_BLOCK_BYTES = 32 * 1024;

/**
 * Bytes that arrive piece by piece. Many of them are gathered in blocks of their own memory, which can be handed to
 * another thread without being copied again.
 */
export class Blocks {
  #size = 0;
  #pieces: Buffer[] = [];
  readonly #blocks: Buffer<ArrayBuffer>[] = [];
  /** Bytes in the last block. */
  #filled = 0;

  /** Takes the bytes over; what of much has its memory for itself is not copied. */
  static of(bytes: Buffer | readonly Buffer[]): Blocks {
    const pieces: readonly Buffer[] = Buffer.isBuffer(bytes) ? [bytes] : bytes;
    const size = pieces.reduce((sum, { length }) => sum + length, 0);
    const blocks = new Blocks();
    for (const piece of pieces) {
      if (size <= SMALL_BYTES) blocks.add(piece);
      else if (piece.length >= MIN_BLOCK_BYTES && hasOwnMemory(piece)) blocks.#adopt(piece);
      else blocks.#copy(piece);
    }
    blocks.#size = size;
    return blocks;
  }

  get size(): number {
    return this.#size;
  }

  /** Whether there is so much that reading it would be felt by others. */
  get isMuch(): boolean {
    return this.#size > SMALL_BYTES;
  }

  add(piece: Buffer): void {
    this.#size += piece.length;
    this.#pieces.push(piece);
    if (!this.isMuch) return;
    for (const kept of this.#pieces) this.#copy(kept);
    this.#pieces = [];
  }

  /** All bytes, in one piece. To be read only: what came in one piece is the very memory that it came in. */
  join(): Buffer {
    const [piece] = this.#pieces;
    if (piece !== undefined && piece.length === this.#size) return piece;
    return Buffer.concat([...this.take(), ...this.#pieces]);
  }

  /** The blocks of much. Whoever takes them owns them. */
  take(): Buffer<ArrayBuffer>[] {
    const last = this.#blocks.length - 1;
    return this.#blocks.map((block, index) => (index === last ? block.subarray(0, this.#filled) : block));
  }

  #adopt(piece: Buffer<ArrayBuffer>): void {
    const last = this.#blocks.length - 1;
    const open = this.#blocks[last];
    // Nothing more goes into it.
    if (open !== undefined) this.#blocks[last] = open.subarray(0, this.#filled);
    this.#blocks.push(piece);
    this.#filled = piece.length;
  }

  #copy(piece: Buffer): void {
    for (let at = 0; at < piece.length; ) {
      if (this.#filled === (this.#blocks.at(-1)?.length ?? 0)) {
        this.#blocks.push(Buffer.allocUnsafeSlow(BLOCK_BYTES));
        this.#filled = 0;
      }
      const block = this.#blocks.at(-1);
      if (block === undefined) return;
      const copied = piece.copy(block, this.#filled, at);
      this.#filled += copied;
      at += copied;
    }
  }
}

function hasOwnMemory(bytes: Buffer): bytes is Buffer<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer && bytes.length === bytes.buffer.byteLength;
}
