import type { FoundRun, RunView, WorkerId } from "./apis.ts";
import { PeerGone } from "./peer.ts";

/** Asks a worker for a run. Rejects with `PeerGone` when that worker has ended. */
export type Look = (
  worker: WorkerId,
  what: { place: string; digest?: string },
) => Promise<RunView | null>;

/** Which worker holds which run. Kept in the primary process; the runs themselves stay where they are. */
export class RunPlaces {
  readonly #owners = new Map<string, WorkerId>();
  readonly #look: Look;

  constructor(look: Look) {
    this.#look = look;
  }

  ownerOf(place: string): WorkerId | undefined {
    return this.#owners.get(place);
  }

  take(place: string, worker: WorkerId): void {
    this.#owners.set(place, worker);
  }

  free(place: string, worker: WorkerId): void {
    if (this.#owners.get(place) === worker) this.#owners.delete(place);
  }

  /** A worker has ended, and its runs with it. */
  forget(worker: WorkerId): void {
    for (const [place, owner] of this.#owners) {
      if (owner === worker) this.#owners.delete(place);
    }
  }

  /** Makes a place this worker's, and answers `null`; or finds the run that another worker has there. */
  claim(worker: WorkerId, place: string, digest: string): Promise<FoundRun | null> {
    return this.#search(worker, { place, digest }, () => this.take(place, worker));
  }

  /** The run that another worker has at a place. */
  find(worker: WorkerId, place: string): Promise<FoundRun | null> {
    return this.#search(worker, { place }, () => {});
  }

  /** `onFree` is called in the very turn in which nobody else has the place: two cannot claim it at once. */
  async #search(
    worker: WorkerId,
    what: { place: string; digest?: string },
    onFree: () => void,
  ): Promise<FoundRun | null> {
    for (;;) {
      const owner = this.#owners.get(what.place);
      if (owner === undefined || owner === worker) {
        onFree();
        return null;
      }
      const view = await this.#lookAt(owner, what);
      if (view !== null) return { owner, view };
      // It was let go while the question was on its way.
      this.free(what.place, owner);
    }
  }

  async #lookAt(
    owner: WorkerId,
    what: { place: string; digest?: string },
  ): Promise<RunView | null> {
    try {
      return await this.#look(owner, what);
    } catch (error) {
      if (error instanceof PeerGone) return null;
      throw error;
    }
  }
}
