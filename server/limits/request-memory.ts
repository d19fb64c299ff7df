import type { MemoryHold, RequestMemory } from "../http/request-memory.ts";
import { ApiError } from "../protocol/api-error.ts";
import { once } from "./admission.ts";
import type { Release } from "./admission-control.ts";

/** Parts of messages up to here are not counted: numbers of connections and runs bound them well enough. */
const FREE_BYTES = 64 * 1024;

const TRY_AGAIN_SECONDS = 5;

/** Bytes that can be done without. */
interface Spare {
  readonly bytes: number;
  drop(): void;
}

/** The memory of one process for messages, from their first bytes until their runs are over; the rest of it is lent. */
export class RequestMemoryBudget implements RequestMemory {
  readonly #max: number;
  #messages = 0;
  /** Oldest first. */
  readonly #spare = new Set<Spare>();
  #spareBytes = 0;

  /** `max` in bytes. */
  constructor(max: number) {
    this.#max = max;
  }

  /** Bytes that are held now. */
  get used(): number {
    return this.#messages + this.#spareBytes;
  }

  hold(): MemoryHold {
    let held = 0;
    let counted = 0;
    let sharers = 0;
    const refuseBeyond = (size: number) => {
      if (size > FREE_BYTES && this.#messages - counted + size > this.#max) throw full();
    };
    const share = (): Release => {
      sharers++;
      return once(() => {
        if (--sharers > 0) return;
        this.#messages -= counted;
        counted = 0;
        held = 0;
      });
    };
    return {
      expect: refuseBeyond,
      grow: (bytes) => {
        refuseBeyond(held + bytes);
        held += bytes;
        if (held <= FREE_BYTES) return;
        this.#messages += held - counted;
        counted = held;
        this.#makeRoom();
      },
      share,
    };
  }

  spare(bytes: number, drop: () => void): Release | undefined {
    if (this.#messages + bytes > this.#max) return undefined;
    const spare: Spare = { bytes, drop };
    this.#spare.add(spare);
    this.#spareBytes += bytes;
    // The newest one stays: without all others there is room for it.
    this.#makeRoom();
    return () => void this.#forget(spare);
  }

  #makeRoom(): void {
    for (const spare of this.#spare) {
      if (this.used <= this.#max) return;
      this.#forget(spare);
      spare.drop();
    }
  }

  #forget(spare: Spare): void {
    if (this.#spare.delete(spare)) this.#spareBytes -= spare.bytes;
  }
}

function full(): ApiError {
  return new ApiError("overloaded", "The server holds too many large messages. Please try again.", {
    retryAfter: TRY_AGAIN_SECONDS,
  });
}
