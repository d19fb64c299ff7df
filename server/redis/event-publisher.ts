/** Writes the events of this process' named runs into Redis, behind the answers: no client of this process waits for it. */

import { isTerminal, type NumberedEvent } from "../protocol/events.ts";
import type { RedisConnection } from "./connection.ts";

export interface PublisherOptions {
  /** Bytes of events that are kept of one run. */
  maxBytes: number;
  /** How long the events of a run stay if this process dies. */
  keepMs: number;
  /** How long they stay after the end of the run. */
  graceMs: number;
}

export interface PublishedRunOptions {
  /** The stream of events. */
  stream: string;
  /** The key of the run's name, and what it holds while this process has the name. */
  claimKey: string;
  claim: string;
  /** The events of the run that this process still has, in batches: for a Redis that has lost what it had. */
  kept(): Iterable<readonly NumberedEvent[]>;
  /** Redis has more events than before. */
  onWritten(): void;
  /** Another process has the run's name: nothing more is written. */
  onTaken(): void;
}

/** Events of all runs are gathered for so long, so that a process sends ten commands a second and not one for each token. */
const GATHER_MS = 100;

/** After a failure. */
const RETRY_MS = 500;

/** Readers elsewhere get the end also of a run that is not kept for clients that come back. */
const MIN_GRACE_MS = 10_000;

/** What one command writes at most: Redis does nothing else meanwhile. */
const RUNS_AT_ONCE = 100;
const BYTES_AT_ONCE = 1024 * 1024;

export class EventPublisher {
  readonly #redis: RedisConnection;
  readonly #options: PublisherOptions;
  /** Runs with events that Redis does not have yet. */
  readonly #unwritten = new Set<PublishedRun>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  /** The command that is under way, or was the last one. */
  #command: Promise<void> | undefined;

  constructor(redis: RedisConnection, options: PublisherOptions) {
    this.#redis = redis;
    this.#options = options;
  }

  open(options: PublishedRunOptions): PublishedRun {
    const run: PublishedRun = new PublishedRun(options, this.#options.maxBytes, () => this.#gather(run));
    return run;
  }

  /** Writes what there is. Resolves when Redis has it, or is away: then it is tried again. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const run of this.#unwritten) run.endBatch();
    this.#writing ??= this.#write();
    return this.#writing;
  }

  /** Writes the events of this run. Resolves when Redis has them, or is away: others may have more to write all the time. */
  async finish(run: PublishedRun): Promise<void> {
    void this.flush();
    while (!run.isWritten && this.#writing !== undefined) await this.#command?.catch(() => {});
  }

  #gather(run: PublishedRun): void {
    this.#unwritten.add(run);
    if (run.isEnded) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), GATHER_MS).unref();
  }

  async #write(): Promise<void> {
    // `flush` must know of this promise before it ends.
    await undefined;
    try {
      for (let runs = this.#nextRuns(); runs.length > 0; runs = this.#nextRuns()) {
        this.#command = this.#writeBatches(runs);
        await this.#command;
      }
    } catch {
      // Redis is away. What waits is written when it is there again.
      if (this.#unwritten.size > 0) this.#timer ??= setTimeout(() => void this.flush(), RETRY_MS).unref();
    }
    this.#writing = undefined;
  }

  #nextRuns(): PublishedRun[] {
    const runs: PublishedRun[] = [];
    let bytes = 0;
    for (const run of this.#unwritten) {
      if (run.isClosed) this.#unwritten.delete(run);
      const [batch] = run.batches;
      if (batch === undefined) continue;
      bytes += batch.text.length;
      if (runs.length === RUNS_AT_ONCE || (runs.length > 0 && bytes > BYTES_AT_ONCE)) break;
      runs.push(run);
    }
    return runs;
  }

  /** Writes the oldest batch of each run. */
  async #writeBatches(runs: readonly PublishedRun[]): Promise<void> {
    const { keepMs, graceMs } = this.#options;
    const keys: string[] = [];
    const values: (string | number)[] = [];
    const written = runs.map((run) => {
      const { batch, oldestId } = run.keepBatch();
      const ttl = batch.isLast ? Math.max(graceMs, MIN_GRACE_MS) : keepMs;
      keys.push(run.options.stream, run.options.claimKey);
      values.push(`0-${batch.lastId}`, batch.text, `0-${oldestId}`, ttl, run.options.claim, run.writtenId);
      return { run, batch };
    });
    const [taken, lost] = (await this.#redis.script(APPEND, keys, values)) as [taken: number[], lost: number[]];
    for (const [index, { run, batch }] of written.entries()) {
      if (lost.includes(index)) run.writeAgain();
      else run.dropBatch(batch);
      if (taken.includes(index) && !run.isClosed) {
        run.close();
        run.options.onTaken();
      } else if (!lost.includes(index)) run.options.onWritten();
      // A run that has more to write waits behind all others.
      this.#unwritten.delete(run);
      if (!run.isWritten) this.#unwritten.add(run);
    }
  }
}

interface Batch {
  lastId: number;
  /** Empty where only the claim is renewed. */
  text: string;
  isLast: boolean;
}

/** What Redis has to get of one run, and what it keeps of it. */
export class PublishedRun {
  readonly options: PublishedRunOptions;
  /** Whether the last event of the run is among those that were added. */
  isEnded = false;
  isClosed = false;
  /** Number of the newest event that Redis has taken; 0 before that. */
  writtenId = 0;
  /** What Redis has not taken yet, the oldest first. */
  batches: Batch[] = [];
  readonly #maxBytes: number;
  readonly #onEvents: () => void;
  #gathered: NumberedEvent[] = [];
  /** What Redis holds, to know what it may drop. */
  readonly #kept: { lastId: number; bytes: number }[] = [];
  #keptBytes = 0;

  constructor(options: PublishedRunOptions, maxBytes: number, onEvents: () => void) {
    this.options = options;
    this.#maxBytes = maxBytes;
    this.#onEvents = onEvents;
  }

  get isWritten(): boolean {
    return this.batches.length === 0 && this.#gathered.length === 0;
  }

  add(events: readonly NumberedEvent[]): void {
    const last = events.at(-1);
    if (this.isClosed || last === undefined) return;
    for (const event of events) this.#gathered.push(event);
    this.isEnded = isTerminal(last);
    this.#onEvents();
  }

  /** Writes the claim again, if no event will do so. Where Redis has lost events, they are written again, too. */
  renew(): void {
    if (this.isClosed || !this.isWritten) return;
    this.batches.push({ lastId: this.writtenId, text: "", isLast: this.isEnded });
    this.#onEvents();
  }

  /** Redis has lost events that it had taken: they come before what waits, which the process may have dropped elsewhere. */
  writeAgain(): void {
    if (this.isClosed) return;
    const [waiting, takenId] = [this.batches, this.writtenId];
    this.batches = [];
    this.#kept.length = 0;
    this.#keptBytes = 0;
    this.writtenId = 0;
    for (const events of this.options.kept()) this.#addBatch(events.filter(({ id }) => id <= takenId));
    this.batches.push(...waiting.filter(({ text }) => text !== ""));
    this.#dropOldest();
  }

  /** Nothing more is written, and what waits is dropped. */
  close(): void {
    this.isClosed = true;
    this.#gathered = [];
    this.batches = [];
  }

  /**
   * What was gathered is written together. While Redis is away for long, old events give way: a reader elsewhere then learns
   * that they are gone.
   */
  endBatch(): void {
    this.#addBatch(this.#gathered);
    this.#gathered = [];
  }

  #addBatch(events: readonly NumberedEvent[]): void {
    const last = events.at(-1);
    if (last === undefined) return;
    this.batches.push({ lastId: last.id, text: JSON.stringify(events), isLast: isTerminal(last) });
    this.#dropOldest();
  }

  #dropOldest(): void {
    let bytes = this.batches.reduce((sum, { text }) => sum + text.length, 0);
    while (bytes > this.#maxBytes && this.batches.length > 1) bytes -= this.batches.shift()?.text.length ?? 0;
  }

  /** Counts the oldest batch as kept. Gives it, and the last number of the oldest batch that Redis keeps. */
  keepBatch(): { batch: Batch; oldestId: number } {
    const batch = this.batches[0] as Batch;
    // A batch that is written again is there once.
    if (this.#kept.at(-1)?.lastId !== batch.lastId) {
      this.#kept.push({ lastId: batch.lastId, bytes: batch.text.length });
      this.#keptBytes += batch.text.length;
    }
    while (this.#keptBytes > this.#maxBytes && this.#kept.length > 1) {
      this.#keptBytes -= this.#kept.shift()?.bytes ?? 0;
    }
    return { batch, oldestId: this.#kept[0]?.lastId ?? 0 };
  }

  /** Redis has the batch. It may have given way meanwhile. */
  dropBatch(batch: Batch): void {
    this.writtenId = batch.lastId;
    if (this.batches[0] === batch) this.batches.shift();
  }
}

/**
 * For each run two keys, stream and claim, and six values. A batch that is there already was written by a command whose answer
 * was lost: Redis refuses its number. One without events renews the claim. A claim that is gone was lost by Redis. Gives the
 * runs whose name another process has, and those of which Redis has lost events that it had: these start again, without what is
 * left of them.
 */
const APPEND = `
local taken, lost = {}, {}
-- Whether the stream has this event, or a newer one.
local function has(stream, id)
  if id == 0 then return true end
  local newest = redis.pcall('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
  return type(newest) == 'table' and tonumber(string.match(newest[1], '%d+$')) >= id
end
for run = 0, #KEYS / 2 - 1 do
  local stream, key = KEYS[2 * run + 1], KEYS[2 * run + 2]
  local id, events, oldest, ttl, own = unpack(ARGV, 6 * run + 1, 6 * run + 5)
  -- Whatever else is there gives way, or one run would keep the others from being written.
  local claim = redis.pcall('GET', key)
  if type(claim) == 'string' and claim ~= own then
    table.insert(taken, run)
  elseif not has(stream, tonumber(ARGV[6 * run + 6])) then
    table.insert(lost, run)
    redis.call('DEL', stream)
  else
    redis.call('SET', key, own, 'PX', ttl)
    local function add() return redis.pcall('XADD', stream, 'MINID', oldest, id, 'events', events) end
    local added = events ~= '' and add()
    if type(added) == 'table' and added.err and string.find(added.err, 'WRONGTYPE') then
      redis.call('DEL', stream)
      added = add()
    end
    if type(added) == 'table' and added.err and not string.find(added.err, 'equal or smaller') then return added end
    redis.call('PEXPIRE', stream, ttl)
  end
end
return {taken, lost}`;
