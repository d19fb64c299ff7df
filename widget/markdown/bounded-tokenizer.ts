import { Lexer, type Rules, type Token, Tokenizer, type Tokens } from "marked";
import { BEGINS_WITH_NAME, type DetailsToken, detailsAt } from "./html-names.ts";
import { endsWithCjk, INLINE_RULES } from "./inline-marks.ts";

/** Maximum nesting of quotes and lists, and of inline marks. Deeper ones stay text. */
const MAX_NESTING = 32;

/** The first line of an alert. */
const ALERT = /^\[!(note|tip|important|warning|caution)\][ \t]*(?:\n|$)/i;

/** Lines that continue a list item or a quote without its indent or marker. marked's time grows with their square. */
const MAX_LAZY_LINES = 100;

/** Maximum length of a link definition and of an underlined heading. Without it marked searches the whole message. */
const MAX_LENGTH = 4096;

const BULLET = /^ {0,3}(?:[*+-]|\d{1,9}[.)])(?=\s|$)/;

/** The bullet of an item at the very start of a line, where nothing inside an item can begin. */
const OUTER_BULLET = /^(?:([*+-])|\d{1,9}([.)]))(?=\s|$)/;

/** Text that may be an underlined heading. */
const UNDERLINE = /^.+(\n.+)*?\n {0,3}[=-]+[ \t]*(\n|$)/;

/** Where marked's rule for tables continues from the head to the rows. */
const TABLE_ROWS = "(?:\\n((?:(?!";

/**
 * marked's paragraph rule looks for a table at every line, and reads it to its end: quadratic for lines that only look
 * like tables. Two lines decide, so the look-ahead ends there. If marked's rule has changed, it is used unmodified.
 */
function boundedRules(rules: Rules["block"]): Rules["block"] {
  const { paragraph, table } = rules;
  const wholeTable = table.source.replace(/(^|[^[])\^/g, "$1");
  const head = wholeTable.slice(0, wholeTable.indexOf(TABLE_ROWS));
  return { ...rules, paragraph: new RegExp(paragraph.source.replace(wholeTable, () => `${head}(?:\\n|$)`)) };
}

const BLOCK_RULES = boundedRules(Lexer.rules.block.gfm);

/**
 * marked's tokenizer with limits, so that hostile text neither overflows the stack nor takes seconds. Rules that few
 * answers need are tried only where they can match: compiling each of them takes a phone about a frame.
 */
export class BoundedTokenizer extends Tokenizer {
  #blocks = 0;
  #inlines = 0;

  /** To be called after the constructor of the lexer, which sets its own rules. */
  useOwnRules(): void {
    this.rules = { ...this.rules, block: BLOCK_RULES, inline: INLINE_RULES };
  }

  override blockquote(src: string): Tokens.Blockquote | undefined {
    if (this.#blocks >= MAX_NESTING || !/^ {0,3}>/.test(src)) return undefined;
    return this.#nestBlock(() => {
      // marked would let the token before the quote affect its text, and throw if that token forbids a list.
      delete this.lexer.state.lastToken;
      const quote = super.blockquote(src.slice(0, quoteEnd(src)));
      return quote && this.#asAlert(quote);
    });
  }

  /** GitHub's alerts: the first line of a quote names its kind, and is removed from the text. */
  #asAlert(quote: Tokens.Blockquote): Tokens.Blockquote {
    const [first, ...others] = quote.tokens;
    const [line = "", kind] = ALERT.exec((first as Tokens.Paragraph | undefined)?.text ?? "") ?? [];
    if (first?.type !== "paragraph" || kind === undefined) return quote;
    const paragraph = first as Tokens.Paragraph;
    const inline = this.lexer.inlineQueue.find(({ tokens }) => tokens === paragraph.tokens);
    paragraph.text = paragraph.text.slice(line.length);
    if (inline) inline.src = paragraph.text;
    const tokens = paragraph.text === "" ? others : quote.tokens;
    return Object.assign(quote, { tokens, alert: kind.toLowerCase() });
  }

  override list(src: string): Tokens.List | undefined {
    if (this.#blocks >= MAX_NESTING || !BULLET.test(src)) return undefined;
    return this.#nestBlock(() => super.list(src.slice(0, listEnd(src))));
  }

  override table(src: string): Tokens.Table | undefined {
    if (!/^.+\n[ |:-]+(\n|$)/.test(src)) return undefined;
    // The head decides: a table with an invalid head must not be read to its end first.
    const secondLine = src.indexOf("\n", src.indexOf("\n") + 1);
    if (secondLine > 0 && super.table(src.slice(0, secondLine)) === undefined) return undefined;
    return super.table(src);
  }

  override html(src: string): Tokens.HTML | undefined {
    if (!/^ {0,3}</.test(src) || BEGINS_WITH_NAME.test(src)) return undefined;
    // For the types only: marked accepts any token here.
    return (this.#details(src) as Token | undefined as Tokens.HTML | undefined) ?? super.html(src);
  }

  #details(src: string): DetailsToken | undefined {
    const found = this.#blocks < MAX_NESTING ? detailsAt(src) : undefined;
    if (!found) return undefined;
    const { raw, summary, body } = found;
    return this.#nestBlock(() => {
      delete this.lexer.state.lastToken;
      const inline = summary === undefined ? undefined : this.lexer.inline(summary);
      return { type: "details", raw, summary: inline, tokens: this.lexer.blockTokens(body, []) };
    });
  }

  override tag(src: string): Tokens.Tag | undefined {
    const token = super.tag(src);
    // Inside `<kbd>`, marked would not decode character references.
    if (token?.raw === "<kbd>") this.lexer.state.inRawBlock = false;
    return token;
  }

  override lheading(src: string): Tokens.Heading | undefined {
    const near = firstLines(src);
    return UNDERLINE.test(near) ? super.lheading(near) : undefined;
  }

  override def(src: string): Tokens.Def | undefined {
    if (!/^ {0,3}\[/.test(src)) return undefined;
    // Neither a label nor a title contains a blank line.
    const near = firstLines(src);
    const blank = near.search(/\n[ \t]*\n/);
    return super.def(blank === -1 ? near : near.slice(0, blank));
  }

  override emStrong(src: string, maskedSrc: string, prevChar?: string): Tokens.Em | Tokens.Strong | undefined {
    const before = src.startsWith("*") ? beforeMark(src, maskedSrc, prevChar) : prevChar;
    return this.#nestInline(() => super.emStrong(src, maskedSrc, before));
  }

  override del(src: string, maskedSrc: string, prevChar?: string): Tokens.Del | undefined {
    return this.#nestInline(() => super.del(src, maskedSrc, beforeMark(src, maskedSrc, prevChar)));
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
      // After a nested list marked forgets that it is in an item, so the rest would depend on the text above it.
      state.top = top;
    }
  }

  #nestInline<Result>(tokenize: () => Result): Result | undefined {
    if (this.#inlines >= MAX_NESTING) return undefined;
    this.#inlines += 1;
    try {
      return tokenize();
    } finally {
      this.#inlines -= 1;
    }
  }
}

/** The first lines of a source, up to `MAX_LENGTH` characters. */
function firstLines(src: string): string {
  return src.length <= MAX_LENGTH ? src : src.slice(0, src.lastIndexOf("\n", MAX_LENGTH) + 1);
}

/** The character before a mark; empty after a CJK character, where a mark opens as at the start of a text. */
function beforeMark(src: string, maskedSrc: string, previous: string | undefined): string | undefined {
  return previous && endsWithCjk(maskedSrc.slice(0, maskedSrc.length - src.length).slice(-2)) ? "" : previous;
}

/** The character that all items of a list share: their bullet, or the delimiter after their number. */
function kindOf(line: string): string | undefined {
  const [, character, delimiter] = OUTER_BULLET.exec(line) ?? [];
  return character ?? delimiter;
}

/** Where to stop reading a list: before another list, or before too many lazy continuation lines. */
function listEnd(src: string): number {
  const kind = kindOf(src);
  const indent = (BULLET.exec(src)?.[0].length ?? 1) + 1;
  let lazy = 0;
  let afterBlank = false;
  let isEmpty = false;
  for (const { start, line } of linesOf(src)) {
    const isBlank = line.trim() === "";
    if (BULLET.test(line)) {
      lazy = 0;
      if (kind && (kindOf(line) ?? kind) !== kind) return start;
    } else if (!isBlank && line.search(/\S/) < indent) {
      // There are no lazy lines after a blank line: the list has ended.
      if (afterBlank) return src.length;
      lazy += 1;
      if (lazy > MAX_LAZY_LINES) return start;
    }
    // An item that begins with two blank lines is empty, and ends the list.
    if (isBlank && afterBlank && isEmpty) return start;
    if (!isBlank) isEmpty = /^(?:[*+-]|\d{1,9}[.)])[ \t]*$/.test(line);
    afterBlank = isBlank;
  }
  return src.length;
}

/** Where to stop reading a quote: before too many lines without its marker. */
function quoteEnd(src: string): number {
  let lazy = 0;
  for (const { start, line } of linesOf(src)) {
    if (line.trim() === "") return src.length;
    if (!/^ {0,3}>/.test(line)) lazy += 1;
    if (lazy > MAX_LAZY_LINES) return start;
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
