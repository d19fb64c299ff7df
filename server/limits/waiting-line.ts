import { ApiError } from "../protocol/api-error.ts";

/** How many may be inside at once, how many may wait for it, and for how long. */
export interface LineLimits {
  /** 0: no limit. */
  readonly max: number;
  readonly maxWaiting: number;
  /** In milliseconds; 0: nobody waits. */
  readonly waitMs: number;
}

interface Waiting {
  enter(): void;
  giveUp(error: unknown): void;
}

/** Lets a number of holders in at once; the rest waits its turn, for a bounded time and in a bounded line. */
export class WaitingLine {
  readonly #limits: () => LineLimits;
  readonly #waiting = new Set<Waiting>();
  #inside = 0;

  constructor(limits: () => LineLimits) {
    this.#limits = limits;
  }

  get inside(): number {
    return this.#inside;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Resolves with what must be called, once, on leaving. Rejects with the signal's reason when that is aborted.
   * @throws ApiError `overloaded`: at once when the line is full, or when the wait was too long.
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    const { max, maxWaiting, waitMs } = this.#limits();
    signal.throwIfAborted();
    if (max === 0 || this.#inside < max) this.#inside++;
    else if (this.#waiting.size >= maxWaiting || waitMs === 0) throw overloaded(waitMs);
    else await this.#wait(waitMs, signal);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#inside--;
      this.#letIn();
    };
  }

  /** Sends everybody who waits away: nobody will come out any more. */
  refuseAll(error: ApiError): void {
    for (const waiting of this.#waiting) waiting.giveUp(error);
  }

  #wait(waitMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (end: () => void) => {
        this.#waiting.delete(waiting);
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        end();
      };
      const waiting: Waiting = {
        enter: () => settle(resolve),
        giveUp: (error) => settle(() => reject(error)),
      };
      const timer = setTimeout(() => waiting.giveUp(overloaded(waitMs)), waitMs);
      const onAbort = () => waiting.giveUp(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.add(waiting);
    });
  }

  #letIn(): void {
    const { max } = this.#limits();
    for (const next of this.#waiting) {
      if (max > 0 && this.#inside >= max) return;
      // Counted here: it goes on in a later microtask, and somebody may come in between.
      this.#inside++;
      next.enter();
    }
  }
}

function overloaded(waitMs: number): ApiError {
  return new ApiError("overloaded", "The server has too much to do. Please try again.", {
    retryAfter: Math.max(Math.ceil(waitMs / 1000), 1),
  });
}
