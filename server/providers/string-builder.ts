/** So many pieces are joined at once. */
const PIECES = 256;

/**
 * A text that grows by a token at a time. `+=` would make a tree of V8's with one node for each token, which every large
 * garbage collection visits again: at 500 streams it stops the process ten times as long.
 */
export class StringBuilder {
  #text = "";
  #pieces: string[] = [];
  /** In UTF-16 units, as of a string. */
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
