import type { EncodedEvent } from "../protocol/encoded-event.ts";
import type { EventSink, ReadingAccess } from "../runs/run-access.ts";
import { runNotFound } from "../runs/run-hub.ts";
import type { RunEvent } from "../runs/run-log.ts";
import type { RelayFrame } from "./apis.ts";
import { decodeError } from "./peer.ts";

/** So much is taken before the other worker is told: a message for each token would cost more than the token. */
const TELL_BYTES = 32 * 1024;

/** What a reading tells of itself. */
export interface RelayListener {
  onTaken(bytes: number): void;
  onDetach(): void;
}

/** A place in a run of another worker, whose events come as messages. */
export class RelayedReading implements ReadingAccess {
  /** Settles as the run's own `admitted` does, and when nobody waits for it any more. */
  readonly admitted: Promise<void>;
  readonly #sink: EventSink;
  readonly #listener: RelayListener;
  readonly #arrived: RunEvent[][] = [];
  #settle: { admit(): void; refuse(error: unknown): void } = { admit() {}, refuse() {} };
  #admitted = false;
  #started = false;
  #canTake = false;
  #untold = 0;
  #ended = false;
  #over = false;
  #detached = false;

  constructor(sink: EventSink, listener: RelayListener) {
    this.#sink = sink;
    this.#listener = listener;
    this.admitted = new Promise((resolve, reject) => {
      this.#settle = { admit: resolve, refuse: reject };
    });
    // Whoever reads the run hears of a refusal; when nobody does any more, nobody has to.
    this.admitted.catch(() => {});
  }

  resume(): void {
    this.#started = true;
    this.#canTake = true;
    this.#flush();
  }

  detach(): void {
    this.#over = true;
    if (this.#detached) return;
    this.#detached = true;
    this.#settle.admit();
    this.#listener.onDetach();
  }

  receive(frame: RelayFrame): void {
    switch (frame.type) {
      case "admitted":
        this.#admitted = true;
        this.#settle.admit();
        break;
      case "refused":
        this.#fail(decodeError(frame.error));
        break;
      case "events":
        this.#arrived.push(frame.events.map(toRunEvent));
        this.#flush();
        break;
      case "end":
        this.#ended = true;
        this.#flush();
        break;
      case "cut":
        this.#cut();
    }
  }

  /** The worker that has the run is gone, and the run with it: the client finds that out by coming back. */
  lose(): void {
    this.#fail(runNotFound());
  }

  #fail(error: Error): void {
    if (this.#admitted) this.#cut();
    else this.#settle.refuse(error);
  }

  #cut(): void {
    if (this.#over) return;
    this.#over = true;
    this.#sink.cut();
  }

  #flush(): void {
    while (this.#canTake && !this.#over) {
      const events = this.#arrived.shift();
      if (events === undefined) break;
      this.#canTake = this.#sink.write(events);
      for (const { json } of events) this.#untold += json.length;
      if (this.#untold < TELL_BYTES) continue;
      this.#listener.onTaken(this.#untold);
      this.#untold = 0;
    }
    if (!this.#ended || !this.#started || this.#over || this.#arrived.length > 0) return;
    this.#over = true;
    this.#sink.end();
  }
}

function toRunEvent(event: EncodedEvent): RunEvent {
  const isLast = event.type === "done" || event.type === "error";
  return { ...event, last: isLast ? JSON.parse(event.json) : undefined };
}
