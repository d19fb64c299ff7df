import { EarlyCancels } from "../runs/early-cancels.ts";
import type { Claim, FoundRun, RunView, WorkerId } from "./apis.ts";
import { PeerGone } from "./peer.ts";

/** A run that is looked for; with the digest, one of this message only. */
interface Sought {
  readonly place: string;
  readonly digest?: string;
}

/** What workers are asked for. Each answers `null` when it has no such run; rejects with `PeerGone` when it has ended. */
export interface Workers {
  look(worker: WorkerId, what: Sought): Promise<RunView | null>;
  cancel(worker: WorkerId, place: string): Promise<boolean | null>;
}

/** Which worker holds which run. Kept in the primary process; the runs themselves stay where they are. */
export class RunPlaces {
  /** An object for each taking: what is asked about one must not free the next. */
  readonly #owners = new Map<string, { readonly worker: WorkerId }>();
  readonly #early = new EarlyCancels();
  readonly #workers: Workers;

  constructor(workers: Workers) {
    this.#workers = workers;
  }

  ownerOf(place: string): WorkerId | undefined {
    return this.#owners.get(place)?.worker;
  }

  take(place: string, worker: WorkerId): void {
    this.#owners.set(place, { worker });
  }

  free(place: string, worker: WorkerId): void {
    if (this.ownerOf(place) === worker) this.#owners.delete(place);
  }

  /** A worker has ended, and its runs with it. */
  forget(worker: WorkerId): void {
    for (const [place, owner] of this.#owners) {
      if (owner.worker === worker) this.#owners.delete(place);
    }
  }

  /** Makes a place this worker's, or finds the run that another worker has there. */
  async claim(worker: WorkerId, place: string, digest: string): Promise<Claim> {
    const look = (owner: WorkerId) => this.#look(owner, { place, digest });
    const found = await this.#ask(place, look, {
      but: worker,
      onFree: () => this.take(place, worker),
    });
    return found ?? (this.#early.has(place) ? "cancelled" : "taken");
  }

  /** The run that another worker has at a place. */
  find(worker: WorkerId, place: string): Promise<FoundRun | null> {
    return this.#ask(place, (owner) => this.#look(owner, { place }), { but: worker });
  }

  /** Ends the run at a place; `null` when there is none yet: who claims the place hears of it. */
  cancel(place: string): Promise<boolean | null> {
    return this.#ask(place, (owner) => this.#workers.cancel(owner, place), {
      onFree: () => this.#early.add(place),
    });
  }

  async #look(owner: WorkerId, what: Sought): Promise<FoundRun | null> {
    const view = await this.#workers.look(owner, what);
    return view && { owner, view };
  }

  /**
   * Asks the owner of a place, unless that is the worker `but`, until somebody answers. `onFree` is called in the very
   * turn in which nobody else has the place: two cannot claim it at once.
   */
  async #ask<Answer>(
    place: string,
    question: (owner: WorkerId) => Promise<Answer | null>,
    { but, onFree }: { but?: WorkerId; onFree?: () => void },
  ): Promise<Answer | null> {
    for (;;) {
      const owner = this.#owners.get(place);
      if (owner === undefined || owner.worker === but) {
        onFree?.();
        return null;
      }
      const answer = await question(owner.worker).catch(noneIfGone);
      if (answer !== null) return answer;
      // It was let go while the question was on its way, and may have been taken again.
      if (this.#owners.get(place) === owner) this.#owners.delete(place);
    }
  }
}

function noneIfGone(error: unknown): null {
  if (error instanceof PeerGone) return null;
  throw error;
}
