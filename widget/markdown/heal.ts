/**
 * Prepares the end of an incomplete text for display: a last line that is nothing but a marker is held back, and open
 * marks are closed. For display only: a settled block is always drawn from its own source.
 */

import type { MarkedToken, Tokens } from "marked";
import { BEGUN_DETAILS } from "./html-names.ts";
import { inlinePieces } from "./inline-pieces.ts";
import { healInline } from "./open-marks.ts";

/** Quote and list markers before a line's text. */
const CONTAINERS = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t]))*[ \t]*/;

/** A line that may still become a list, a heading, a rule, a table, a task, a note, an alert or a fence. */
const UNDECIDED =
  /^(?:[-*_=+ \t]+|[|:\- \t]+|(?:#{1,6}|\d{1,3}[.)]?|\[(?:[ xX]?|![A-Za-z]*|\^[^\s\]]*)\]?|`{1,2}|~{1,2})[ \t]*|(?:`{3,}|~{3,})[^\n]*)$/;

/** A text that may still become the definition of a link, which is not shown. */
const DEFINITION = /^\[[^\]\n]*(?:\](?::[ \t]*(?:\S*|\S+[ \t]+(?:["'(].*)?))?)?$/;

const DELIMITER_ROW = /^[|:\- \t]*$/;

/** Returns the part of the source that can be shown now, which for most texts is all of it. */
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
  // After a blank line the block above it is complete.
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

/** Also holds back a complete line of cells while the line below may still make it the head of a table. */
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
  // In quotes and lists the source has markers that the token's text lacks: only its last line is healed then.
  const inline = shown.endsWith(text) ? text : lineText.trimEnd();
  return shown.endsWith(inline) ? shown.slice(0, shown.length - inline.length) + healEnd(inline) : source;
}

/** Heals the last piece of a long text only: pieces are lexed separately, so marks open in earlier ones stay open. */
function healEnd(text: string): string {
  const { length } = inlinePieces(text).at(-1)?.at(-1) ?? "";
  const start = text.length - length;
  return text.slice(0, start) + healInline(text.slice(start));
}
