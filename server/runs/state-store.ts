/** States of conversations that the server keeps, for clients that only name theirs. In memory here, or shared by Redis. */

export interface StateStore {
  /** The JSON text that is kept under this key; its time begins anew. @throws ApiError `overloaded` while that cannot be known */
  load(key: string): Promise<string | undefined>;
  /** Keeps a state as JSON text, in place of what was there. */
  save(key: string, state: string): Promise<void>;
}

/** After the last use. */
export const STATE_MS = 60 * 60_000;

const MOST = { states: 1000, bytes: 64 * 1024 * 1024 };

/** The oldest go where there are too many. `now` counts milliseconds and never goes back. */
export class MemoryStateStore implements StateStore {
  readonly #now: () => number;
  readonly #most: typeof MOST;
  /** The one that was used last is the last. */
  readonly #kept = new Map<string, { state: string; bytes: number; until: number }>();
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(now: () => number = () => performance.now(), most = MOST) {
    this.#now = now;
    this.#most = most;
  }

  /** How many are in memory. */
  get size(): number {
    return this.#kept.size;
  }

  async load(key: string): Promise<string | undefined> {
    const state = this.take(key);
    if (state !== undefined) await this.save(key, state);
    return state;
  }

  async save(key: string, state: string): Promise<void> {
    this.take(key);
    const bytes = Buffer.byteLength(state);
    this.#kept.set(key, { state, bytes, until: this.#now() + STATE_MS });
    this.#bytes += bytes;
    this.#sweep();
  }

  /** What was kept, which is not kept any more. */
  take(key: string): string | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    this.#kept.delete(key);
    this.#bytes -= kept.bytes;
    return kept.until > this.#now() ? kept.state : undefined;
  }

  /** Lets go of what is too old or too much, and looks again when the next one will be. */
  #sweep(): void {
    for (const [oldest, { until }] of this.#kept) {
      const isTooMuch = this.#kept.size > this.#most.states || this.#bytes > this.#most.bytes;
      if (!isTooMuch && until > this.#now()) break;
      this.take(oldest);
    }
    clearTimeout(this.#timer);
    const [next] = this.#kept.values();
    if (next !== undefined) this.#timer = setTimeout(() => this.#sweep(), next.until - this.#now()).unref();
  }
}
