/** States of conversations that the server keeps, for clients that only name theirs. In memory here, or shared by Redis. */

import { randomUUID } from "node:crypto";

export interface StateStore {
  /** The state under this key, whose time then starts again. @throws ApiError `overloaded` while that cannot be known */
  load(key: string): Promise<KeptState | undefined>;
  /**
   * Keeps a state as JSON text, in place of the one of version `from`. Gives false where another one has taken its place
   * meanwhile, which stays. Without `from`, whatever is there gives way.
   */
  save(key: string, json: string, from?: string): Promise<boolean>;
}

export interface KeptState {
  json: string;
  /** Names the state among all that were kept under its key. */
  version: string;
}

/** Whether the version that is kept is not the one that a state follows. */
export function isAnother(kept: string | undefined, from: string | undefined): boolean {
  return kept !== undefined && from !== undefined && kept !== from;
}

/** After the last use. */
export const STATE_MS = 60 * 60_000;

const MOST = { states: 1000, bytes: 64 * 1024 * 1024 };

/** A state in memory. */
interface Held {
  /** A text takes twice as much as soon as it has one character beyond Latin-1. */
  readonly bytes: Buffer;
  readonly version: string;
  readonly until: number;
}

/** The oldest go where there are too many. `now` counts milliseconds and never goes back. */
export class MemoryStateStore implements StateStore {
  readonly #now: () => number;
  readonly #most: typeof MOST;
  /** The one that was used last is the last. */
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
    // It would only drive out all others.
    if (bytes.length > this.#most.bytes) return;
    this.#held.set(key, { bytes, version, until: this.#now() + STATE_MS });
    this.#bytes += bytes.length;
    this.#sweep();
  }

  /** Lets go of what is too old or too much, and looks again when the next one will be. */
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
