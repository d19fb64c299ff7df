/** A run of another process: read out of Redis, and ended by asking its process. */

import { ApiError, invalidRequest, runLost } from "../protocol/errors.ts";
import { isTerminal, type NumberedEvent } from "../protocol/events.ts";
import type { RunHandle, RunReader } from "../runs/run.ts";
import { RedisAway, type RedisConnection } from "./connection.ts";

/** What the key of a run holds. */
export interface Claim {
  instance: string;
  id: string;
  digest: string;
  /** Another one each time that a name is claimed: what is left of a run before it is not read as its own. */
  token: string;
}

/** What an instance is asked by another one, of the run that has this token. */
export type InstanceMessage = { token: string } & ({ type: "stop" | "discard" } | { type: "hold"; ms: number });

/** The names of what Redis holds of runs. */
export interface RunKeys {
  claim(key: string): string;
  /** A stream: an entry for each batch, with the number of its last event as its id. */
  events(token: string): string;
  /** Is there while the instance lives. */
  instance(id: string): string;
  /** A channel of what the instance is asked. */
  inbox(id: string): string;
  /** A channel that says that a run has new events. */
  news(token: string): string;
  /** A sorted set of the names that are marked for a purpose. */
  marks(purpose: string): string;
}

/** Batches that are read at once. */
const READ_COUNT = 50;

/** How often a reader looks whether the run's process lives, and whether it has missed news. */
const LOOK_MS = 1000;

/** A reader waits for a Redis that is away for so long. */
const MAX_AWAY_MS = 10_000;

/** So long after Redis came back, a run that is not there is not lost. */
const RETURN_MS = 5000;

/** The run's process is asked to hold it for so long, again and again. */
const HOLD_MS = 5000;

export class RemoteRun implements RunHandle {
  readonly id: string;
  readonly digest: string;
  readonly started = Promise.resolve();
  readonly #redis: RedisConnection;
  readonly #key: string;
  readonly #claim: Claim;
  readonly #claimText: string;
  readonly #keys: RunKeys;

  /** `claim` is what Redis holds. */
  constructor(redis: RedisConnection, key: string, claim: string, keys: RunKeys) {
    this.#redis = redis;
    this.#key = key;
    this.#claim = JSON.parse(claim) as Claim;
    this.#claimText = claim;
    this.#keys = keys;
    this.id = this.#claim.id;
    this.digest = this.#claim.digest;
  }

  async read(after: number | "oldest"): Promise<RunReader> {
    const reader = new RemoteReader({
      redis: this.#redis,
      stream: this.#keys.events(this.#claim.token),
      news: this.#keys.news(this.#claim.token),
      hold: () => this.#ask({ type: "hold", ms: HOLD_MS }),
      isKept: () => this.#isKept(),
    });
    await reader.open(after);
    return reader;
  }

  async stop(): Promise<boolean> {
    try {
      const last = await newestEvent(this.#redis, this.#keys.events(this.#claim.token));
      if (last !== undefined && isTerminal(last)) return last.type === "done" && last.finish_reason === "stopped";
      return (await this.#ask({ type: "stop" })) > 0;
    } catch (error) {
      throw error instanceof RedisAway ? runLost() : error;
    }
  }

  discard(): void {
    this.#ask({ type: "discard" }).catch(() => {});
  }

  /** Whether the run's process lives and knows the run. */
  async #isKept(): Promise<boolean> {
    const { instance } = this.#claim;
    const [beat, claim] = (await this.#redis.command(
      "MGET",
      this.#keys.instance(instance),
      this.#keys.claim(this.#key),
    )) as (string | null)[];
    return beat !== null && claim === this.#claimText;
  }

  /** Gives how many processes heard it. */
  async #ask(message: { type: "stop" | "discard" } | { type: "hold"; ms: number }): Promise<number> {
    const { instance, token } = this.#claim;
    const full: InstanceMessage = { ...message, token };
    return Number(await this.#redis.command("PUBLISH", this.#keys.inbox(instance), JSON.stringify(full)));
  }
}

/** An entry of a stream, as Redis gives it. */
type Entry = [id: string, fields: string[]];

function eventsOf([, fields]: Entry): NumberedEvent[] {
  return JSON.parse(fields[1] ?? "[]") as NumberedEvent[];
}

async function newestEvent(redis: RedisConnection, stream: string): Promise<NumberedEvent | undefined> {
  const [newest] = (await redis.command("XREVRANGE", stream, "+", "-", "COUNT", 1)) as Entry[];
  return newest && eventsOf(newest).at(-1);
}

interface ReaderOptions {
  redis: RedisConnection;
  stream: string;
  news: string;
  hold(): Promise<unknown>;
  isKept(): Promise<boolean>;
}

class RemoteReader implements RunReader {
  readonly #options: ReaderOptions;
  /** Number of the last event that was handed out. */
  #position = 0;
  /** Read already, to know whether there are any. */
  #ready: NumberedEvent[] = [];
  #isAtEnd = false;
  #isClosed = false;
  #stopListening: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #wake: (() => void) | undefined;
  #hasNews = false;
  #awaySince: number | undefined;

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  get isAtEnd(): boolean {
    return this.#isAtEnd && this.#ready.length === 0;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** @throws ApiError `run_expired`, `run_lost` or `invalid_request` */
  async open(after: number | "oldest"): Promise<void> {
    const { redis, stream, news, hold } = this.#options;
    try {
      // Before the first look: what is written after it is not missed.
      this.#stopListening = await redis.listen(news, () => this.#look());
      this.#timer = setInterval(() => {
        hold().catch(() => {});
        this.#look();
      }, LOOK_MS).unref();
      await hold();
      if (after === "oldest") {
        const [oldest] = (await redis.command("XRANGE", stream, "-", "+", "COUNT", 1)) as Entry[];
        this.#position = ((oldest && eventsOf(oldest)[0]?.id) ?? 1) - 1;
      } else this.#position = after;
      this.#ready = await this.#read();
    } catch (error) {
      this.close();
      throw error instanceof RedisAway ? runLost() : error;
    }
  }

  async next(): Promise<IteratorResult<NumberedEvent[], undefined>> {
    while (!this.#isClosed) {
      const events = this.#ready.length > 0 ? this.#ready : await this.#readOrLose();
      this.#ready = [];
      const last = events.at(-1);
      if (last !== undefined) return { value: events, done: false };
      if (this.#isAtEnd) break;
      await this.#change();
    }
    return { value: undefined, done: true };
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#stopListening?.();
    this.#look();
  }

  /** The next events, each once and in order. @throws ApiError `run_expired`, RedisAway */
  async #read(): Promise<NumberedEvent[]> {
    const { redis, stream } = this.#options;
    if (this.#isAtEnd) return [];
    const entries = (await redis.command(
      "XRANGE",
      stream,
      `(0-${this.#position}`,
      "+",
      "COUNT",
      READ_COUNT,
    )) as Entry[];
    const events = entries.flatMap(eventsOf).filter(({ id }) => id > this.#position);
    const [first, last] = [events[0], events.at(-1)];
    if (first === undefined || last === undefined) {
      const end = await newestEvent(redis, stream);
      // It was written since the first look.
      if (end !== undefined && end.id > this.#position) return this.#read();
      if (end !== undefined && isTerminal(end)) {
        if (end.id < this.#position) throw invalidRequest("/after", `This run has no event ${this.#position}.`);
        this.#isAtEnd = true;
      }
      return [];
    }
    if (first.id !== this.#position + 1) {
      throw new ApiError("run_expired", `Event ${this.#position + 1} of this run is no longer kept.`);
    }
    this.#position = last.id;
    this.#isAtEnd = isTerminal(last);
    return events;
  }

  /** As `#read`; where the run is lost, the last event says so. */
  async #readOrLose(): Promise<NumberedEvent[]> {
    this.#hasNews = false;
    try {
      const events = await this.#read();
      this.#awaySince = undefined;
      if (events.length > 0 || this.#isAtEnd || (await this.#options.isKept())) return events;
      // After a Redis that came back without what it held, processes make themselves known again.
      if (this.#options.redis.msSinceReturn < RETURN_MS) return [];
      // Its process may have written its last words just before it ended.
      const lastWords = await this.#read();
      return lastWords.length > 0 || this.#isAtEnd ? lastWords : this.#lose();
    } catch (error) {
      if (!(error instanceof RedisAway)) throw error;
      this.#awaySince ??= performance.now();
      return performance.now() - this.#awaySince > MAX_AWAY_MS ? this.#lose() : [];
    }
  }

  #lose(): NumberedEvent[] {
    this.#isAtEnd = true;
    this.#position += 1;
    const { code, message, retryable } = runLost();
    return [{ type: "error", data: message, code, retryable, id: this.#position }];
  }

  #look(): void {
    this.#hasNews = true;
    this.#wake?.();
  }

  async #change(): Promise<void> {
    if (this.#hasNews || this.#isClosed) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = undefined;
  }
}
