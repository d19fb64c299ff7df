/** Up to here bytes are kept as they come; beyond, they are copied together while they come. */
export const SMALL_BYTES = 256 * 1024;

const BLOCK_BYTES = 1024 * 1024;

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

  /** Takes the bytes over; much of them is not copied when it has its memory for itself. */
  static of(bytes: Buffer): Blocks {
    const blocks = new Blocks();
    if (bytes.length > SMALL_BYTES && hasOwnMemory(bytes)) {
      blocks.#blocks.push(bytes);
      blocks.#size = bytes.length;
      blocks.#filled = bytes.length;
    } else {
      blocks.add(bytes);
    }
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

  /** All bytes, in one piece. */
  join(): Buffer {
    return Buffer.concat([...this.take(), ...this.#pieces]);
  }

  /** The blocks of much. Whoever takes them owns them. */
  take(): Buffer<ArrayBuffer>[] {
    const last = this.#blocks.length - 1;
    return this.#blocks.map((block, index) =>
      index === last ? block.subarray(0, this.#filled) : block,
    );
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
