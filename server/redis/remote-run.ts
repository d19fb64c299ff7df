/** A run of another process: read from Redis, and ended by asking its process. */

import { invalidRequest, runLost } from "../protocol/errors.ts";
import { isTerminal, type NumberedEvent } from "../protocol/events.ts";
import { expired } from "../runs/event-log.ts";
import type { RunHandle, RunReader } from "../runs/run-handle.ts";
import { RedisAway, type RedisConnection } from "./connection.ts";
import type { Inbox, MessageType } from "./inbox.ts";

/** The value of a run's key. */
export interface Claim {
  /** The inbox of the run's process. */
  inbox: string;
  id: string;
  digest: string;
  /** New for each claim of a name, so that what is left of an earlier run is not read as its own. */
  token: string;
}

/** The key of a run's events, a stream: an entry for each batch, with the number of its last event as its id. */
export function eventsKey({ prefix }: RedisConnection, token: string): string {
  return `${prefix}events:${token}`;
}

/** Batches that are read at once. */
const READ_COUNT = 50;

/** How often a reader asks the run's process to hold the run, and looks whether it has missed news. */
const ASK_MS = 1000;

/** A run is lost when its process has not answered this many requests, or Redis was away at this many in a row. */
const MAX_UNANSWERED = 5;
const MAX_AWAY = 10;

export class RemoteRun implements RunHandle {
  readonly id: string;
  readonly digest: string;
  readonly started = Promise.resolve();
  readonly #redis: RedisConnection;
  readonly #inbox: Inbox;
  readonly #claim: Claim;

  /** `claim` is the value of the run's key in Redis. */
  constructor(redis: RedisConnection, inbox: Inbox, claim: string) {
    this.#redis = redis;
    this.#inbox = inbox;
    this.#claim = JSON.parse(claim) as Claim;
    this.id = this.#claim.id;
    this.digest = this.#claim.digest;
  }

  async read(after: number | "oldest"): Promise<RunReader> {
    const reader = new RemoteReader(this.#redis, this.#inbox, this.#claim);
    await reader.open(after);
    return reader;
  }

  async stop(): Promise<boolean> {
    try {
      const last = await newestEvent(this.#redis, eventsKey(this.#redis, this.#claim.token));
      if (last !== undefined && isTerminal(last)) return last.type === "done" && last.finish_reason === "stopped";
      return await this.#ask("stop");
    } catch (error) {
      throw error instanceof RedisAway ? runLost() : error;
    }
  }

  discard(): void {
    this.#ask("discard").catch(() => {});
  }

  #ask(type: MessageType): Promise<boolean> {
    const { inbox, token } = this.#claim;
    return this.#inbox.send(inbox, type, token);
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

class RemoteReader implements RunReader {
  readonly #redis: RedisConnection;
  readonly #inbox: Inbox;
  readonly #claim: Claim;
  readonly #stream: string;
  /** Number of the last event that was handed out. */
  #position = 0;
  /** Events that `open` has read, to know whether there are any. */
  #ready: NumberedEvent[] = [];
  #isAtEnd = false;
  #isClosed = false;
  #unfollow: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #wake: (() => void) | undefined;
  #hasNews = false;
  /** The run's process has said that no event will come. */
  #isGone = false;
  #unanswered = 0;
  #away = 0;

  constructor(redis: RedisConnection, inbox: Inbox, claim: Claim) {
    this.#redis = redis;
    this.#inbox = inbox;
    this.#claim = claim;
    this.#stream = eventsKey(redis, claim.token);
  }

  get isAtEnd(): boolean {
    return this.#isAtEnd && this.#ready.length === 0;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** @throws ApiError `run_expired`, `run_lost` or `invalid_request` */
  async open(after: number | "oldest"): Promise<void> {
    try {
      this.#unfollow = this.#inbox.follow(this.#claim.token, (type) => this.#hear(type));
      this.#timer = setInterval(() => this.#askAgain(), ASK_MS).unref();
      await this.#hold();
      if (after === "oldest") {
        const [oldest] = (await this.#redis.command("XRANGE", this.#stream, "-", "+", "COUNT", 1)) as Entry[];
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
    this.#unfollow?.();
    this.#look();
  }

  /** The next events, each once and in order. @throws ApiError `run_expired`, RedisAway */
  async #read(): Promise<NumberedEvent[]> {
    if (this.#isAtEnd) return [];
    const entries = (await this.#redis.command(
      "XRANGE",
      this.#stream,
      `(0-${this.#position}`,
      "+",
      "COUNT",
      READ_COUNT,
    )) as Entry[];
    const there = entries.flatMap(eventsOf).filter(({ id }) => id > this.#position);
    // Events after a gap are not handed out.
    const events = there.filter(({ id }, index) => id === this.#position + 1 + index);
    const last = events.at(-1);
    if (there.length === 0) {
      const end = await newestEvent(this.#redis, this.#stream);
      // Written since the first read.
      if (end !== undefined && end.id > this.#position) return this.#read();
      if (end !== undefined && isTerminal(end)) {
        if (end.id < this.#position) throw invalidRequest("/after", `This run has no event ${this.#position}.`);
        this.#isAtEnd = true;
      }
      return [];
    }
    if (last === undefined) throw expired(this.#position);
    this.#position = last.id;
    this.#isAtEnd = isTerminal(last);
    return events;
  }

  /** As `#read`; where the run is lost, the last event says so. */
  async #readOrLose(): Promise<NumberedEvent[]> {
    this.#hasNews = false;
    // Checked before reading, so that everything its process wrote until then is read first.
    const isLost = this.#isGone || this.#unanswered >= MAX_UNANSWERED;
    try {
      const events = await this.#read();
      return events.length === 0 && isLost && !this.#isAtEnd ? this.#lose() : events;
    } catch (error) {
      if (!(error instanceof RedisAway)) throw error;
      return this.#away >= MAX_AWAY ? this.#lose() : [];
    }
  }

  #lose(): NumberedEvent[] {
    this.#isAtEnd = true;
    this.#position += 1;
    const { code, message, retryable } = runLost();
    return [{ type: "error", data: message, code, retryable, id: this.#position }];
  }

  #hear(type: MessageType): void {
    this.#unanswered = 0;
    if (type === "gone") this.#isGone = true;
    this.#look();
  }

  /** Counts requests and not time: a pause of this process is no silence of the other. */
  #askAgain(): void {
    this.#away = this.#redis.isUp ? 0 : this.#away + 1;
    this.#unanswered = this.#redis.isUp ? this.#unanswered + 1 : 0;
    this.#hold().catch(() => {});
    this.#look();
  }

  #hold(): Promise<boolean> {
    return this.#inbox.send(this.#claim.inbox, "hold", this.#claim.token);
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
