const wordCharacter = /[\p{L}\p{N}]/u;

/**
 * Inline text that breaks off, made whole for the eye: unfinished marks at the end go, open emphasis and code are
 * closed, and of an unfinished link the label stays.
 */
export function closeMarks(text: string): string {
  return new MarkScanner(text.replace(/(?:!?\[|[*_~`\\])+$/, "")).close();
}

class MarkScanner {
  readonly #text: string;
  readonly #brackets: number[] = [];
  /** Emphasis that waits for its closing mark, outermost first. */
  readonly #open: string[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  close(): string {
    let index = 0;
    while (index < this.#text.length) {
      const next = this.#step(index);
      if (typeof next === "string") return next;
      index = next;
    }
    const bracket = this.#brackets[0];
    return this.#closed(bracket === undefined ? this.#text : this.#unlinked(bracket, Infinity));
  }

  /** Reads one construct: answers where the next one starts, or the healed text where this one breaks off. */
  #step(index: number): number | string {
    const character = this.#text.charAt(index);
    switch (character) {
      case "\\":
        return index + 2;
      case "`":
        return this.#code(index);
      case "[":
        this.#brackets.push(index);
        return index + 1;
      case "]":
        return this.#label(index);
      case "*":
      case "_":
      case "~":
        return this.#emphasis(index, this.#run(index));
      default:
        return index + 1;
    }
  }

  #run(index: number): number {
    const character = this.#text.charAt(index);
    let end = index;
    while (this.#text.charAt(end) === character) end += 1;
    return end - index;
  }

  #code(index: number): number | string {
    const length = this.#run(index);
    let at = this.#text.indexOf("`", index + length);
    while (at !== -1) {
      const run = this.#run(at);
      if (run === length) return at + run;
      at = this.#text.indexOf("`", at + run);
    }
    return this.#closed(this.#text + "`".repeat(length));
  }

  #label(index: number): number | string {
    const bracket = this.#brackets.pop();
    if (bracket === undefined) return index + 1;
    if (index === this.#text.length - 1) return this.#closed(this.#unlinked(bracket, index));
    if (this.#text.charAt(index + 1) !== "(") return index + 1;
    const end = this.#text.indexOf(")", index);
    return end === -1 ? this.#closed(this.#unlinked(bracket, index)) : end + 1;
  }

  /** The text up to a link that is not whole yet, and the link's label; of an image nothing is shown. */
  #unlinked(bracket: number, labelEnd: number): string {
    const isImage = this.#text.charAt(bracket - 1) === "!";
    const before = this.#text.slice(0, isImage ? bracket - 1 : bracket);
    return isImage ? before : before + this.#text.slice(bracket + 1, labelEnd);
  }

  #emphasis(index: number, length: number): number {
    const character = this.#text.charAt(index);
    const before = this.#text.charAt(index - 1);
    const after = this.#text.charAt(index + length);
    let left = length;
    while (left > 0 && before.trim() !== "") {
      const mark = this.#open.at(-1);
      if (mark === undefined || !mark.startsWith(character) || mark.length > left) break;
      this.#open.pop();
      left -= mark.length;
    }
    // `2*3` and `snake_case` are far more often meant literally than as the start of emphasis.
    const inWord = wordCharacter.test(before) && (character === "_" || left === 1);
    if (after.trim() === "" || inWord || (character === "~" && left !== 2)) return index + length;
    if (left >= 2) this.#open.push(character.repeat(2));
    if (left % 2 === 1) this.#open.push(character);
    return index + length;
  }

  #closed(text: string): string {
    if (this.#open.length === 0) return text;
    return text.trimEnd() + this.#open.toReversed().join("");
  }
}
