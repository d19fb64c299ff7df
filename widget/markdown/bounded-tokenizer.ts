import { Tokenizer, type Tokens } from "marked";

/** Quotes and lists inside each other, and marks inside each other, up to this depth; what is deeper stays text. */
export const maxNesting = 32;

/** Lines that continue a list item or a quote without its indent or marker. marked's time grows with their square. */
const maxLazyLines = 100;

/** No definition is longer, and marked would search a whole message for the end of its title. */
const maxDefinition = 4096;

const bullet = /^ {0,3}(?:[*+-]|\d{1,9}[.)])(?=\s|$)/;

/** What may be an underlined heading: one of its first hundred lines shows it, and of more lines marked decides. */
const underline = /^.+(\n.+){0,99}?\n {0,3}[=-]+[ \t]*(\n|$)|^(.+\n){100}/;

/**
 * marked's tokenizer with ceilings, so that hostile text costs neither the stack nor seconds. Rules that few answers need are asked
 * only where they can match: browsers take a phone's frame to make code of each.
 */
export class BoundedTokenizer extends Tokenizer {
  #blocks = 0;
  #inlines = 0;

  override blockquote(src: string): Tokens.Blockquote | undefined {
    if (this.#blocks >= maxNesting || !/^ {0,3}>/.test(src)) return undefined;
    return this.#nestBlock(() => {
      // marked would judge what is in the quote by what is before it, and throw when that forbids a list.
      delete this.lexer.state.lastToken;
      return super.blockquote(src.slice(0, quoteEnd(src)));
    });
  }

  override list(src: string): Tokens.List | undefined {
    if (this.#blocks >= maxNesting || !bullet.test(src)) return undefined;
    return this.#nestBlock(() => super.list(src.slice(0, listEnd(src))));
  }

  override table(src: string): Tokens.Table | undefined {
    if (!/^.+\n[ |:-]+(\n|$)/.test(src)) return undefined;
    // The head decides, so a table that it refuses is not read to its end first.
    const secondLine = src.indexOf("\n", src.indexOf("\n") + 1);
    if (secondLine > 0 && super.table(src.slice(0, secondLine)) === undefined) return undefined;
    return super.table(src);
  }

  override html(src: string): Tokens.HTML | undefined {
    return /^ {0,3}</.test(src) ? super.html(src) : undefined;
  }

  override lheading(src: string): Tokens.Heading | undefined {
    return underline.test(src) ? super.lheading(src) : undefined;
  }

  override def(src: string): Tokens.Def | undefined {
    if (!/^ {0,3}\[/.test(src)) return undefined;
    // Neither label nor title goes past a blank line.
    const blank = src.slice(0, maxDefinition).search(/\n[ \t]*\n/);
    if (blank !== -1) return super.def(src.slice(0, blank));
    if (src.length <= maxDefinition) return super.def(src);
    return super.def(src.slice(0, src.lastIndexOf("\n", maxDefinition) + 1));
  }

  override emStrong(src: string, maskedSrc: string, prevChar?: string): Tokens.Em | Tokens.Strong | undefined {
    return this.#nestInline(() => super.emStrong(src, maskedSrc, prevChar));
  }

  override del(src: string, maskedSrc: string, prevChar?: string): Tokens.Del | undefined {
    return this.#nestInline(() => super.del(src, maskedSrc, prevChar));
  }

  override link(src: string): Tokens.Link | Tokens.Image | undefined {
    return this.#nestInline(() => super.link(src));
  }

  override reflink(
    src: string,
    links: Parameters<Tokenizer["reflink"]>[1],
  ): Tokens.Link | Tokens.Image | Tokens.Text | undefined {
    return this.#nestInline(() => super.reflink(src, links));
  }

  #nestBlock<Result>(tokenize: () => Result): Result {
    const { state } = this.lexer;
    const { top } = state;
    this.#blocks += 1;
    try {
      return tokenize();
    } finally {
      this.#blocks -= 1;
      // marked forgets that it is in an item after a list in it, so the rest would depend on what is above it.
      state.top = top;
    }
  }

  #nestInline<Result>(tokenize: () => Result): Result | undefined {
    if (this.#inlines >= maxNesting) return undefined;
    this.#inlines += 1;
    try {
      return tokenize();
    } finally {
      this.#inlines -= 1;
    }
  }
}

/** What a line begins with at its very start: nothing inside an item stands there. */
const outerBullet = /^(?:([*+-])|\d{1,9}([.)]))(?=\s|$)/;

/** What tells lists apart: their character, or what follows the number. */
function kindOf(line: string): string | undefined {
  const [, character, delimiter] = outerBullet.exec(line) ?? [];
  return character ?? delimiter;
}

/** Where to stop reading a list: before another one, or a line too many that belongs to an item only by laziness. */
function listEnd(src: string): number {
  const kind = kindOf(src);
  const indent = (bullet.exec(src)?.[0].length ?? 1) + 1;
  let lazy = 0;
  let afterBlank = false;
  let isEmpty = false;
  for (const { start, line } of linesOf(src)) {
    const isBlank = line.trim() === "";
    if (bullet.test(line)) {
      lazy = 0;
      if (kind && (kindOf(line) ?? kind) !== kind) return start;
    } else if (!isBlank && line.search(/\S/) < indent) {
      // After a blank line nothing is lazy: the list is over.
      if (afterBlank) return src.length;
      lazy += 1;
      if (lazy > maxLazyLines) return start;
    }
    // An item that begins with two blank lines is empty, and the list over.
    if (isBlank && afterBlank && isEmpty) return start;
    if (!isBlank) isEmpty = /^(?:[*+-]|\d{1,9}[.)])[ \t]*$/.test(line);
    afterBlank = isBlank;
  }
  return src.length;
}

/** Where to stop reading a quote: before a line too many without its marker. */
function quoteEnd(src: string): number {
  let lazy = 0;
  for (const { start, line } of linesOf(src)) {
    if (line.trim() === "") return src.length;
    if (!/^ {0,3}>/.test(line)) lazy += 1;
    if (lazy > maxLazyLines) return start;
  }
  return src.length;
}

function* linesOf(src: string): Generator<{ start: number; line: string }> {
  let start = 0;
  while (start < src.length) {
    const end = src.indexOf("\n", start);
    const line = src.slice(start, end === -1 ? src.length : end);
    yield { start, line };
    start += line.length + 1;
  }
}
