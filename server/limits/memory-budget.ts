/** Bounds the memory of all messages being received or answered, and of data that can be dropped for them. */

import { ApiError } from "../protocol/errors.ts";
import { once, type Release } from "./limiter.ts";

/** Messages up to this size are not counted: the limits of connections and runs bound them well enough. */
const UNCOUNTED_BYTES = 64 * 1024;

const RETRY_AFTER_SECONDS = 5;

export interface MessageMemory {
  /** Checks the room for a message of known length, without counting it. @throws ApiError `overloaded` if there is none now */
  expect(bytes: number): void;
  /** Called with the total of bytes that have arrived. @throws ApiError `overloaded`; the count then stays as it was */
  growTo(bytes: number): void;
  /** The bytes stay counted until every release that was handed out has been called. */
  share(): Release;
  /** Uncounts a message that did not arrive completely, so that nothing shares it. */
  drop(): void;
}

/** Bytes that can be dropped when messages need their room. */
interface Droppable {
  bytes: number;
  drop(): void;
}

export class MemoryBudget {
  readonly #maxBytes: number;
  #messageBytes = 0;
  /** Oldest first. */
  readonly #droppable = new Set<Droppable>();
  #droppableBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get usedBytes(): number {
    return this.#messageBytes + this.#droppableBytes;
  }

  /** For one message. Nothing is counted yet. */
  openMessage(): MessageMemory {
    let counted = 0;
    let sharers = 0;
    const drop = () => {
      this.#messageBytes -= counted;
      counted = 0;
    };
    const refuseBeyond = (bytes: number) => {
      if (bytes > UNCOUNTED_BYTES && this.#messageBytes - counted + bytes > this.#maxBytes) throw full();
    };
    return {
      expect: refuseBeyond,
      growTo: (bytes) => {
        refuseBeyond(bytes);
        if (bytes <= UNCOUNTED_BYTES || bytes <= counted) return;
        this.#messageBytes += bytes - counted;
        counted = bytes;
        this.#makeRoom();
      },
      share: () => {
        sharers++;
        return once(() => {
          if (--sharers === 0) drop();
        });
      },
      drop,
    };
  }

  /**
   * Counts bytes that are kept as long as there is room; when there is none, the oldest `drop` functions are called,
   * each once. Returns the release for bytes that are freed earlier, or `undefined` if there is no room now.
   */
  addDroppable(bytes: number, drop: () => void): Release | undefined {
    if (this.#messageBytes + bytes > this.#maxBytes) return undefined;
    const droppable: Droppable = { bytes, drop };
    this.#droppable.add(droppable);
    this.#droppableBytes += bytes;
    // Never drops the new bytes, which come last: once all others are dropped they have room, as was just checked.
    this.#makeRoom();
    return () => void this.#forget(droppable);
  }

  #makeRoom(): void {
    for (const droppable of this.#droppable) {
      if (this.usedBytes <= this.#maxBytes) return;
      this.#forget(droppable);
      droppable.drop();
    }
  }

  #forget(droppable: Droppable): void {
    if (this.#droppable.delete(droppable)) this.#droppableBytes -= droppable.bytes;
  }
}

function full(): ApiError {
  return new ApiError("overloaded", "The server is busy with large messages. Please try again.", {
    retryAfter: RETRY_AFTER_SECONDS,
  });
}
