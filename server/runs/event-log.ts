/** The events of one run: written by the run, read by any number of clients, each from where it left off. */

import { ApiError, invalidRequest } from "../protocol/errors.ts";
import type { NumberedEvent, StreamEvent } from "../protocol/events.ts";

/** The most bytes of a reader's batch; the next batch is read when its client is ready for more. */
const BATCH_BYTES = 64 * 1024;

/** How far the fastest reader may lag behind before the run has to wait. */
const HIGH_WATER_BYTES = 64 * 1024;

/** Approximate size of an event without its texts. */
const EVENT_BYTES = 200;

export interface EventLogOptions {
  /** Size at which a run without readers has to wait, and a slow reader loses events. */
  maxBytes: number;
  /** How much of what all readers have read is kept for clients that come back. */
  keptBytes: number;
  budget: LogBudget;
}

export class EventLog {
  /** Number of the newest event; 0 while there is none. */
  lastId = 0;
  /** Whether no more events will follow. */
  isEnded = false;
  readonly #options: EventLogOptions;
  readonly #readers = new Set<Reader>();
  readonly #followers: ((events: readonly NumberedEvent[]) => void)[] = [];
  /** The newest events. Those up to number `#droppedId` were dropped. */
  readonly #events: NumberedEvent[] = [];
  /** For each of them, the bytes of the run up to and including it. */
  readonly #ends: number[] = [];
  #droppedId = 0;
  /** Bytes of the run that were dropped, and that were written, so far. */
  #droppedBytes = 0;
  #writtenBytes = 0;
  #isForgotten = false;
  #wakeWriter: (() => void) | undefined;

  constructor(options: EventLogOptions) {
    this.#options = options;
  }

  get readers(): number {
    return this.#readers.size;
  }

  /** Numbers the events in place; they belong to the log from now on. */
  append(events: readonly StreamEvent[]): void {
    const before = this.#writtenBytes;
    for (const event of events as NumberedEvent[]) {
      this.lastId += 1;
      event.id = this.lastId;
      this.#writtenBytes += EVENT_BYTES + (event.type === "token" ? event.data.length : textLength(event));
      this.#events.push(event);
      this.#ends.push(this.#writtenBytes);
    }
    this.#options.budget.take(this.#writtenBytes - before);
    for (const reader of this.#readers) reader.wake();
    for (const follow of this.#followers) follow(events as NumberedEvent[]);
    this.#trim();
  }

  /** Calls the listener with each appended batch. Unlike a reader, a follower neither slows the run nor keeps it alive. */
  follow(listener: (events: readonly NumberedEvent[]) => void): void {
    this.#followers.push(listener);
  }

  /** Marks the log as complete. Readers still get the remaining events. */
  end(): void {
    this.isEnded = true;
    for (const reader of this.#readers) reader.wake();
    this.#trim();
  }

  /** Called when no client can come back: keeps only the events that current readers still need. */
  forget(): void {
    this.#isForgotten = true;
    this.#trim();
    this.wakeWriter();
  }

  /** Whether the run has to wait: for its quickest reader or, without readers, because the log is full. */
  get isFull(): boolean {
    const { maxBytes, budget } = this.#options;
    if (this.#isForgotten) return false;
    if (this.#readers.size === 0) return this.#writtenBytes - this.#droppedBytes >= maxBytes || budget.isFull;
    let quickest = 0;
    for (const { position } of this.#readers) quickest = Math.max(quickest, position);
    return this.#writtenBytes - this.#endOf(quickest) >= HIGH_WATER_BYTES;
  }

  /** Resolves when `isFull` may have changed. */
  async change(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wakeWriter = resolve;
      this.#options.budget.onRoom(resolve);
    });
  }

  wakeWriter(): void {
    if (this.#wakeWriter === undefined) return;
    this.#options.budget.forget(this.#wakeWriter);
    this.#wakeWriter();
    this.#wakeWriter = undefined;
  }

  /**
   * Reads the events after number `after`, or all that are still kept. `onClose` is called once.
   * @throws ApiError `run_expired` if the next event was dropped, `invalid_request` if there is no event `after`
   */
  read(after: number | "oldest", onClose: () => void): Reader {
    const position = after === "oldest" ? this.#droppedId : after;
    if (position > this.lastId) throw invalidRequest("/after", `This run has no event ${after} yet.`);
    if (position < this.#droppedId) throw expired(position);
    const reader = new Reader(this, position, () => {
      this.#readers.delete(reader);
      this.readerMoved();
      onClose();
    });
    this.#readers.add(reader);
    return reader;
  }

  /** The next events after this one, about as many as fit into a batch. @throws ApiError `run_expired` */
  after(position: number): NumberedEvent[] {
    if (position < this.#droppedId) throw expired(position);
    const limit = this.#endOf(position) + BATCH_BYTES;
    const from = position - this.#droppedId;
    let to = from;
    while (to < this.#ends.length && (to === from || Number(this.#ends[to]) <= limit)) to++;
    return this.#events.slice(from, to);
  }

  /** All events that are still kept, in batches. */
  *kept(): Iterable<readonly NumberedEvent[]> {
    for (let position = this.#droppedId; position < this.lastId; ) {
      const events = this.after(position);
      yield events;
      position += events.length;
    }
  }

  readerMoved(): void {
    this.#trim();
    if (this.#wakeWriter !== undefined && !this.isFull) this.wakeWriter();
  }

  /** Bytes of the run up to and including this event. */
  #endOf(id: number): number {
    return this.#ends[id - this.#droppedId - 1] ?? this.#droppedBytes;
  }

  /** Drops events that are not needed; none while there is no reader, since the next client may want each of them. */
  #trim(): void {
    const { maxBytes, keptBytes, budget } = this.#options;
    if (this.#readers.size === 0 && !this.#isForgotten) return;
    const kept = this.#isForgotten || budget.isFull ? 0 : keptBytes;
    // Dropping many events at once is cheaper than one by one.
    if (this.#writtenBytes - this.#droppedBytes <= kept * 1.25) return;
    // The newest event may be the run's last, which has the state: it is kept while clients can come back.
    const newest = this.#isForgotten ? this.lastId : this.lastId - 1;
    let [slowest, quickest] = [newest, 0];
    for (const { position } of this.#readers) {
      slowest = Math.min(slowest, position);
      quickest = Math.max(quickest, position);
    }
    this.#drop(kept, slowest);
    // A slow reader does not delay the others: beyond `maxBytes` it loses events, and fails.
    this.#drop(maxBytes, Math.min(newest, quickest));
  }

  /** Drops the oldest events up to number `id`, while the log has more than `keptBytes`. */
  #drop(keptBytes: number, id: number): void {
    let count = 0;
    let dropped = this.#droppedBytes;
    for (const end of this.#ends) {
      if (this.#droppedId + count >= id || this.#writtenBytes - dropped <= keptBytes) break;
      dropped = end;
      count++;
    }
    if (count === 0) return;
    this.#events.splice(0, count);
    this.#ends.splice(0, count);
    this.#droppedId += count;
    const released = dropped - this.#droppedBytes;
    this.#droppedBytes = dropped;
    this.#options.budget.release(released);
  }
}

/** One client's position in a log. Events are handed out only when the client asks for them. */
export class Reader implements AsyncIterableIterator<NumberedEvent[]> {
  /** Number of the last event that was handed out. */
  position: number;
  readonly #log: EventLog;
  readonly #onClose: () => void;
  #isClosed = false;
  /** Present while the client waits for events. */
  #waiting:
    | { resolve(result: IteratorResult<NumberedEvent[], undefined>): void; reject(error: unknown): void }
    | undefined;

  constructor(log: EventLog, position: number, onClose: () => void) {
    this.#log = log;
    this.position = position;
    this.#onClose = onClose;
  }

  /** Whether the run has ended and nothing is left to read. */
  get isAtEnd(): boolean {
    return this.#log.isEnded && this.position === this.#log.lastId;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Rejects with the ApiError `run_expired` if the reader was so slow that its next event was dropped. */
  next(): Promise<IteratorResult<NumberedEvent[], undefined>> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.wake();
    });
  }

  /** Resolves a waiting `next` if there are events, or none will follow. */
  wake(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    try {
      const result = this.#take();
      if (result === undefined) return;
      this.#waiting = undefined;
      waiting.resolve(result);
    } catch (error) {
      this.#waiting = undefined;
      waiting.reject(error);
    }
  }

  #take(): IteratorResult<NumberedEvent[], undefined> | undefined {
    if (this.#isClosed || this.isAtEnd) return { value: undefined, done: true };
    const events = this.#log.after(this.position);
    if (events.length === 0) return undefined;
    this.position += events.length;
    this.#log.readerMoved();
    return { value: events, done: false };
  }

  /** Called when the client has everything or has disconnected. Also ends a loop that waits for events. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#onClose();
    this.wake();
  }
}

/** The error of a reader at event number `position` whose next event was dropped. */
export function expired(position: number): ApiError {
  return new ApiError("run_expired", `Event ${position + 1} of this run is no longer kept.`);
}

/** The length of all texts in a value. */
function textLength(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  let length = 0;
  for (const field of Object.values(value)) length += textLength(field);
  return length;
}

/** Bounds the memory of the logs of all runs together. */
export class LogBudget {
  readonly #maxBytes: number;
  #usedBytes = 0;
  /** Functions that drop the logs of ended runs, which are kept for clients that come back; the oldest first. */
  readonly #droppable = new Set<() => void>();
  readonly #waiting = new Set<() => void>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get isFull(): boolean {
    return this.#usedBytes >= this.#maxBytes;
  }

  /** Counts bytes, and drops old logs to make room. */
  take(bytes: number): void {
    this.#usedBytes += bytes;
    if (this.#usedBytes <= this.#maxBytes) return;
    for (const drop of this.#droppable) {
      this.#droppable.delete(drop);
      drop();
      if (this.#usedBytes <= this.#maxBytes) return;
    }
  }

  release(bytes: number): void {
    this.#usedBytes -= bytes;
    if (this.isFull || this.#waiting.size === 0) return;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }

  /** Registers `drop`, which is called to release a log's bytes when they are needed. */
  offer(drop: () => void): void {
    this.#droppable.add(drop);
  }

  withdraw(drop: () => void): void {
    this.#droppable.delete(drop);
  }

  /** Calls `wake` once, when there is room again. */
  onRoom(wake: () => void): void {
    this.#waiting.add(wake);
  }

  forget(wake: () => void): void {
    this.#waiting.delete(wake);
  }
}
