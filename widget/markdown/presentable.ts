import type { MarkedToken } from "marked";
import { closeMarks } from "./close-marks.ts";

const containers = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t]))*[ \t]*/;
const undecided =
  /^(?:[-*_=+ \t]+|#{1,6}|\d{1,3}[.)]?|[|:\- \t]+|\[[ xX]?\]?|`{1,2}|~{1,2}|(?:`{3,}|~{3,})[^\n]*)[ \t]*$/;
const delimiterRow = /^[ \t]*[|:\- \t]*$/;

/**
 * The source of the growing blocks as it may be shown now: a last line that is nothing but a marker is held back, and
 * marks that are still open are closed. Only for looks: what is final is always drawn from the source itself.
 */
export function presentable(source: string, tokens: readonly MarkedToken[]): string {
  const last = innermost(tokens);
  const lineStart = source.lastIndexOf("\n") + 1;
  const line = source.slice(lineStart);
  if (last?.type === "code" && last.codeBlockStyle !== "indented") {
    const isFenceLine = !last.raw.includes("\n") || /^[> \t]*(?:`+|~+)[ \t]*$/.test(line);
    return isFenceLine ? source.slice(0, lineStart) : source;
  }
  // After a blank line the block above is as final as it looks.
  if (last === undefined || /\n[ \t]*\n[ \t]*$/.test(source)) return source;
  const body = line.replace(containers, "");
  if (line.trim() !== "" && (body === "" || undecided.test(body))) {
    return withoutTableHead(source.slice(0, lineStart), last);
  }
  if (last.type === "table") {
    const cell = line.slice(line.lastIndexOf("|") + 1);
    return source.slice(0, source.length - cell.length) + closeMarks(cell);
  }
  if (last.type !== "paragraph" && last.type !== "text" && last.type !== "heading") return source;
  if (last.type !== "heading" && body.startsWith("|")) return source.slice(0, lineStart);
  return withClosedMarks(withoutTableHead(source, last), last.text, body);
}

/** The token that the end of the source belongs to. */
function innermost(tokens: readonly MarkedToken[]): MarkedToken | undefined {
  const last = tokens.findLast((token) => token.type !== "space");
  if (last?.type === "list") {
    return innermost((last.items.at(-1)?.tokens ?? []) as MarkedToken[]) ?? last;
  }
  if (last?.type === "blockquote") return innermost(last.tokens as MarkedToken[]) ?? last;
  return last;
}

/** Holds back a complete line of cells too, as long as the line under it can make it the head of a table. */
function withoutTableHead(source: string, last: MarkedToken): string {
  const mayBeHead =
    last.type === "paragraph" || last.type === "text" || (last.type === "table" && last.rows.length === 0);
  if (!mayBeHead) return source;
  const lines = source.split("\n");
  const isHead = lines.at(-2)?.replace(containers, "").startsWith("|") ?? false;
  return isHead && delimiterRow.test(lines.at(-1) ?? "") ? lines.slice(0, -2).join("\n") : source;
}

function withClosedMarks(source: string, text: string, body: string): string {
  const shown = source.trimEnd();
  // In a quote or list the lines carry markers that the token's text does not: then the last line has to do.
  const chunk = shown.endsWith(text) ? text : body.trimEnd();
  if (!shown.endsWith(chunk)) return source;
  return shown.slice(0, shown.length - chunk.length) + closeMarks(chunk);
}
