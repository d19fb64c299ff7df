/** Something whose code is read a moment after the start, or by the first who asks for it if that comes sooner. */
export class Late<Part extends { prepare?(): Promise<void> }> {
  readonly #load: () => Promise<Part>;
  #loading: Promise<Part> | undefined;
  #part: Part | undefined;

  constructor(load: () => Promise<Part>) {
    this.#load = load;
  }

  /** Once it is there, and without waiting. */
  get now(): Part | undefined {
    return this.#part;
  }

  /** Where it failed, the next who asks tries again: Node has forgotten a file that was not found, though not one that could not be read. */
  async come(): Promise<Part> {
    this.#loading ??= this.#load();
    const loading = this.#loading;
    try {
      this.#part = await loading;
      return this.#part;
    } catch (error) {
      // Another may have begun anew meanwhile.
      if (this.#loading === loading) this.#loading = undefined;
      throw error;
    }
  }

  async prepare(): Promise<void> {
    const part = await this.come();
    await part.prepare?.();
  }
}
