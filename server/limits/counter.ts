/** Counts what each id (a key, an address) has in use, and forgets an id that has nothing. */
export class Counter {
  readonly #counts = new Map<string, number>();

  of(id: string): number {
    return this.#counts.get(id) ?? 0;
  }

  add(id: string): void {
    this.#counts.set(id, this.of(id) + 1);
  }

  remove(id: string): void {
    const left = this.of(id) - 1;
    if (left > 0) this.#counts.set(id, left);
    else this.#counts.delete(id);
  }

  /** Whether one more would be beyond `max`; 0 is no limit. An id that is not counted never is. */
  isFull(id: string | undefined, max: number): boolean {
    return id !== undefined && max > 0 && this.of(id) >= max;
  }
}
