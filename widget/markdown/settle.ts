import type { MarkedToken } from "marked";

/** A line so long that its beginning decides what it is, complete or not. */
const longLine = 4096;

/** How a line may begin of which that can be said: with text, as deep as it may be. */
const begunText = /^(?:[-*+>] |\d{1,9}[.)] )*(?:\*\*|__)?[\p{L}\p{N}]/u;

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
function isEstablished(source: string, offset: number, token: MarkedToken, before: MarkedToken | undefined): boolean {
  if (token.type === "space") return false;
  const lineEnd = source.indexOf("\n", offset);
  const afterText = before?.type === "paragraph" || before?.type === "text";
  if (lineEnd === -1) {
    return !afterText && source.length - offset > longLine && begunText.test(source.slice(offset));
  }
  const needsSecond = token.type === "table" || afterText;
  return !needsSecond || source.includes("\n", lineEnd + 1);
}

/** A definition's title may stand on the following lines, up to a blank one. */
function titleMayFollow(source: string, offset: number): boolean {
  const following = source.slice(offset);
  return /^[ \t]*\n?[ \t]*(?:["'(]|$)/.test(following) && !/\n[ \t]*\n/.test(following);
}
