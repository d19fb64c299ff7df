import type { MarkedToken, Tokens } from "marked";
import { codeChunks } from "./draw-block.ts";

/** A block whose first parts are final while it goes on: which parts, and what the lexer needs to read on from there. */
export interface OpenPart {
  /** Items, rows or chunks of code that are final. */
  readonly count: number;
  /** Where in the source the rest begins. */
  readonly rest: number;
  /** What stands before the rest when it is lexed again: a table's head, a fence, nothing for a list. */
  readonly prefix: string;
}

/**
 * How many of the leading blocks nothing can change any more: those before the last block whose first line is complete.
 * Until then a line may still turn out to continue the block above it.
 */
export function settledCount(source: string, tokens: readonly MarkedToken[]): number {
  let offset = 0;
  let settled = 0;
  for (const [index, token] of tokens.entries()) {
    // The offsets rest on marked's `raw` being the source itself; where it is not, settling waits.
    if (!source.startsWith(token.raw, offset)) return settled;
    if (isEstablished(source, offset, token, tokens[index - 1])) settled = index;
    offset += token.raw.length;
    if (token.type === "def" && titleMayFollow(source, offset)) return settled;
  }
  return settled;
}

/**
 * Does this block surely begin here? Its first line must be complete, and the second one too where it could be the line
 * under a table's head: until then that head may be part of a paragraph.
 */
function isEstablished(
  source: string,
  offset: number,
  token: MarkedToken,
  before: MarkedToken | undefined,
): boolean {
  if (token.type === "space") return false;
  const lineEnd = source.indexOf("\n", offset);
  if (lineEnd === -1) return false;
  const needsSecond = token.type === "table" || before?.type === "paragraph";
  return !needsSecond || source.includes("\n", lineEnd + 1);
}

/** A definition's title may stand on the following lines, up to a blank one. */
function titleMayFollow(source: string, offset: number): boolean {
  const following = source.slice(offset);
  return /^[ \t]*\n?[ \t]*(?:["'(]|$)/.test(following) && !/\n[ \t]*\n/.test(following);
}

/** The final parts of a list, table or code block that starts at `offset` and still goes on. */
export function settledPart(
  source: string,
  offset: number,
  token: MarkedToken,
): OpenPart | undefined {
  if (!source.startsWith(token.raw, offset)) return undefined;
  const part = partOf(source, offset, token);
  return part !== undefined && part.count > 0 ? part : undefined;
}

function partOf(source: string, offset: number, token: MarkedToken): OpenPart | undefined {
  switch (token.type) {
    case "list":
      return settledItems(source, offset, token);
    case "table":
      return settledRows(offset, token);
    case "blockquote":
      return settledInQuote(source, offset, token);
    case "code":
      return token.codeBlockStyle === "indented" ? undefined : settledChunks(offset, token);
    default:
      return undefined;
  }
}

function settledItems(source: string, offset: number, token: Tokens.List): OpenPart {
  let start = offset;
  let rest = offset;
  let count = 0;
  for (const [index, item] of token.items.entries()) {
    if (!source.startsWith(item.raw, start)) break;
    // As with blocks: the items before the last one whose first line is complete are final.
    if (source.includes("\n", start)) {
      rest = start;
      count = index;
    }
    start += item.raw.length;
  }
  return { count, rest, prefix: "" };
}

/** A quote is read on at the line where one of its blocks begins, if that line says itself that it is quoted. */
function settledInQuote(
  source: string,
  offset: number,
  token: Tokens.Blockquote,
): OpenPart | undefined {
  const inner = token.tokens as MarkedToken[];
  const count = settledCount(token.text, inner);
  const done = inner.slice(0, count).reduce((length, { raw }) => length + raw.length, 0);
  const linesDone = token.text.slice(0, done).split("\n").length - 1;
  const rest = offset + lengthOf(token.raw.split("\n").slice(0, linesDone));
  const line = lineAt(source, rest).replace(/^ {0,3}> ?/, "");
  const isCut = /^ {0,3}>/.test(source.slice(rest, rest + 4)) && line === lineAt(token.text, done);
  return isCut ? { count, rest, prefix: "" } : undefined;
}

function lineAt(text: string, start: number): string {
  const end = text.indexOf("\n", start);
  return text.slice(start, end === -1 ? text.length : end);
}

function settledRows(offset: number, token: Tokens.Table): OpenPart {
  const lines = token.raw.split("\n");
  const count = token.rows.length - 1;
  const prefix = `${lines.slice(0, 2).join("\n")}\n`;
  return { count, rest: offset + lengthOf(lines.slice(0, 2 + Math.max(count, 0))), prefix };
}

function settledChunks(offset: number, token: Tokens.Code): OpenPart {
  const lines = token.raw.split("\n");
  const chunks = codeChunks(token).slice(0, -1);
  const finished = chunks.reduce((sum, chunk) => sum + chunk.split("\n").length - 1, 0);
  const rest = offset + lengthOf(lines.slice(0, 1 + finished));
  return { count: chunks.length, rest, prefix: `${lines[0] ?? ""}\n` };
}

function lengthOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + line.length + 1, 0);
}

/** Does this item, followed by another one, make its list loose? */
export function loosens(item: Tokens.ListItem): boolean {
  return (
    /\n[ \t]*\n[ \t]*$/.test(item.raw) ||
    item.tokens.some((token) => token.type === "space" && /\n.*\n/.test(token.raw))
  );
}
