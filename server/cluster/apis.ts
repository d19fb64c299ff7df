/** What the processes of one server ask of each other. All of it travels as JSON. */

import type { AbortKind } from "../agent/run-abort.ts";
import type { Caller } from "../http/caller.ts";
import type { EncodedEvent } from "../protocol/encoded-event.ts";
import type { RunExtent } from "../runs/run-extent.ts";
import type { WireError } from "./peer.ts";

/** The number of a worker's process. It is never used again, so that no message reaches a successor. */
export type WorkerId = number;

export type Settings = Readonly<Record<string, string | undefined>>;

/** All that a worker needs to begin. */
export interface WorkerSetup {
  /** How many workers there are: some bounds are split among them. */
  readonly workers: number;
  /** The project's folder; absent for the demo agent. */
  readonly folder?: string;
  readonly flags: { readonly host?: string; readonly port?: string };
  /** The settings of the start, and those that the last reload took over. */
  readonly env: Settings;
  readonly liveEnv: Settings;
  /** `Config.idSecret`, in base64. */
  readonly idSecret: string;
}

/** What a worker serves, once it listens. */
export interface Listening {
  readonly url: string;
  readonly name: string;
  readonly agent: string;
  readonly model: string;
  readonly fallbacks: readonly string[];
}

/** What can be taken and given back. The worker chooses the number, so that it can give up before it is answered. */
export interface Hold {
  readonly hold: number;
}

/** A run as it was when somebody asked for it. */
export interface RunView extends RunExtent {
  readonly id: string;
}

/** A run of another worker. */
export interface FoundRun {
  readonly owner: WorkerId;
  readonly view: RunView;
}

/** What became of a claim: a run of another worker, or the place, whose run may have been cancelled before. */
export type Claim = FoundRun | "taken" | "cancelled";

/** From who reads a run of another worker, and back. `relay` numbers the reading, and is the reader's. */
export type RelayFrame =
  | {
      readonly type: "open";
      readonly relay: number;
      readonly place: string;
      readonly after: number;
    }
  /** So many more bytes were taken. */
  | { readonly type: "taken"; readonly relay: number; readonly bytes: number }
  | { readonly type: "leave"; readonly relay: number }
  | { readonly type: "admitted"; readonly relay: number }
  | { readonly type: "refused"; readonly relay: number; readonly error: WireError }
  | { readonly type: "events"; readonly relay: number; readonly events: readonly EncodedEvent[] }
  | { readonly type: "end"; readonly relay: number }
  | { readonly type: "cut"; readonly relay: number };

/** What a worker may ask of the primary process. */
export interface PrimaryApi {
  setup(_: null): WorkerSetup;
  listening(start: Listening): void;
  /** It cannot start, and this sentence says why. */
  cannotStart(why: { sentence: string }): void;
  /** Something threw where nobody catches: the worker finishes what is running and ends. */
  failing(_: null): void;
  /** Its last figures, before it ends. */
  ending(what: { figures: string }): void;

  rightKey(from: { address: string }): void;
  wrongKey(from: { address: string }): void;
  message(from: { caller: Caller }): void;
  enterRun(what: Hold & { caller: Caller }): Promise<void>;
  enterSocket(what: Hold & { caller: Caller }): Promise<void>;
  enterLarge(what: Hold & { address: string }): Promise<void>;
  release(what: Hold): void;

  /** Makes the place this worker's, unless there is a run. @throws ApiError for the run of another message. */
  claim(what: { place: string; digest: string }): Promise<Claim>;
  find(what: { place: string }): Promise<FoundRun | null>;
  taken(what: { place: string }): void;
  free(what: { place: string }): void;
  /** @throws ApiError `run_not_found`; who claims the place later hears of it. */
  cancel(what: { place: string }): Promise<boolean>;
  abort(what: { place: string; kind: AbortKind }): void;
  relay(what: { to: WorkerId; frame: RelayFrame }): void;
  /** The figures of every worker, and of those that have ended. */
  metrics(_: null): Promise<readonly string[]>;
}

/** What the primary process may ask of a worker. */
export interface WorkerApi {
  /** Takes over settings; the answer is how many sockets and runs were ended by it. */
  reload(what: { env: Settings }): Promise<number>;
  /** Refuses new runs; answered when those in progress are over. */
  drain(_: null): Promise<void>;
  /** Closes everything and ends the process. */
  close(_: null): Promise<void>;

  look(what: { place: string; digest?: string }): Promise<RunView | null>;
  /** `null`: it has no such run. */
  cancel(what: { place: string }): Promise<boolean | null>;
  abort(what: { place: string; kind: AbortKind }): void;
  relay(what: { from: WorkerId; frame: RelayFrame }): void;
  /** Its own figures. */
  metrics(_: null): string;
  /** Another worker has ended. */
  gone(what: { worker: WorkerId }): void;
}
