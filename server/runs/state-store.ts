/** Conversation states that the server keeps, for clients that send only their name. In memory here, or shared by Redis. */

import { randomUUID } from "node:crypto";

export interface StateStore {
  /** The state under this key, whose lifetime then starts again. @throws ApiError `overloaded` while the store is away */
  load(key: string): Promise<KeptState | undefined>;
  /**
   * Stores a state as JSON text, in place of version `from`. Resolves with false, without a change, if another version
   * has replaced that one. Without `from`, any version is replaced.
   */
  save(key: string, json: string, from?: string): Promise<boolean>;
}

export interface KeptState {
  json: string;
  /** Identifies the state among all that were stored under its key. */
  version: string;
}

/** Whether another version than `from` is stored. */
export function isAnother(kept: string | undefined, from: string | undefined): boolean {
  return kept !== undefined && from !== undefined && kept !== from;
}

/** How long a state is kept after its last use. */
export const STATE_MS = 60 * 60_000;

const MOST = { states: 1000, bytes: 64 * 1024 * 1024 };

/** A state in memory. */
interface Held {
  /** Not a string, which takes twice as much memory with a single character beyond Latin-1. */
  readonly bytes: Buffer;
  readonly version: string;
  readonly until: number;
}

/** Drops the oldest states beyond its limits. `now` counts milliseconds and never goes back. */
export class MemoryStateStore implements StateStore {
  readonly #now: () => number;
  readonly #most: typeof MOST;
  /** In the order of their last use. */
  readonly #held = new Map<string, Held>();
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(now: () => number = () => performance.now(), most = MOST) {
    this.#now = now;
    this.#most = most;
  }

  /** How many are in memory. */
  get size(): number {
    return this.#held.size;
  }

  async load(key: string): Promise<KeptState | undefined> {
    const held = this.#find(key);
    if (held === undefined) return undefined;
    this.#hold(key, held);
    return { json: held.bytes.toString(), version: held.version };
  }

  async save(key: string, json: string, from?: string): Promise<boolean> {
    if (isAnother(this.versionOf(key), from)) return false;
    this.#hold(key, { bytes: Buffer.from(json), version: randomUUID() });
    return true;
  }

  versionOf(key: string): string | undefined {
    return this.#find(key)?.version;
  }

  drop(key: string): void {
    this.#bytes -= this.#held.get(key)?.bytes.length ?? 0;
    this.#held.delete(key);
  }

  #find(key: string): Held | undefined {
    const held = this.#held.get(key);
    return held !== undefined && held.until > this.#now() ? held : undefined;
  }

  #hold(key: string, { bytes, version }: Pick<Held, "bytes" | "version">): void {
    this.drop(key);
    // A state this large would only evict all others.
    if (bytes.length > this.#most.bytes) return;
    this.#held.set(key, { bytes, version, until: this.#now() + STATE_MS });
    this.#bytes += bytes.length;
    this.#sweep();
  }

  /** Drops states that are too old or too many, and runs again when the next one expires. */
  #sweep(): void {
    for (const [oldest, { until }] of this.#held) {
      const isTooMuch = this.#held.size > this.#most.states || this.#bytes > this.#most.bytes;
      if (!isTooMuch && until > this.#now()) break;
      this.drop(oldest);
    }
    clearTimeout(this.#timer);
    const [next] = this.#held.values();
    if (next !== undefined) this.#timer = setTimeout(() => this.#sweep(), next.until - this.#now()).unref();
  }
}
