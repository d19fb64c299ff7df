/** Writes the events of one run into Redis, behind the answer: no client of this process waits for it. */

import { isTerminal, type NumberedEvent } from "../protocol/events.ts";
import type { RedisConnection } from "./connection.ts";

export interface PublisherOptions {
  /** The stream of events. */
  stream: string;
  /** The key that says who has the run's name, and what it holds while that is this process. */
  claimKey: string;
  claim: string;
  /** The channel that readers elsewhere listen to. */
  news: string;
  /** Bytes of events that are kept of the run. */
  maxBytes: number;
  /** How long the stream stays if this process dies. */
  keepMs: number;
  /** How long it stays after the end of the run. */
  graceMs: number;
  /** Another process has the run's name: nothing more is written. */
  onTaken(): void;
}

/** Events are gathered for so long, so that a run costs ten writes a second and not one for each token. */
const GATHER_MS = 100;

/** After a failure. */
const RETRY_MS = 500;

/** Readers elsewhere get the end also of a run that is not kept for clients that come back. */
const MIN_GRACE_MS = 10_000;

interface Batch {
  lastId: number;
  text: string;
  isLast: boolean;
}

export class EventPublisher {
  readonly #redis: RedisConnection;
  readonly #options: PublisherOptions;
  #gathered: NumberedEvent[] = [];
  /** What Redis has not taken yet, the oldest first. */
  #waiting: Batch[] = [];
  /** What Redis holds, to know what it may drop. */
  readonly #kept: { lastId: number; bytes: number }[] = [];
  #keptBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #isEnded = false;
  #isClosed = false;

  constructor(redis: RedisConnection, options: PublisherOptions) {
    this.#redis = redis;
    this.#options = options;
  }

  /** Whether the last event of the run is among those that were added. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  add(events: readonly NumberedEvent[]): void {
    if (this.#isClosed) return;
    this.#gathered.push(...events);
    const last = events.at(-1);
    this.#isEnded = last !== undefined && isTerminal(last);
    if (this.#isEnded) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), GATHER_MS).unref();
  }

  /** Nothing more is written, and what waits is dropped. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#gathered = [];
    this.#waiting = [];
  }

  /** Writes what there is. Resolves when Redis has it, or is away: then it is tried again. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const events = this.#gathered;
    this.#gathered = [];
    const last = events.at(-1);
    if (last !== undefined) {
      this.#waiting.push({ lastId: last.id, text: JSON.stringify(events), isLast: isTerminal(last) });
      this.#dropOldest();
    }
    this.#writing ??= this.#write();
    return this.#writing;
  }

  async #write(): Promise<void> {
    // `flush` must know of this promise before it ends.
    await undefined;
    try {
      for (let batch = this.#waiting[0]; batch !== undefined; batch = this.#waiting[0]) {
        const isTaken = await this.#writeBatch(batch);
        if (this.#waiting[0] === batch) this.#waiting.shift();
        if (!isTaken || this.#isClosed) continue;
        this.close();
        this.#options.onTaken();
      }
    } catch {
      // Redis is away. What waits is written when it is there again.
      if (!this.#isClosed) this.#timer ??= setTimeout(() => void this.flush(), RETRY_MS).unref();
    }
    this.#writing = undefined;
  }

  /** Gives whether another process has the run's name. */
  async #writeBatch({ lastId, text, isLast }: Batch): Promise<boolean> {
    const { stream, claimKey, claim, news, maxBytes, keepMs, graceMs } = this.#options;
    // A batch that is written again is there once.
    if (this.#kept.at(-1)?.lastId !== lastId) {
      this.#kept.push({ lastId, bytes: text.length });
      this.#keptBytes += text.length;
    }
    while (this.#keptBytes > maxBytes && this.#kept.length > 1) this.#keptBytes -= this.#kept.shift()?.bytes ?? 0;
    const ttl = isLast ? Math.max(graceMs, MIN_GRACE_MS) : keepMs;
    const values = [`0-${lastId}`, text, `0-${this.#kept[0]?.lastId ?? 0}`, ttl, news, claim];
    return (await this.#redis.script(APPEND, [stream, claimKey], values)) === 0;
  }

  /** While Redis is away for long, old events give way: a reader elsewhere then learns that they are gone. */
  #dropOldest(): void {
    let bytes = this.#waiting.reduce((sum, { text }) => sum + text.length, 0);
    while (bytes > this.#options.maxBytes && this.#waiting.length > 1) bytes -= this.#waiting.shift()?.text.length ?? 0;
  }
}

/**
 * A batch that is there already was written by a command whose answer was lost. A claim that is gone was lost by Redis. Gives
 * 0 when another process has it.
 */
const APPEND = `
local claim = redis.call('GET', KEYS[2])
if claim and claim ~= ARGV[6] then return 0 end
redis.call('SET', KEYS[2], ARGV[6], 'PX', ARGV[4])
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if not last or tonumber(string.sub(last[1], 3)) < tonumber(string.sub(ARGV[1], 3)) then
  redis.call('XADD', KEYS[1], 'MINID', ARGV[3], ARGV[1], 'events', ARGV[2])
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PUBLISH', ARGV[5], '')
return 1`;
