/** Turns pushed values into an async iterable for one reader. */
export class EventQueue<T> implements AsyncIterable<T> {
  #waiting: T[] = [];
  #wake: (() => void) | undefined;
  #ended = false;
  #error: Error | undefined;

  push(value: T): void {
    if (this.#ended) return;
    this.#waiting.push(value);
    this.#wake?.();
  }

  /** Ends the iteration after what is still waiting; with an error, by throwing it. */
  end(error?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      const values = this.#waiting;
      this.#waiting = [];
      yield* values;
      if (this.#waiting.length > 0) continue;
      if (this.#error) throw this.#error;
      if (this.#ended) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
