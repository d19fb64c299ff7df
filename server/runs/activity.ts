/** Counts what is going on, so that a shutdown can wait for its end. */
export class Activity {
  #count = 0;
  #onIdle: (() => void) | undefined;

  enter(): void {
    this.#count++;
  }

  leave(): void {
    this.#count--;
    if (this.#count === 0) this.#onIdle?.();
  }

  /** Resolves with whether everything has ended within this many milliseconds. */
  idleWithin(ms: number): Promise<boolean> {
    if (this.#count === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), ms);
      this.#onIdle = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }
}
