import { UpstreamGarbage } from "../failures/failures.ts";

/** Largest frame. AWS ends far below; the package would allocate whatever four bytes announce, up to 4 GiB. */
const MAX_FRAME_BYTES = 16 * 1024 * 1024;

/** Prelude, its checksum and the checksum of the message: what a frame without content takes. */
const MIN_FRAME_BYTES = 16;

const LENGTH_BYTES = 4;

/**
 * Follows the frames of `application/vnd.amazon.eventstream`, each of which begins with its own length in
 * four bytes, big-endian, ahead of the package that reads them.
 */
export class FrameLengths {
  /** Bytes of the present frame that are still to come, once its length is known. */
  #left = 0;
  #length = 0;
  /** Bytes of the length that are there. */
  #known = 0;

  /** @throws UpstreamGarbage for a length that no frame has. */
  pass(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#left === 0) {
        this.#length = this.#length * 256 + (bytes[at++] ?? 0);
        if (++this.#known < LENGTH_BYTES) continue;
        if (this.#length < MIN_FRAME_BYTES || this.#length > MAX_FRAME_BYTES) {
          throw new UpstreamGarbage(`the stream has a frame of ${this.#length} bytes`);
        }
        this.#left = this.#length - LENGTH_BYTES;
        this.#length = 0;
        this.#known = 0;
      }
      const passed = Math.min(this.#left, bytes.length - at);
      this.#left -= passed;
      at += passed;
    }
  }
}
