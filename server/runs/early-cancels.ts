/** For how long the message of a run that was cancelled may still come: longer than a body may take, unless that is set otherwise. */
const KEPT_MS = 10 * 60_000;
/** A place has 43 characters. Whoever fills them up has runs answered that nobody reads, as they were without this. */
const MAX_PLACES = 10_000;

/**
 * Places of runs that were cancelled before they were known. A large message may still be on its way then: a browser
 * sends what a WebSocket was given, also when the page has closed it.
 */
export class EarlyCancels {
  /** The oldest first, with the time at which each is forgotten. */
  readonly #places = new Map<string, number>();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** The oldest make room when there are too many. */
  add(place: string): void {
    const now = this.#now();
    this.#places.delete(place);
    for (const [oldest, until] of this.#places) {
      if (until > now && this.#places.size < MAX_PLACES) break;
      this.#places.delete(oldest);
    }
    this.#places.set(place, now + KEPT_MS);
  }

  /** Also when asked again: the message may come twice. */
  has(place: string): boolean {
    return (this.#places.get(place) ?? 0) > this.#now();
  }
}
