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

  /** Where the code could not be read, the next who asks tries again. */
  async come(): Promise<Part> {
    this.#loading ??= this.#load();
    try {
      this.#part = await this.#loading;
      return this.#part;
    } catch (error) {
      this.#loading = undefined;
      throw error;
    }
  }

  async prepare(): Promise<void> {
    const part = await this.come();
    await part.prepare?.();
  }
}
