/** Most ids that are remembered at once: about 10 MB. */
const MAX_IDS = 100_000;

const MINUTE_MS = 60_000;

/**
 * A token bucket for each id (a key, an address), as the generic cell rate algorithm (GCRA): all that is
 * remembered of an id is the moment at which its bucket will be full again. A bucket holds one minute's
 * tokens, so as many may come at once.
 */
export class RateLimiter {
  /** Id to that moment. In the order of their last use, since each use puts an id behind the others. */
  readonly #fullAt = new Map<string, number>();
  readonly #now: () => number;

  /** `now` counts milliseconds and never goes back. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Takes a token. Returns 0, or the milliseconds until there will be one, and then takes none.
   * `perMinute` may differ from call to call; 0 is no limit.
   */
  take(id: string, perMinute: number): number {
    const wait = this.peek(id, perMinute);
    if (wait > 0 || perMinute === 0) return wait;
    const now = this.#now();
    const fullAt = Math.max(this.#fullAt.get(id) ?? now, now) + MINUTE_MS / perMinute;
    this.#fullAt.delete(id);
    this.#fullAt.set(id, fullAt);
    this.#forgetOne(now);
    return 0;
  }

  /** As `take`, without taking. */
  peek(id: string, perMinute: number): number {
    if (perMinute === 0) return 0;
    const now = this.#now();
    const missing = Math.max((this.#fullAt.get(id) ?? now) - now, 0);
    // What is missing after this token must fit in a bucket of one minute. A nanosecond is a rounding error.
    const wait = missing + MINUTE_MS / perMinute - MINUTE_MS;
    return wait > 1e-6 ? wait : 0;
  }

  /** How many ids are remembered. */
  get size(): number {
    return this.#fullAt.size;
  }

  /** Each new id drops the oldest one if that is full again, or if there are too many: never a sweep. */
  #forgetOne(now: number): void {
    for (const [id, fullAt] of this.#fullAt) {
      if (fullAt > now && this.#fullAt.size <= MAX_IDS) return;
      this.#fullAt.delete(id);
    }
  }
}
