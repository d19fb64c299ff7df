import type { Links, MarkedToken, Token } from "marked";
import { Lexer } from "marked";
import { BoundedTokenizer } from "./bounded-tokenizer.ts";
import { inlinePieces } from "./inline-pieces.ts";

/** Block tokens of a source. Their inline text is not lexed yet: `inline` says what it is, by token list. */
export interface LexedBlocks {
  readonly tokens: readonly MarkedToken[];
  readonly inline: ReadonlyMap<readonly Token[], string>;
}

const tableCells = "(?:\\n((?:(?!";

/**
 * marked's paragraph rule looks for a table at every line, and then reads the whole of it: quadratic for lines that only
 * look like tables. Two lines decide, so the look-ahead ends there. Should marked change the rule, it is used as it is.
 */
function boundedParagraph(): RegExp {
  const { paragraph, table } = Lexer.rules.block.gfm;
  const wholeTable = table.source.replace(/(^|[^[])\^/g, "$1");
  const head = wholeTable.slice(0, wholeTable.indexOf(tableCells));
  return new RegExp(paragraph.source.replace(wholeTable, () => `${head}(?:\\n|$)`));
}

const paragraph = boundedParagraph();

function newLexer(): Lexer {
  const tokenizer = new BoundedTokenizer();
  const lexer = new Lexer({ gfm: true, tokenizer });
  tokenizer.rules = { ...tokenizer.rules, block: { ...tokenizer.rules.block, paragraph } };
  return lexer;
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
    return { tokens: [plain], inline: new Map() };
  }
  return {
    tokens: lexer.tokens as readonly Token[] as readonly MarkedToken[],
    inline: new Map(lexer.inlineQueue.map((entry) => [entry.tokens, entry.src])),
  };
}

/** Adds the reference definitions in these tokens, of which the first of a label wins; answers the new labels. */
export function collectLinks(tokens: readonly Token[], links: Links): string[] {
  return (tokens as readonly MarkedToken[]).flatMap((token) => {
    if (token.type === "list")
      return token.items.flatMap((item) => collectLinks(item.tokens, links));
    if (token.type === "blockquote") return collectLinks(token.tokens, links);
    if (token.type !== "def" || links[token.tag] !== undefined) return [];
    links[token.tag] = { href: token.href, title: token.title };
    return [token.tag];
  });
}

/** A text in the form in which definitions are filed, so that it can be searched for their labels. */
export function normalizedLabels(text: string): string {
  return text.replace(/\s+/g, " ").toLowerCase().toUpperCase().toLowerCase();
}

/** Lexes inline text, remembering the pieces of long texts that do not change while their end grows. */
export class InlineLexer {
  readonly #remembered = new Map<string, readonly MarkedToken[]>();
  readonly #links: Links;

  constructor(links: Links) {
    this.#links = links;
  }

  lex(source: string): readonly MarkedToken[] {
    const pieces = inlinePieces(source);
    const last = pieces.pop() ?? "";
    return [...pieces.flatMap((piece) => this.#remember(piece)), ...this.#lexPiece(last)];
  }

  /** Forgets, because the definitions have changed or the long text is done. */
  forget(): void {
    this.#remembered.clear();
  }

  #remember(piece: string): readonly MarkedToken[] {
    const known = this.#remembered.get(piece);
    if (known !== undefined) return known;
    const tokens = this.#lexPiece(piece);
    this.#remembered.set(piece, tokens);
    return tokens;
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
