/** Writes the events of this process' named runs into Redis, in the background: no client of this process waits for it. */

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
  /** The key of the run's name, and its value while this process owns the name. */
  claimKey: string;
  claim: string;
  /** The run's events that this process still has, in batches: written again if Redis has lost events. */
  kept(): Iterable<readonly NumberedEvent[]>;
  /** Called when Redis has more events than before. */
  onWritten(): void;
  /** Called when another process owns the run's name: nothing more is written. */
  onTaken(): void;
}

/** Events of all runs are gathered for this long, so that a process sends ten commands a second and not one per token. */
const GATHER_MS = 100;

/** After a failure. */
const RETRY_MS = 500;

/** Readers at other processes get the end of a run even if it is not kept for clients that come back. */
const MIN_GRACE_MS = 10_000;

/** The most that one command writes: Redis does nothing else meanwhile. */
const RUNS_AT_ONCE = 100;
const BYTES_AT_ONCE = 1024 * 1024;

export class EventPublisher {
  readonly #redis: RedisConnection;
  readonly #options: PublisherOptions;
  /** Runs with events that Redis does not have yet. */
  readonly #unwritten = new Set<PublishedRun>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  /** The current or the last command. */
  #command: Promise<void> | undefined;

  constructor(redis: RedisConnection, options: PublisherOptions) {
    this.#redis = redis;
    this.#options = options;
  }

  open(options: PublishedRunOptions): PublishedRun {
    const run: PublishedRun = new PublishedRun(options, this.#options.maxBytes, () => this.#gather(run));
    return run;
  }

  /** Writes all gathered events. Resolves when Redis has them, or is away: then the write is tried again. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const run of this.#unwritten) run.endBatch();
    this.#writing ??= this.#write();
    return this.#writing;
  }

  /** Writes the events of this run. Resolves when Redis has them, or is away, even if other runs have more to write. */
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
    // `flush` has to store this promise before it settles.
    await undefined;
    try {
      for (let runs = this.#nextRuns(); runs.length > 0; runs = this.#nextRuns()) {
        this.#command = this.#writeBatches(runs);
        await this.#command;
      }
    } catch {
      // Redis is away: what waits is written later.
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
      // A run that has more to write moves behind all others.
      this.#unwritten.delete(run);
      if (!run.isWritten) this.#unwritten.add(run);
    }
  }
}

interface Batch {
  lastId: number;
  /** Empty if only the claim is renewed. */
  text: string;
  isLast: boolean;
}

/** One run's events: those to be written, and those that Redis keeps. */
export class PublishedRun {
  readonly options: PublishedRunOptions;
  /** Whether the last event of the run was added. */
  isEnded = false;
  isClosed = false;
  /** Number of the newest event that Redis has accepted; 0 before the first. */
  writtenId = 0;
  /** What Redis has not accepted yet, the oldest first. */
  batches: Batch[] = [];
  readonly #maxBytes: number;
  readonly #onEvents: () => void;
  #gathered: NumberedEvent[] = [];
  /** The batches that Redis has, to know which it may drop. */
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

  /** Writes the claim again, unless waiting events do so. Events that Redis has lost are then written again, too. */
  renew(): void {
    if (this.isClosed || !this.isWritten) return;
    this.batches.push({ lastId: this.writtenId, text: "", isLast: this.isEnded });
    this.#onEvents();
  }

  /** Queues events again that Redis has lost. What waits is kept and follows them: the log may have dropped it. */
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
   * Makes a batch of the gathered events. While Redis is away for long, the oldest batches are dropped: readers at
   * other processes then get `run_expired`.
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

  /** Counts the oldest batch as kept. Returns it, and the last event number of the oldest batch that Redis keeps. */
  keepBatch(): { batch: Batch; oldestId: number } {
    const batch = this.batches[0] as Batch;
    // A batch that is written again is counted once.
    if (this.#kept.at(-1)?.lastId !== batch.lastId) {
      this.#kept.push({ lastId: batch.lastId, bytes: batch.text.length });
      this.#keptBytes += batch.text.length;
    }
    while (this.#keptBytes > this.#maxBytes && this.#kept.length > 1) {
      this.#keptBytes -= this.#kept.shift()?.bytes ?? 0;
    }
    return { batch, oldestId: this.#kept[0]?.lastId ?? 0 };
  }

  /** Called when Redis has the batch, which may have been dropped here meanwhile. */
  dropBatch(batch: Batch): void {
    this.writtenId = batch.lastId;
    if (this.batches[0] === batch) this.batches.shift();
  }
}

/**
 * Two keys per run, stream and claim, and six values. If a batch was written by a command whose reply was lost, Redis
 * refuses its number. A batch without events renews the claim. If a claim is missing, Redis has lost it. Returns the
 * runs whose name another process owns, and those of which Redis has lost events: their streams are deleted, to be
 * written again.
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
