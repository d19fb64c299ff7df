/**
 * From here on pieces are joined: often enough that few of them outlive a collection of the young generation, which would
 * copy each twice, and seldom enough that what V8 keeps of each joined piece is little beside its text.
 */
const JOINED_CHARS = 128;

/**
 * A text that comes in many small pieces. What `+=` makes holds every piece, and an object beside each, until somebody
 * reads it: the text of a long answer would take more than ten times its size while the answer runs.
 */
export class GrowingText {
  #joined = "";
  #recent = "";

  get length(): number {
    return this.#joined.length + this.#recent.length;
  }

  get text(): string {
    return this.#joined + this.#recent;
  }

  add(piece: string): void {
    this.#recent += piece;
    if (this.#recent.length < JOINED_CHARS) return;
    // To tell a character, V8 joins the pieces.
    this.#recent.charCodeAt(0);
    this.#joined += this.#recent;
    this.#recent = "";
  }
}
