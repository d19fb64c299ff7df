import type { EventSink, ReadingAccess } from "./run-access.ts";
import type { RunLog } from "./run-log.ts";

/** Most bytes that are handed over before the line is asked whether it can take more. */
const BATCH_BYTES = 64 * 1024;

/** What a reading tells its run. */
interface ReadingListener {
  /** It got further, so that more may be asked of the model. */
  onProgress(): void;
  onDetach(reading: Reading): void;
}

/** One reader's place in the log of a run. It starts to read with the first `resume`. */
export class Reading implements ReadingAccess {
  readonly #log: RunLog;
  readonly #sink: EventSink;
  readonly #listener: ReadingListener;
  #sent: number;
  #sentBytes: number;
  #started = false;
  #canTake = false;
  #over = false;

  /** Reads what follows the event `after`, which is held or the one before the oldest. */
  constructor(log: RunLog, after: number, sink: EventSink, listener: ReadingListener) {
    this.#log = log;
    this.#sink = sink;
    this.#listener = listener;
    this.#sent = after;
    this.#sentBytes = log.endOf(after);
  }

  /** Number of the last event that was handed over. */
  get sent(): number {
    return this.#sent;
  }

  /** Bytes of the run up to and with that event. */
  get sentBytes(): number {
    return this.#sentBytes;
  }

  /** The line can take more. */
  resume(): void {
    this.#started = true;
    this.#canTake = true;
    this.flush();
    this.#listener.onProgress();
  }

  /** The line is gone, or has all. May be called again. */
  detach(): void {
    this.#over = true;
    this.#listener.onDetach(this);
  }

  /** Hands over what is there and can be taken. */
  flush(): void {
    while (this.#canTake && !this.#over) {
      const events = this.#log.after(this.#sent, BATCH_BYTES);
      const newest = events.at(-1);
      if (newest === undefined) break;
      this.#sent = newest.id;
      this.#sentBytes = newest.end;
      this.#canTake = this.#sink.write(events);
    }
    if (!this.#started || this.#over) return;
    if (!this.#log.closed || this.#sent < this.#log.lastId) return;
    this.#over = true;
    this.#sink.end();
  }

  /** For a reader whose next event was let go. */
  cut(): void {
    if (this.#over) return;
    this.#over = true;
    this.#sink.cut();
  }
}

/** Bytes of the run that the quickest of its readers was given. */
export function furthest(readings: Iterable<Reading>): number {
  let most = 0;
  for (const { sentBytes } of readings) most = Math.max(most, sentBytes);
  return most;
}
