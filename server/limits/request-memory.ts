import type { MemoryHold, RequestMemory } from "../http/request-memory.ts";
import { ApiError } from "../protocol/api-error.ts";
import { once } from "./admission.ts";
import type { Release } from "./admission-control.ts";

/** Parts of messages up to here are not counted: numbers of connections and runs bound them well enough. */
const FREE_BYTES = 64 * 1024;

const TRY_AGAIN_SECONDS = 5;

/** The memory of one process for messages, from their first bytes until their runs are over. */
export class RequestMemoryBudget implements RequestMemory {
  readonly #max: number;
  #used = 0;

  /** `max` in bytes. */
  constructor(max: number) {
    this.#max = max;
  }

  /** Bytes that are held now. */
  get used(): number {
    return this.#used;
  }

  hold(): MemoryHold {
    let held = 0;
    let counted = 0;
    let sharers = 0;
    const refuseBeyond = (size: number) => {
      if (size > FREE_BYTES && this.#used - counted + size > this.#max) throw full();
    };
    const share = (): Release => {
      sharers++;
      return once(() => {
        if (--sharers > 0) return;
        this.#used -= counted;
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
        this.#used += held - counted;
        counted = held;
      },
      share,
    };
  }
}

function full(): ApiError {
  return new ApiError("overloaded", "The server holds too many large messages. Please try again.", {
    retryAfter: TRY_AGAIN_SECONDS,
  });
}
