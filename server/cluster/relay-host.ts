import type { ReadingAccess, RunAccess } from "../runs/run-access.ts";
import { runNotFound } from "../runs/run-hub.ts";
import type { RelayFrame, WorkerId } from "./apis.ts";
import { encodeError } from "./peer.ts";

/** Bytes that may be on their way to one reader: about what a slow line of its own would hold. */
const WINDOW_BYTES = 64 * 1024;

type OpenFrame = Extract<RelayFrame, { type: "open" }>;

/** One reader of a run of this worker, who sits in another one. */
class Hosted {
  readonly #reading: ReadingAccess;
  #onTheWay = 0;

  constructor(run: RunAccess, { relay, after }: OpenFrame, send: (frame: RelayFrame) => void) {
    this.#reading = run.attach(after, {
      write: (events) => {
        for (const { json } of events) this.#onTheWay += json.length;
        const plain = events.map(({ id, type, json, bytes }) => ({ id, type, json, bytes }));
        send({ type: "events", relay, events: plain });
        return this.#onTheWay < WINDOW_BYTES;
      },
      end: () => {
        send({ type: "end", relay });
        this.leave();
      },
      cut: () => {
        send({ type: "cut", relay });
        this.leave();
      },
    });
    run.admitted.then(
      () => {
        send({ type: "admitted", relay });
        this.#reading.resume();
      },
      (error: unknown) => {
        send({ type: "refused", relay, error: encodeError(error) });
        this.leave();
      },
    );
  }

  taken(bytes: number): void {
    this.#onTheWay -= bytes;
    if (this.#onTheWay < WINDOW_BYTES) this.#reading.resume();
  }

  leave(): void {
    this.#reading.detach();
  }
}

/** Lets other workers read runs of this one. */
export class RelayHost {
  readonly #runAt: (place: string) => RunAccess | undefined;
  readonly #send: (to: WorkerId, frame: RelayFrame) => void;
  /** By reader: worker, then its number there. */
  readonly #readers = new Map<WorkerId, Map<number, Hosted>>();

  constructor(runAt: (place: string) => RunAccess | undefined, send: (to: WorkerId, frame: RelayFrame) => void) {
    this.#runAt = runAt;
    this.#send = send;
  }

  receive(from: WorkerId, frame: RelayFrame): void {
    switch (frame.type) {
      case "open":
        this.#open(from, frame);
        break;
      case "taken":
        this.#readers.get(from)?.get(frame.relay)?.taken(frame.bytes);
        break;
      case "leave":
        this.#readers.get(from)?.get(frame.relay)?.leave();
        this.#readers.get(from)?.delete(frame.relay);
    }
  }

  /** A worker has ended, and with it its clients' lines. */
  gone(worker: WorkerId): void {
    for (const reader of this.#readers.get(worker)?.values() ?? []) reader.leave();
    this.#readers.delete(worker);
  }

  #open(from: WorkerId, frame: OpenFrame): void {
    const send = (answer: RelayFrame) => this.#send(from, answer);
    try {
      const run = this.#runAt(frame.place);
      if (run === undefined) throw runNotFound();
      const readers = this.#readers.get(from) ?? new Map<number, Hosted>();
      this.#readers.set(from, readers.set(frame.relay, new Hosted(run, frame, send)));
    } catch (error) {
      send({ type: "refused", relay: frame.relay, error: encodeError(error) });
    }
  }
}
