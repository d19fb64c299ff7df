/** Something that is made a moment after the start, or by the first who asks for it if that comes sooner. */
export class Late<Part> {
  readonly #make: () => Promise<Part>;
  #making: Promise<Part> | undefined;
  #part: Part | undefined;

  constructor(make: () => Promise<Part>) {
    this.#make = make;
  }

  /** Once it is there, and without waiting. */
  get now(): Part | undefined {
    return this.#part;
  }

  /** To be awaited: nobody waits for what is there. */
  get part(): Part | Promise<Part> {
    return this.#part ?? this.come();
  }

  /** Where it failed, the next who asks tries again. As for code: Node has forgotten a file that was not found, though not one that could not be read. */
  async come(): Promise<Part> {
    this.#making ??= this.#make();
    const making = this.#making;
    try {
      this.#part = await making;
      return this.#part;
    } catch (error) {
      // Another may have begun anew meanwhile.
      if (this.#making === making) this.#making = undefined;
      throw error;
    }
  }
}
