/** Rates and slots. In memory here; a shared store implements the same interface for several processes. */

export type Release = () => void;

/** A bucket of tokens. It holds one minute's worth, so as many may be taken at once. */
export interface Rate {
  /** Names the bucket. */
  name: string;
  /** 0: no limit. */
  perMinute: number;
}

/** A number of slots, of which each caller occupies one. */
export interface SlotPool {
  name: string;
  /** 0: no limit. */
  max: number;
}

/** How a caller waits for a slot. */
export interface Waiting {
  /** How many callers may wait at once. */
  maxWaiting: number;
  maxMs: number;
  signal: AbortSignal;
}

export interface Limiter {
  /** Takes one token from each bucket, or none at all. Resolves with the milliseconds until that is possible; 0 if taken. */
  take(rates: readonly Rate[]): Promise<number>;
  /** What `take` would resolve with, without taking. */
  peek(rate: Rate): Promise<number>;
  /** Occupies a slot until it is released, which may be done more than once. `undefined` if none is free. */
  acquire(pool: SlotPool): Promise<Release | undefined>;
}

/** The limiter of one process, with which callers can wait for slots. */
export interface MemoryLimiter extends Limiter {
  /** With `waiting`, `undefined` if none became free in time. Rejects with the reason of an aborted signal. */
  acquire(pool: SlotPool, waiting?: Waiting): Promise<Release | undefined>;
}

/** About 10 MB. */
const MAX_BUCKETS = 100_000;

const MINUTE_MS = 60_000;

/**
 * Token buckets by the generic cell rate algorithm (GCRA): all that is kept of a bucket is the moment at which it will
 * be full again.
 */
export class MemoryRates {
  /** In the order of their last use. */
  readonly #fullAt = new Map<string, number>();
  readonly #now: () => number;

  /** `now` counts milliseconds and never goes back. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** How many buckets are kept. */
  get size(): number {
    return this.#fullAt.size;
  }

  take(rates: readonly Rate[]): number {
    const wait = Math.max(0, ...rates.map((rate) => this.peek(rate)));
    if (wait > 0) return wait;
    const now = this.#now();
    for (const { name, perMinute } of rates) {
      if (perMinute === 0) continue;
      const fullAt = nextFullAt(this.#fullAt.get(name), now, perMinute);
      this.#fullAt.delete(name);
      this.#fullAt.set(name, fullAt);
    }
    this.#forgetOldest(now);
    return 0;
  }

  peek({ name, perMinute }: Rate): number {
    return msUntilToken(this.#fullAt.get(name), this.#now(), perMinute);
  }

  /** Forgets full buckets from the oldest on, and others only if there are too many: never a sweep over all. */
  #forgetOldest(now: number): void {
    for (const [name, fullAt] of this.#fullAt) {
      if (fullAt > now && this.#fullAt.size <= MAX_BUCKETS) return;
      this.#fullAt.delete(name);
    }
  }
}

/** When a bucket is full again after one more token was taken. */
function nextFullAt(fullAt: number | undefined, now: number, perMinute: number): number {
  return Math.max(fullAt ?? now, now) + MINUTE_MS / perMinute;
}

/** How long it takes until a bucket has a token; `perMinute` 0 is no limit. */
function msUntilToken(fullAt: number | undefined, now: number, perMinute: number): number {
  if (perMinute === 0) return 0;
  const wait = nextFullAt(fullAt, now, perMinute) - now - MINUTE_MS;
  // Less than a nanosecond is a rounding error.
  return wait > 1e-6 ? wait : 0;
}

/** One pool of slots. Callers that wait get theirs in the order in which they came. */
class MemorySlots {
  occupied = 0;
  /** Each function tries to enter, and returns whether it could. */
  readonly #waiting = new Set<() => boolean>();

  get isUnused(): boolean {
    return this.occupied === 0 && this.#waiting.size === 0;
  }

  tryEnter(max: number): boolean {
    if (max > 0 && this.occupied >= max) return false;
    this.occupied++;
    return true;
  }

  leave(): void {
    this.occupied--;
    for (const tryEnter of this.#waiting) if (!tryEnter()) return;
  }

  /** `false` if too many callers wait already, or no slot became free in time. */
  async wait(max: number, { maxWaiting, maxMs, signal }: Waiting): Promise<boolean> {
    if (this.#waiting.size >= maxWaiting || maxMs === 0) return false;
    return new Promise((resolve, reject) => {
      const stopWaiting = (end: () => void) => {
        this.#waiting.delete(tryEnter);
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        end();
      };
      const tryEnter = () => {
        // The slot is occupied here and not later, or another caller could get in between.
        if (!this.tryEnter(max)) return false;
        stopWaiting(() => resolve(true));
        return true;
      };
      const onAbort = () => stopWaiting(() => reject(signal.reason));
      const timer = setTimeout(() => stopWaiting(() => resolve(false)), maxMs);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.add(tryEnter);
    });
  }
}

export function createMemoryLimiter(): MemoryLimiter {
  const rates = new MemoryRates();
  const pools = new Map<string, MemorySlots>();

  function poolOf(name: string): MemorySlots {
    let slots = pools.get(name);
    if (slots === undefined) {
      slots = new MemorySlots();
      pools.set(name, slots);
    }
    return slots;
  }

  return {
    take: async (wanted) => rates.take(wanted),
    peek: async (rate) => rates.peek(rate),

    async acquire({ name, max }, waiting) {
      waiting?.signal.throwIfAborted();
      const slots = poolOf(name);
      const forgetUnused = () => {
        // A caller that stopped waiting may be late: the name may have another pool by now.
        if (slots.isUnused && pools.get(name) === slots) pools.delete(name);
      };
      try {
        const isIn = slots.tryEnter(max) || (waiting !== undefined && (await slots.wait(max, waiting)));
        if (!isIn) return undefined;
      } finally {
        forgetUnused();
      }
      return once(() => {
        slots.leave();
        forgetUnused();
      });
    },
  };
}

/** Lets a release be called more than once. */
export function once(release: Release): Release {
  let isReleased = false;
  return () => {
    if (isReleased) return;
    isReleased = true;
    release();
  };
}
