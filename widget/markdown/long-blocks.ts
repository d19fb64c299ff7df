/**
 * The items of a long list and the rows of a long table are settled one by one, while the block still grows: otherwise
 * each piece of text would cost as much as the whole block.
 */

import type { MarkedToken, Tokens } from "marked";

/** A shorter block, in characters, costs so little that it is lexed whole. */
const LONG = 2048;

/** The last items or rows may still change. */
const OPEN_PARTS = 2;

/** A block of which the leading items or rows are settled. */
export interface OpenBlock {
  /** How many there are. The source of the tail begins behind them. */
  readonly done: number;
  /** Whether they make the list loose. */
  readonly isLoose: boolean;
}

export const NOTHING_SETTLED: OpenBlock = { done: 0, isLoose: false };

export interface Split {
  /** How many items or rows cannot change any more. */
  readonly count: number;
  /** Whether these make the list loose. */
  readonly isLoose: boolean;
  /** The source of the others, which is again a list or a table. */
  readonly rest: string;
}

/** Splits a source that begins with this block before the parts that may still change; undefined for a short block. */
export function splitLongBlock(source: string, token: MarkedToken): Split | undefined {
  if (token.raw.length < LONG) return undefined;
  const count = partCount(token) - OPEN_PARTS;
  if (count < 1) return undefined;
  if (token.type === "table") {
    const lines = source.split("\n");
    // The head stands before the rest again.
    return { count, isLoose: false, rest: [...lines.slice(0, 2), ...lines.slice(2 + count)].join("\n") };
  }
  const items = (token as Tokens.List).items.slice(0, count);
  const settled = items.map(({ raw }) => raw).join("");
  // Where marked's `raw` is not the source itself, the block stays whole.
  if (!source.startsWith(settled)) return undefined;
  return { count, isLoose: items.some(makesListLoose), rest: source.slice(settled.length) };
}

/** Whether the rest of a split block is read as it was before: the same kind of block with the open parts. */
export function isRestOf(rest: MarkedToken | undefined, token: MarkedToken): boolean {
  return rest?.type === token.type && partCount(rest) === OPEN_PARTS && rest.raw.length < token.raw.length;
}

function partCount(token: MarkedToken): number {
  if (token.type === "list") return token.items.length;
  return token.type === "table" ? token.rows.length : 0;
}

/** Whether a blank line stands in an item or behind it, with another item to come. */
function makesListLoose({ raw, tokens }: Tokens.ListItem): boolean {
  return /\n[ \t]*\n[ \t]*$/.test(raw) || tokens.some(({ type, raw }) => type === "space" && /\n.*\n/.test(raw));
}
