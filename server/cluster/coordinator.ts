import type { Worker } from "node:cluster";
import type { LargeBodies } from "../http/body.ts";
import type { AdmissionControl } from "../limits/admission-control.ts";
import { runNotFound } from "../runs/run-hub.ts";
import { AdmissionDesk } from "./admission-desk.ts";
import type { Listening, PrimaryApi, RelayFrame, Settings, WorkerApi, WorkerId, WorkerSetup } from "./apis.ts";
import { Figures } from "./figures.ts";
import { Peer, PeerGone } from "./peer.ts";
import { RunPlaces } from "./run-places.ts";
import { WorkerPool } from "./worker-pool.ts";

export interface CoordinatorOptions {
  /** How many. */
  workers: number;
  /** The script of a worker, and its arguments. */
  exec: string;
  args: readonly string[];
  admission: AdmissionControl;
  large: LargeBodies;
  /** What a worker that is starting now needs. */
  setup(): WorkerSetup;
  /** Adds up the figures of workers that have ended. */
  totalsOf(pages: readonly string[]): string;
  log: { notice(text: string): void; failure(error: unknown): void };
  /** The server cannot start or go on, and this sentence says why. */
  gaveUp(sentence: string): void;
}

/** A worker with the line to it. */
interface Connected {
  readonly peer: Peer<WorkerApi, PrimaryApi>;
  readonly desk: AdmissionDesk;
  isListening: boolean;
}

/** Runs the workers, answers what they ask, and carries what they tell each other. */
export class Coordinator {
  readonly #options: CoordinatorOptions;
  readonly #connected = new Map<WorkerId, Connected>();
  readonly #places = new RunPlaces({
    look: async (worker, what) => this.#peerOf(worker).call("look", what),
    cancel: async (worker, place) => this.#peerOf(worker).call("cancel", { place }),
  });
  readonly #figures: Figures;
  #pool: WorkerPool | undefined;
  #onListening: ((listening: Listening) => void) | undefined;

  constructor(options: CoordinatorOptions) {
    this.#options = options;
    this.#figures = new Figures(options.totalsOf);
  }

  /** Resolves when every worker listens. */
  start(): Promise<Listening> {
    const { workers, exec, args, log, gaveUp } = this.#options;
    return new Promise((resolve) => {
      this.#onListening = resolve;
      this.#pool = new WorkerPool(workers, exec, args, {
        started: (worker) => this.#connect(worker),
        ended: (worker) => this.#disconnect(worker),
        notice: (text) => log.notice(text),
        gaveUp,
      });
    });
  }

  /** Drains all, then closes all. Resolves when they have ended. */
  async close(): Promise<void> {
    this.#pool?.stop();
    const peers = [...this.#connected.values()].map(({ peer }) => peer);
    await Promise.all(peers.map((peer) => this.#unlessGone(peer.call("drain", null))));
    for (const peer of peers) peer.cast("close", null);
    await this.#pool?.ended();
  }

  kill(): void {
    this.#pool?.stop();
    this.#pool?.kill();
  }

  /** How many sockets and runs were ended. */
  async reload(env: Settings): Promise<number> {
    const peers = [...this.#connected.values()].map(({ peer }) => peer);
    const ended = await Promise.all(peers.map((peer) => this.#unlessGone(peer.call("reload", { env }))));
    return ended.reduce<number>((sum, count) => sum + (count ?? 0), 0);
  }

  async #metrics(): Promise<string[]> {
    const listening = [...this.#connected].filter(([, { isListening }]) => isListening);
    const read = async ([id, { peer }]: [WorkerId, Connected]) => {
      const page = await this.#unlessGone(peer.call("metrics", null));
      if (page !== undefined) this.#figures.take(id, page);
    };
    await Promise.all(listening.map(read));
    return this.#figures.pages;
  }

  #connect(worker: Worker): void {
    const { admission, large, log } = this.#options;
    const desk = new AdmissionDesk(admission, large);
    const send = (frame: unknown) => void worker.send(frame as object, () => {});
    const peer: Connected["peer"] = new Peer(
      send,
      { ...desk.api, ...this.#startApi(worker), ...this.#runsApi(worker.id) },
      (error) => log.failure(error),
    );
    this.#connected.set(worker.id, { peer, desk, isListening: false });
    worker.on("message", (message) => peer.receive(message));
  }

  /** The worker has ended: what it held is free, and the others hear that its runs are gone. */
  #disconnect({ id }: Worker): void {
    const connected = this.#connected.get(id);
    this.#connected.delete(id);
    connected?.peer.close();
    connected?.desk.releaseAll();
    this.#figures.end(id);
    this.#places.forget(id);
    for (const { peer } of this.#connected.values()) peer.cast("gone", { worker: id });
  }

  #startApi(worker: Worker): Pick<PrimaryApi, "setup" | "listening" | "cannotStart" | "failing" | "ending"> {
    const { workers, setup, log, gaveUp } = this.#options;
    return {
      setup,
      listening: (listening) => {
        const connected = this.#connected.get(worker.id);
        if (connected !== undefined) connected.isListening = true;
        if (this.#onListening === undefined) {
          log.notice(`Worker ${worker.id} is listening.`);
        } else if (count(this.#connected.values(), (one) => one.isListening) === workers) {
          this.#pool?.settle();
          this.#onListening(listening);
          this.#onListening = undefined;
        }
      },
      cannotStart: ({ sentence }) => {
        if (this.#onListening === undefined) log.notice(`Worker ${worker.id}: ${sentence}`);
        else gaveUp(sentence);
      },
      failing: () => this.#pool?.replace(worker),
      ending: ({ figures }) => this.#figures.take(worker.id, figures),
    };
  }

  #runsApi(
    id: WorkerId,
  ): Pick<PrimaryApi, "claim" | "find" | "taken" | "free" | "cancel" | "abort" | "relay" | "metrics"> {
    const places = this.#places;
    return {
      claim: ({ place, digest }) => places.claim(id, place, digest),
      find: ({ place }) => places.find(id, place),
      taken: ({ place }) => places.take(place, id),
      free: ({ place }) => places.free(place, id),
      cancel: async ({ place }) => {
        const cancelled = await places.cancel(place);
        if (cancelled === null) throw runNotFound();
        return cancelled;
      },
      abort: (what) => {
        const owner = places.ownerOf(what.place);
        if (owner !== undefined) this.#connected.get(owner)?.peer.cast("abort", what);
      },
      relay: ({ to, frame }) => this.#relay(id, to, frame),
      metrics: () => this.#metrics(),
    };
  }

  #relay(from: WorkerId, to: WorkerId, frame: RelayFrame): void {
    const peer = this.#connected.get(to)?.peer;
    if (peer !== undefined) peer.cast("relay", { from, frame });
    // It ended while the message was on its way, perhaps before the sender knew of it.
    else this.#connected.get(from)?.peer.cast("gone", { worker: to });
  }

  #peerOf(worker: WorkerId): Connected["peer"] {
    const peer = this.#connected.get(worker)?.peer;
    if (peer === undefined) throw new PeerGone(`worker ${worker} has ended`);
    return peer;
  }

  async #unlessGone<Value>(answer: Promise<Value>): Promise<Value | undefined> {
    try {
      return await answer;
    } catch (error) {
      if (!(error instanceof PeerGone)) throw error;
      return undefined;
    }
  }
}

function count<Item>(items: Iterable<Item>, is: (item: Item) => boolean): number {
  return [...items].filter(is).length;
}
