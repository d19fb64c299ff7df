/**
 * Makes the end of a text that breaks off fit to be shown: a last line that is nothing but a marker is held back, and
 * open marks are closed. Only for the eye: a settled block is always drawn from its own source.
 */

import type { MarkedToken, Tokens } from "marked";
import { BEGUN_DETAILS } from "./html-names.ts";
import { inlinePieces } from "./inline-pieces.ts";
import { healInline } from "./open-marks.ts";

/** The quotes and list markers that may stand before a line's text. */
const CONTAINERS = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t]))*[ \t]*/;

/** A line that may still become a list, a heading, a rule, a table, a task, a note, an alert or a fence. */
const UNDECIDED =
  /^(?:[-*_=+ \t]+|[|:\- \t]+|(?:#{1,6}|\d{1,3}[.)]?|\[(?:[ xX]?|![A-Za-z]*|\^[^\s\]]*)\]?|`{1,2}|~{1,2})[ \t]*|(?:`{3,}|~{3,})[^\n]*)$/;

/** A text that may still become the definition of a link, of which nothing is shown. */
const DEFINITION = /^\[[^\]\n]*(?:\](?::[ \t]*(?:\S*|\S+[ \t]+(?:["'(].*)?))?)?$/;

const DELIMITER_ROW = /^[|:\- \t]*$/;

/** Returns the source as it may be shown now, which for most texts is all of it. */
export function trimIncompleteTail(source: string, tokens: readonly MarkedToken[]): string {
  const last = innermost(tokens);
  const lineStart = source.lastIndexOf("\n") + 1;
  const line = source.slice(lineStart);
  if (last?.type === "code" && last.codeBlockStyle !== "indented") {
    const isFence = !last.raw.includes("\n") || /^[> \t]*(?:`+|~+)[ \t]*$/.test(line);
    return isFence ? source.slice(0, lineStart) : source;
  }
  const details = source.search(BEGUN_DETAILS);
  if (details !== -1) return source.slice(0, details);
  // After a blank line the block above is as complete as it looks.
  if (last === undefined || /\n[ \t]*\n[ \t]*$/.test(source)) return source;
  const text = line.replace(CONTAINERS, "");
  if (line.trim() !== "" && (text === "" || UNDECIDED.test(text))) {
    return withoutTableHead(source.slice(0, lineStart), last);
  }
  if (last.type === "table") {
    const cellStart = Math.max(source.lastIndexOf("|") + 1, lineStart);
    return source.slice(0, cellStart) + healEnd(source.slice(cellStart));
  }
  if (last.type !== "paragraph" && last.type !== "text" && last.type !== "heading") return source;
  if (last.type !== "heading" && (text.startsWith("|") || DEFINITION.test(last.text)))
    return source.slice(0, lineStart);
  return withClosedMarks(withoutTableHead(source, last), last.text, text);
}

/** The token that the end of the source belongs to. */
function innermost(tokens: readonly MarkedToken[]): MarkedToken | undefined {
  const last = tokens.findLast(({ type }) => type !== "space");
  if (last?.type === "list") return innermost((last.items.at(-1)?.tokens ?? []) as MarkedToken[]) ?? last;
  if (/^(?:blockquote|details)$/.test(last?.type ?? "")) {
    return innermost((last as Tokens.Blockquote).tokens as MarkedToken[]) ?? last;
  }
  return last;
}

/** Holds back a complete line of cells, too, as long as the line below it may make it the head of a table. */
function withoutTableHead(source: string, last: MarkedToken): string {
  const mayBeHead =
    last.type === "paragraph" || last.type === "text" || (last.type === "table" && last.rows.length === 0);
  if (!mayBeHead) return source;
  const lines = source.split("\n");
  const isHead = lines.at(-2)?.replace(CONTAINERS, "").startsWith("|") ?? false;
  return isHead && DELIMITER_ROW.test(lines.at(-1) ?? "") ? lines.slice(0, -2).join("\n") : source;
}

function withClosedMarks(source: string, text: string, lineText: string): string {
  const shown = source.trimEnd();
  // In a quote or list the source has markers that the token's text has not: then its last line has to do.
  const inline = shown.endsWith(text) ? text : lineText.trimEnd();
  return shown.endsWith(inline) ? shown.slice(0, shown.length - inline.length) + healEnd(inline) : source;
}

/** The last piece of a long text: each is lexed apart, so what is open in an earlier one stays so. */
function healEnd(text: string): string {
  const { length } = inlinePieces(text).at(-1)?.at(-1) ?? "";
  const start = text.length - length;
  return text.slice(0, start) + healInline(text.slice(start));
}
