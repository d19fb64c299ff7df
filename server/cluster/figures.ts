import type { WorkerId } from "./apis.ts";

/**
 * What the workers have counted. A worker that has ended still counts with the figures that were last read from it:
 * for who collects them there is one server, and its counters never go down.
 */
export class Figures {
  readonly #totalsOf: (pages: readonly string[]) => string;
  readonly #latest = new Map<WorkerId, string>();
  #ended = "";

  /** `totalsOf` adds pages up and leaves out what is true only of a process that runs. */
  constructor(totalsOf: (pages: readonly string[]) => string) {
    this.#totalsOf = totalsOf;
  }

  /** A worker's page, in place of the one before. */
  take(worker: WorkerId, page: string): void {
    this.#latest.set(worker, page);
  }

  end(worker: WorkerId): void {
    const page = this.#latest.get(worker);
    if (page === undefined) return;
    this.#latest.delete(worker);
    this.#ended = this.#totalsOf([this.#ended, page]);
  }

  /** Of all who run, and of all who have ended. */
  get pages(): string[] {
    return [...this.#latest.values(), this.#ended];
  }
}
