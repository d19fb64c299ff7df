import type { AbortKind } from "../agent/run-abort.ts";
import type { Caller } from "../http/caller.ts";
import type { EventSink, ReadingAccess, RunAccess, RunDirectory, RunOrder } from "../runs/run-access.ts";
import { checkAfter, endsWith, nearEndOf } from "../runs/run-extent.ts";
import { digestOf, type PlaceObserver, type RunHub, runNotFound } from "../runs/run-hub.ts";
import type { FoundRun, PrimaryApi, RelayFrame, RunView, WorkerApi, WorkerId } from "./apis.ts";
import type { Peer } from "./peer.ts";
import { RelayHost } from "./relay-host.ts";
import { RelayedReading } from "./relayed-reading.ts";

type ToPrimary = Pick<Peer<PrimaryApi, WorkerApi>, "call" | "cast">;

/**
 * The runs of all workers, as one of them sees them. A run stays where it was started; whoever reads it
 * elsewhere gets its encoded events through the primary process, which knows who has which run.
 */
export class SharedRuns implements RunDirectory {
  readonly #primary: ToPrimary;
  readonly #own: RunHub;
  readonly #host: RelayHost;
  readonly #readings = new Map<number, { owner: WorkerId; reading: RelayedReading }>();
  /** Names that are being claimed: who sends a message twice at once must find its first sending. */
  readonly #claims = new Map<string, Promise<unknown>>();
  #lastRelay = 0;

  constructor(primary: ToPrimary, own: RunHub) {
    this.#primary = primary;
    this.#own = own;
    this.#host = new RelayHost(
      (place) => own.at(place),
      (to, frame) => primary.cast("relay", { to, frame }),
    );
  }

  get draining(): boolean {
    return this.#own.draining;
  }

  async open(order: RunOrder): Promise<RunAccess> {
    // A name that was minted here is nobody else's.
    if (order.id === undefined) return this.#own.open(order);
    const place = this.#own.placeOf(order.caller, order.id);
    while (this.#claims.has(place)) await this.#claims.get(place);
    if (this.#own.at(place) !== undefined) return this.#own.open(order);
    const claim = this.#primary.call("claim", { place, digest: digestOf(order.request) });
    const settled = claim.catch(() => {});
    this.#claims.set(place, settled);
    try {
      const found = await claim;
      if (typeof found === "object") return this.#relayed(place, found);
      const run = this.#own.open(order);
      if (found === "cancelled") run.cancel();
      return run;
    } finally {
      this.#claims.delete(place);
      if (this.#own.at(place) === undefined) this.#primary.cast("free", { place });
    }
  }

  async find(caller: Caller, id: string): Promise<RunAccess> {
    const place = this.#own.placeOf(caller, id);
    await this.#claims.get(place);
    const own = this.#own.at(place);
    if (own !== undefined) return own;
    const found = await this.#primary.call("find", { place });
    if (found === null) throw runNotFound();
    return this.#relayed(place, found);
  }

  async cancel(caller: Caller, id: string): Promise<boolean> {
    const place = this.#own.placeOf(caller, id);
    await this.#claims.get(place);
    return this.#own.at(place)?.cancel() ?? this.#primary.call("cancel", { place });
  }

  /** For another worker: what can be read of a run of this one. @throws ApiError for another message's run */
  async look({ place, digest }: { place: string; digest?: string }): Promise<RunView | null> {
    await this.#claims.get(place);
    const run = this.#own.at(place, digest);
    if (run === undefined) return null;
    const { firstId, lastId, closed } = run.extent;
    return { id: run.id, firstId, lastId, closed };
  }

  /** For another worker. @returns `null` when there is no such run */
  async cancelOwn({ place }: { place: string }): Promise<boolean | null> {
    await this.#claims.get(place);
    return this.#own.at(place)?.cancel() ?? null;
  }

  /** For another worker. */
  abortOwn({ place, kind }: { place: string; kind: AbortKind }): void {
    this.#own.at(place)?.abort(kind);
  }

  receive(from: WorkerId, frame: RelayFrame): void {
    if (frame.type === "open" || frame.type === "taken" || frame.type === "leave") {
      this.#host.receive(from, frame);
    } else {
      this.#readings.get(frame.relay)?.reading.receive(frame);
    }
  }

  /** Another worker has ended. */
  gone(worker: WorkerId): void {
    this.#host.gone(worker);
    for (const { owner, reading } of [...this.#readings.values()]) {
      if (owner === worker) reading.lose();
    }
  }

  #relayed(place: string, { owner, view }: FoundRun): RelayedRun {
    return new RelayedRun(view, {
      read: (after, sink) => this.#read(owner, place, after, sink),
      cancel: () => this.#primary.call("cancel", { place }),
      abort: (kind) => this.#primary.cast("abort", { place, kind }),
    });
  }

  #read(owner: WorkerId, place: string, after: number, sink: EventSink): RelayedReading {
    const relay = ++this.#lastRelay;
    const send = (frame: RelayFrame) => this.#primary.cast("relay", { to: owner, frame });
    const reading = new RelayedReading(sink, {
      onTaken: (bytes) => send({ type: "taken", relay, bytes }),
      onDetach: () => {
        this.#readings.delete(relay);
        this.#own.activity.leave();
        send({ type: "leave", relay });
      },
    });
    this.#readings.set(relay, { owner, reading });
    // A drain waits for every line, wherever its run is.
    this.#own.activity.enter();
    send({ type: "open", relay, place, after });
    return reading;
  }
}

interface RelayedRunActions {
  read(after: number, sink: EventSink): RelayedReading;
  cancel(): Promise<boolean>;
  abort(kind: AbortKind): void;
}

/** A run of another worker, found for one client. */
class RelayedRun implements RunAccess {
  readonly id: string;
  readonly #view: RunView;
  readonly #actions: RelayedRunActions;
  #admitted: Promise<void> = Promise.resolve();

  constructor(view: RunView, actions: RelayedRunActions) {
    this.id = view.id;
    this.#view = view;
    this.#actions = actions;
  }

  get admitted(): Promise<void> {
    return this.#admitted;
  }

  get nearEnd(): number {
    return nearEndOf(this.#view);
  }

  hasEndedWith(after: number): boolean {
    return endsWith(this.#view, after);
  }

  attach(after: number, sink: EventSink): ReadingAccess {
    checkAfter(this.#view, after);
    const reading = this.#actions.read(after, sink);
    this.#admitted = reading.admitted;
    return reading;
  }

  cancel(): Promise<boolean> {
    return this.#actions.cancel();
  }

  abort(kind: AbortKind): void {
    this.#actions.abort(kind);
  }
}

/** Tells the primary process which runs this worker has. */
export function placeReporter(primary: ToPrimary): PlaceObserver {
  return {
    onTaken: (place) => primary.cast("taken", { place }),
    onFree: (place) => primary.cast("free", { place }),
  };
}
