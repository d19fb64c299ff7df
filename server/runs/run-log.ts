import type { EncodedEvent } from "../protocol/encoded-event.ts";
import type { DoneEvent, ErrorEvent, StreamEvent } from "../protocol/events.ts";
import { encodeEvent } from "./encode-event.ts";
import type { LogBudget } from "./log-budget.ts";

/** An event as readers get it. */
export interface RunEvent extends EncodedEvent {
  /** The event itself, where it is the run's last one. */
  readonly last: DoneEvent | ErrorEvent | undefined;
}

export interface LoggedEvent extends RunEvent {
  /** Bytes of the whole run up to and with this event. */
  readonly end: number;
}

/** What an event takes beside its text, about. */
const EVENT_BYTES = 200;

/** The events of one run, numbered from 1. The oldest can be let go; numbers are never used again. */
export class RunLog {
  readonly #budget: LogBudget;
  #events: (LoggedEvent | undefined)[] = [];
  /** Index of the oldest event that is held: leaving a gap is cheaper than moving all others. */
  #head = 0;
  #lastId = 0;
  #start = 0;
  #end = 0;
  #closed = false;

  constructor(budget: LogBudget) {
    this.#budget = budget;
  }

  /** Number of the newest event; 0 while there is none. */
  get lastId(): number {
    return this.#lastId;
  }

  /** Number of the oldest event that is held; one more than `lastId` when none is. */
  get firstId(): number {
    return this.#lastId - (this.#events.length - this.#head) + 1;
  }

  /** Bytes that are held. */
  get bytes(): number {
    return this.#end - this.#start;
  }

  /** Bytes of the whole run so far. */
  get end(): number {
    return this.#end;
  }

  /** Whether no event follows. */
  get closed(): boolean {
    return this.#closed;
  }

  append(events: readonly StreamEvent[]): void {
    const before = this.#end;
    for (const event of events) {
      const { id, type, json, bytes } = encodeEvent(event, ++this.#lastId);
      this.#end += bytes + EVENT_BYTES;
      const last = event.type === "done" || event.type === "error" ? event : undefined;
      this.#events.push({ id, type, json, bytes, last, end: this.#end });
    }
    this.#budget.take(this.#end - before);
  }

  close(): void {
    this.#closed = true;
  }

  /** Bytes of the run up to and with this event, which is held or the one before the oldest. */
  endOf(id: number): number {
    return this.#events[this.#head + id - this.firstId]?.end ?? this.#start;
  }

  /** Events after this one: at least one if there is any, and no more when `maxBytes` are reached. */
  after(id: number, maxBytes: number): LoggedEvent[] {
    const limit = this.endOf(id) + maxBytes;
    const found: LoggedEvent[] = [];
    for (let at = this.#head + id + 1 - this.firstId; at < this.#events.length; at++) {
      const event = this.#events[at];
      if (event === undefined || (found.length > 0 && event.end > limit)) break;
      found.push(event);
    }
    return found;
  }

  /** Lets the oldest events go, up to and with `id`, while more than `keepBytes` are held. */
  trim(keepBytes: number, id: number): void {
    const before = this.#start;
    let next = this.#events[this.#head];
    while (next !== undefined && next.id <= id && this.bytes > keepBytes) {
      this.#start = next.end;
      this.#events[this.#head] = undefined;
      next = this.#events[++this.#head];
    }
    if (this.#start === before) return;
    if (this.#head * 2 >= this.#events.length) {
      this.#events = this.#events.slice(this.#head);
      this.#head = 0;
    }
    this.#budget.release(this.#start - before);
  }
}
