/** How many pieces are joined at once. */
const PIECES = 256;

/**
 * A text that grows by one token at a time. With `+=`, V8 keeps it as a tree with a node for each token, and every large
 * garbage collection visits all of them: with hundreds of streams, tokens wait for it.
 */
export class StringBuilder {
  #text = "";
  #pieces: string[] = [];
  /** Counted in UTF-16 units, as in a string. */
  length = 0;

  append(piece: string): void {
    this.length += piece.length;
    if (this.#pieces.push(piece) === PIECES) this.#join();
  }

  toString(): string {
    this.#join();
    return this.#text;
  }

  #join(): void {
    this.#text += this.#pieces.join("");
    this.#pieces = [];
  }
}
