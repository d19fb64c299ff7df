/** The memory that the logs of all runs may take together. */
export class LogBudget {
  readonly #max: number;
  #used = 0;
  /** What can be given up, oldest first: each releases its bytes when it is called. */
  readonly #spare = new Set<() => void>();
  readonly #waiting = new Set<() => void>();

  /** `max` in bytes. */
  constructor(max: number) {
    this.#max = max;
  }

  get isFull(): boolean {
    return this.#used >= this.#max;
  }

  take(bytes: number): void {
    this.#used += bytes;
    for (const giveUp of this.#spare) {
      if (this.#used <= this.#max) return;
      this.#spare.delete(giveUp);
      giveUp();
    }
  }

  release(bytes: number): void {
    this.#used -= bytes;
    if (this.isFull) return;
    for (const wake of [...this.#waiting]) wake();
  }

  /** Offers a log that nobody reads; `giveUp` is called when its room is needed. */
  offer(giveUp: () => void): void {
    this.#spare.add(giveUp);
  }

  withdraw(giveUp: () => void): void {
    this.#spare.delete(giveUp);
  }

  /** `wake` is called whenever there is room again, until it is forgotten. */
  onRoom(wake: () => void): void {
    this.#waiting.add(wake);
  }

  forget(wake: () => void): void {
    this.#waiting.delete(wake);
  }
}
