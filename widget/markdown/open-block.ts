import type { MarkedToken, Token } from "marked";

/** A block that parts of are settled, or the one that holds it. */
export interface Step {
  readonly token: Token;
  /** Its parts that are final: blocks, items, rows, chunks of code, pieces of text. */
  readonly count: number;
  /** How many blocks stand for those in the rest: none or one. */
  readonly skip: number;
  /** What the source of the rest surely begins with. */
  readonly begin?: string;
  /** Do they make the list loose? */
  readonly loose?: boolean;
}

/** A block in the DOM of which the first parts are final while it goes on, or the root of them all. */
export interface OpenBlock {
  readonly type: string;
  /** Children of its body that are final. */
  readonly done: number;
  /** How many blocks stand for those when the rest of its source is lexed: none or one. */
  readonly skip: number;
  /** Has something final made the list loose? */
  readonly loose: boolean;
  /** What the rest of its source begins with as long as it is what it was. */
  readonly begin: string;
}

/** The blocks that go on, the root first and each one in the one before it. */
export type OpenBlocks = readonly OpenBlock[];

/** One of which nothing is final yet. */
export const newBlock: OpenBlock = { type: "blocks", done: 0, skip: 0, loose: false, begin: "" };

/** The blocks in a quote, an item or a message; the items of a list. */
export function childrenOf(token: Token): readonly MarkedToken[] {
  return ("items" in token ? token.items : "tokens" in token ? token.tokens : undefined) ?? [];
}

/** The type of a token. Text in an item is a paragraph to the reader. */
export function typeOf({ type }: Token): string {
  return type === "text" ? "paragraph" : type;
}

/** The block that goes on after a step. */
export function toOpen({ token, skip, begin = "" }: Step): OpenBlock {
  return { ...newBlock, type: typeOf(token), skip, begin };
}

/** Are the open blocks still what a token begins with? */
export function goesOn(token: Token | undefined, [block, ...inner]: OpenBlocks): boolean {
  if (block === undefined) return true;
  if (token === undefined || typeOf(token) !== block.type) return false;
  if (!token.raw.startsWith(block.begin)) return false;
  return goesOn(childrenOf(token)[block.skip], inner);
}
