/** From Markdown to tokens: marked, with limits for hostile text. */

import { type Hooks, Lexer, type Links, type MarkedOptions, type MarkedToken, type Token, type Tokens } from "marked";
import { whenIdle } from "../loading/lazy.ts";
import { BoundedTokenizer } from "./bounded-tokenizer.ts";
import { type FootnoteToken, footnoteAt } from "./footnotes.ts";
import { type FormulaToken, formulaAt } from "./formulas.ts";
import { maskRules, ruleStart, ruleTokenAt } from "./inline-rules.ts";
import type { Delimiter } from "./renderers.ts";

/** The blocks of a source. Their inline text is lexed only where it is drawn. */
export interface LexedBlocks {
  readonly tokens: readonly MarkedToken[];
  /** Inline text that is not lexed yet, by the token list that it belongs to. */
  readonly inline: ReadonlyMap<readonly Token[], string>;
}

function newLexer(delimiters: readonly Delimiter[]): Lexer {
  const tokenizer = new BoundedTokenizer();
  const lexer = new Lexer({ gfm: true, tokenizer, extensions: blockExtensions(delimiters) });
  tokenizer.useOwnRules();
  return lexer;
}

/** Splits a source into blocks. Never throws: a source that marked gives up on becomes one block of plain text. */
export function lexBlocks(source: string, delimiters: readonly Delimiter[] = []): LexedBlocks {
  const lexer = newLexer(delimiters);
  try {
    lexer.blockTokens(source, lexer.tokens);
  } catch {
    // marked throws on a loop or a stack that it cannot handle. The reader still gets the text.
    return { tokens: [{ type: "html", block: true, pre: false, raw: source, text: source }], inline: new Map() };
  }
  return {
    tokens: lexer.tokens as Token[] as MarkedToken[],
    inline: new Map(lexer.inlineQueue.map((entry) => [entry.tokens, entry.src])),
  };
}

/** Remembers the text that is being lexed: marked's masking hook does not get it, and rules get only its rest. */
class InlineLexer extends Lexer {
  #source = "";

  constructor(tokenizer: BoundedTokenizer) {
    const hooks: Pick<Hooks, "emStrongMask"> = { emStrongMask: (masked) => maskRules(this.#source, masked) };
    const extensions: MarkedOptions["extensions"] = {
      inline: [(rest) => ruleTokenAt(this.#source, this.#source.length - rest.length)],
      startInline: [(rest) => ruleStart(rest)],
      renderers: {},
      childTokens: {},
    };
    super({ gfm: true, tokenizer, hooks: hooks as Hooks, extensions });
    tokenizer.useOwnRules();
  }

  override inlineTokens(source: string, tokens?: Token[]): Token[] {
    const outer = this.#source;
    this.#source = source;
    try {
      return super.inlineTokens(source, tokens);
    } finally {
      this.#source = outer;
    }
  }
}

/** Functions that lex the text of an element in place of `lexInline`, to insert source marks. */
export const lexers = new WeakMap<Element, typeof lexInline>();

/** Lexes a piece of inline text with the link definitions known so far. */
export function lexInline(piece: string, links: Links): readonly MarkedToken[] {
  if (piece === "") return [];
  const lexer = new InlineLexer(new BoundedTokenizer());
  lexer.tokens.links = links;
  try {
    return lexer.inlineTokens(piece) as Token[] as MarkedToken[];
  } catch {
    // As above: text that cannot be lexed is shown as it was written.
    return [{ type: "text", raw: piece, text: piece, escaped: true }];
  }
}

/** An empty table of link definitions, without a prototype because its keys come from the text. */
export function noLinks(): Links {
  return Object.create(null) as Links;
}

/** These tokens, and those in their lists, quotes and details. */
function* withNested(tokens: readonly Token[]): Generator<MarkedToken | FootnoteToken> {
  for (const token of tokens as readonly MarkedToken[]) {
    yield token;
    if (token.type === "list") yield* withNested(token.items);
    if (/^(?:blockquote|list_item|details)$/.test(token.type)) yield* withNested((token as Tokens.Blockquote).tokens);
  }
}

/** Adds the link definitions in these tokens to `links`: the first one of a label wins. Returns the new labels. */
export function collectLinks(tokens: readonly Token[], links: Links): string[] {
  const labels: string[] = [];
  for (const token of withNested(tokens)) {
    if (token.type !== "def" || links[token.tag] !== undefined) continue;
    links[token.tag] = { href: token.href, title: token.title };
    labels.push(token.tag);
  }
  return labels;
}

/** Adds the footnotes in these tokens to `notes`: the first one of a label wins. */
export function collectNotes(tokens: readonly Token[], notes: Map<string, string>): void {
  for (const token of withNested(tokens)) {
    if (token.type === "footnote" && !notes.has(token.label)) notes.set(token.label, token.text);
  }
}

/** A text normalized as link labels are, so that it can be searched for them. */
export function normalizedLabels(text: string): string {
  return text.replace(/\s+/g, " ").toLowerCase().toUpperCase().toLowerCase();
}

/**
 * The number of leading blocks that further text cannot change: those before the last block whose first line is
 * complete. Until then that line may turn out to continue the block above it.
 */
export function settledBlocks(source: string, tokens: readonly MarkedToken[]): number {
  let offset = 0;
  let settled = 0;
  let index = 0;
  for (const token of tokens) {
    // The offsets require that `raw` is the source itself. If it is not, settling waits.
    if (!source.startsWith(token.raw, offset)) return settled;
    if (hasBegun(source, offset, token, tokens[index - 1])) settled = index;
    index += 1;
    offset += token.raw.length;
    if (token.type === "def" && titleMayFollow(source, offset)) return settled;
  }
  return settled;
}

/**
 * Whether this block certainly begins here. Its first line must be complete, and also the second one if that could be
 * the line under a table's head: until then the head may be part of a paragraph.
 */
function hasBegun(source: string, offset: number, token: MarkedToken, before: MarkedToken | undefined): boolean {
  if (token.type === "space" || mayBeText(source, offset, token)) return false;
  const lineEnd = source.indexOf("\n", offset);
  if (lineEnd === -1) return false;
  const needsSecondLine = token.type === "table" || before?.type === "paragraph" || before?.type === "text";
  return !needsSecondLine || source.includes("\n", lineEnd + 1);
}

/** Whether this is a formula whose last line is incomplete: all of it may turn out to be part of a paragraph. */
function mayBeText(source: string, offset: number, token: Token): boolean {
  return token.type === "formula" && !((token as FormulaToken).isClosed && source[offset + token.raw.length] === "\n");
}

/** A definition's title may stand on the following lines, up to a blank one. */
function titleMayFollow(source: string, offset: number): boolean {
  const following = source.slice(offset);
  return /^[ \t]*(?:\n[ \t]*)?(?:["'(]|$)/.test(following) && !/\n[ \t]*\n/.test(following);
}

/** Blocks that Markdown does not have: first those between a page's own delimiters, then formulas and footnotes. */
function blockExtensions(delimiters: readonly Delimiter[]): NonNullable<MarkedOptions["extensions"]> {
  const extensions = delimitedBlocks(delimiters);
  extensions.block?.push(formulaAt, footnoteAt);
  extensions.startBlock?.push(ownBlockStart);
  return extensions;
}

/**
 * A line that ends a paragraph, or one that may begin a formula or a footnote. The search stops at the paragraph's end:
 * otherwise it would be repeated for each of the following paragraphs.
 */
const AFTER_TEXT =
  /\n(?:([ \t]*\n| {0,3}(?:#{1,6}\s|[>|]|[*+-]\s|1[.)]\s|`{3}|~{3}|<[!?]|(?:[*_-][ \t]*){3,}\n))| {0,3}(?:\$\$|\\\[|(\[\^[^\]\s^]+\]:)))/g;

function ownBlockStart(source: string): number | undefined {
  for (const { index, 1: end, 2: note } of source.matchAll(AFTER_TEXT)) {
    if (end) return undefined;
    if (note || formulaAt(source.slice(index + 1))) return index + 1;
  }
  return undefined;
}

function delimitedBlocks(delimiters: readonly Delimiter[]): NonNullable<MarkedOptions["extensions"]> {
  return {
    block: delimiters.map(({ open, close }) => (source: string) => {
      if (!source.startsWith(open)) return undefined;
      // An unclosed block ends at a blank line, so that a price of "$$" does not swallow the answer.
      const blank = source.search(/\n[ \t]*\n|$(?![\s\S])/);
      const end = source.slice(0, blank).indexOf(close, open.length);
      const isClosed = end !== -1 && /^[ \t]*(?:\n|$)/.test(source.slice(end + close.length));
      const raw = source.slice(0, isClosed ? end + close.length : blank);
      return { type: "delimited", raw, text: isClosed ? source.slice(open.length, end).trim() : undefined, open };
    }),
    startBlock: delimiters.map(({ open }) => (source: string) => {
      const at = source.indexOf(`\n${open}`);
      return at === -1 ? undefined : at + 1;
    }),
    renderers: {},
    childTokens: {},
  };
}

/** Texts with every kind of block and mark. */
const SAMPLES = [
  "**a** *b*, `c`, ~~d~~, [e](/), [f], <https://g.h> &amp; i  \nj",
  "# a\n\nb\n---\n\n***\n\n> c\n\n<b>\n\n    d\n\n[e]: /",
  "- a\n- [ ] b\n  - c\n\n1. d\n\n   e",
  "```js\na\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |",
];

/**
 * Lexes samples while the page is idle, so that the browser has compiled marked's rules before the first answer comes.
 * All of them take 150 ms on a slow phone, so they are lexed one by one.
 */
export function warmUpLexer([sample, ...others]: readonly string[] = SAMPLES): void {
  if (sample === undefined) return;
  whenIdle(() => {
    for (const source of lexBlocks(sample).inline.values()) lexInline(source, noLinks());
    warmUpLexer(others);
  });
}
