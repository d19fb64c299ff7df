import type { Links, MarkedToken, Token, Tokens } from "marked";
import { Lexer } from "marked";
import { BoundedTokenizer } from "./bounded-tokenizer.ts";
import { inlinePieces } from "./inline-pieces.ts";

/** Inline text that is not lexed yet, by the token list that it belongs to. */
export type InlineSources = ReadonlyMap<readonly Token[], string>;

/** The block tokens of a source, as a token. */
export interface LexedBlocks extends Tokens.Generic {
  type: "blocks";
  tokens: MarkedToken[];
  inline: InlineSources;
}

const tableCells = "(?:\\n((?:(?!";

/**
 * marked's paragraph rule looks for a table at every line, and then reads the whole of it: quadratic for lines that only
 * look like tables. Two lines decide, so the look-ahead ends there. Should marked change the rule, it is used as it is.
 */
function boundedParagraph({ paragraph, table }: typeof rules): RegExp {
  const wholeTable = table.source.replace(/(^|[^[])\^/g, "$1");
  const head = wholeTable.slice(0, wholeTable.indexOf(tableCells));
  return new RegExp(paragraph.source.replace(wholeTable, () => `${head}(?:\\n|$)`));
}

// Those of every lexer of the package, which the widget has for itself.
const rules = Lexer.rules.block.gfm;
rules.paragraph = boundedParagraph(rules);

function newLexer(): Lexer {
  return new Lexer({ gfm: true, tokenizer: new BoundedTokenizer() });
}

/** An empty table of reference definitions, without a prototype because its keys come from the text. */
export function noLinks(): Links {
  return Object.create(null) as Links;
}

/** Splits a source into blocks. Never throws: a source that marked gives up on becomes one block of plain text. */
export function lexBlocks(source: string): LexedBlocks {
  const lexer = newLexer();
  try {
    lexer.blockTokens(source, lexer.tokens);
  } catch {
    // marked throws on a loop or a stack that it cannot handle; the reader still gets the text.
    const plain: MarkedToken = { type: "html", block: true, pre: false, raw: source, text: source };
    return { type: "blocks", raw: source, tokens: [plain], inline: new Map() };
  }
  return {
    type: "blocks",
    raw: source,
    tokens: lexer.tokens as Token[] as MarkedToken[],
    inline: new Map(lexer.inlineQueue.map((entry) => [entry.tokens, entry.src])),
  };
}

/** Adds the reference definitions in these tokens, of which the first of a label wins; answers the new labels. */
export function collectLinks(tokens: readonly Token[], links: Links): string[] {
  return (tokens as readonly MarkedToken[]).flatMap((token) => {
    if (token.type === "list") return collectLinks(token.items, links);
    if (token.type === "blockquote" || token.type === "list_item") {
      return collectLinks(token.tokens, links);
    }
    if (token.type !== "def" || links[token.tag] !== undefined) return [];
    links[token.tag] = { href: token.href, title: token.title };
    return [token.tag];
  });
}

/** A text in the form in which definitions are filed, so that it can be searched for their labels. */
export function normalizedLabels(text: string): string {
  return text.replace(/\s+/g, " ").toLowerCase().toUpperCase().toLowerCase();
}

/** Lexes inline text, with the definitions that there are at the time. */
export class InlineLexer {
  readonly #links: Links;

  constructor(links: Links) {
    this.#links = links;
  }

  /** The tokens of each piece: they are drawn apart, so that a piece can be final before the next. */
  lex(source: string): readonly (readonly MarkedToken[])[] {
    return inlinePieces(source).map((pieces) => pieces.flatMap((piece) => this.#lexPiece(piece)));
  }

  #lexPiece(piece: string): readonly MarkedToken[] {
    const lexer = newLexer();
    lexer.tokens.links = this.#links;
    try {
      return lexer.inlineTokens(piece) as Token[] as MarkedToken[];
    } catch {
      // As above: what cannot be lexed is shown as it was written.
      return [{ type: "text", raw: piece, text: piece, escaped: true }];
    }
  }
}
