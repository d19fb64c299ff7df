/**
 * Makes the end of a text that breaks off fit to be shown: a last line that is nothing but a marker is held back, and
 * open marks are closed. Only for the eye: a settled block is always drawn from its own source.
 */

import type { MarkedToken, Tokens } from "marked";
import { BEGUN_DETAILS, tagAt } from "./html-names.ts";
import { endsWithCjk } from "./inline-marks.ts";
import { inlineRules, isUnfinishedRule, ruleTokenAt } from "./inline-rules.ts";

/** The quotes and list markers that may stand before a line's text. */
const CONTAINERS = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t]))*[ \t]*/;

/** A line that may still become a list, a heading, a rule, a table, a task, a note, an alert or a fence. */
const UNDECIDED =
  /^(?:[-*_=+ \t]+|#{1,6}|\d{1,3}[.)]?|[|:\- \t]+|\[(?:[ xX]?|![A-Za-z]*|\^[^\s\]]*)\]?|`{1,2}|~{1,2}|(?:`{3,}|~{3,})[^\n]*)[ \t]*$/;

/** A text that may still become the definition of a link, of which nothing is shown. */
const DEFINITION = /^\[[^\]\n]*(?:\](?::[ \t]*(?:\S*|\S+[ \t]+(?:["'(].*)?))?)?$/;

const DELIMITER_ROW = /^[ \t]*[|:\- \t]*$/;

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
    return source.slice(0, cellStart) + healInline(source.slice(cellStart));
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
  return shown.endsWith(inline) ? shown.slice(0, shown.length - inline.length) + healInline(inline) : source;
}

/** Escapes, runs of code, emphasis, and the brackets of links and images. */
const MARKS = /\\[\s\S]|`+|\*+|_+|~+|!?\[|\]/;

/** What stands behind the label of a link. */
const DESTINATION = /\((?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*\)/y;

/** The marks, and the first characters of inline rules. */
function marksAndRules(): RegExp {
  const firsts = inlineRules.map(({ open }) => `|\\u{${open.codePointAt(0)?.toString(16)}}`);
  return new RegExp(MARKS.source + firsts.join(""), "gu");
}

/**
 * Inline text that breaks off, made whole: unfinished marks at its end go, open emphasis and code are closed, and of an
 * unfinished link the label stays.
 */
export function healInline(text: string): string {
  const shown = text.replace(/(?:&#?\w{0,10}|(?:!?\[|[*_~`\\])+)$/, "");
  const marks = marksAndRules();
  /** The closing marks and tags of what is open, the outermost first. */
  const emphasis: string[] = [];
  const brackets: number[] = [];
  const closed = (body: string) => (emphasis.length === 0 ? body : body.trimEnd() + emphasis.toReversed().join(""));
  for (let match = marks.exec(shown); match !== null; match = marks.exec(shown)) {
    const [mark] = match;
    const end = marks.lastIndex;
    const rule = ruleTokenAt(shown, match.index);
    const tag = tagAt(shown, match.index);
    if (tag) {
      const open = emphasis.lastIndexOf(`</${tag.name}>`);
      if (!tag.isEnd) emphasis.push(`</${tag.name}>`);
      else if (open !== -1) emphasis.length = open;
      marks.lastIndex = match.index + tag.raw.length;
    } else if (rule) {
      marks.lastIndex = match.index + rule.raw.length;
    } else if (isUnfinishedRule(shown, match.index)) {
      return closed(shown.slice(0, match.index));
    } else if (mark.startsWith("`")) {
      const closing = new RegExp(`(?<!\`)${mark}(?!\`)`, "g");
      closing.lastIndex = end;
      if (!closing.test(shown)) return closed(shown + mark);
      marks.lastIndex = closing.lastIndex;
    } else if (/^[*_~]/.test(mark)) {
      toggleEmphasis(emphasis, mark, shown.charAt(match.index - 1), shown.charAt(end));
    } else if (mark.endsWith("[")) {
      brackets.push(match.index);
    } else if (mark === "]") {
      const bracket = brackets.pop();
      if (bracket === undefined) continue;
      DESTINATION.lastIndex = end;
      const isUnfinished = shown.charAt(end) === "(" && !DESTINATION.test(shown);
      if (end === shown.length || isUnfinished) return closed(unlinked(shown, bracket, match.index));
      marks.lastIndex = DESTINATION.lastIndex || end;
    }
  }
  const [bracket] = brackets;
  return closed(bracket === undefined ? shown : unlinked(shown, bracket, shown.length));
}

/** The text before an unfinished link, and the link's label. Of an image nothing is shown, and of a link around one. */
function unlinked(text: string, bracket: number, labelEnd: number): string {
  const before = text.slice(0, bracket);
  return text.charAt(bracket) === "!" || text.startsWith("![", bracket + 1)
    ? before
    : before + text.slice(bracket + 1, labelEnd);
}

const WORD_CHARACTER = /[\p{L}\p{N}]/u;

function toggleEmphasis(open: string[], mark: string, before: string, after: string): void {
  const character = mark.charAt(0);
  let left = mark.length;
  while (left > 0 && before.trim() !== "") {
    const innermostMark = open.at(-1);
    if (!innermostMark?.startsWith(character) || innermostMark.length > left) break;
    open.pop();
    left -= innermostMark.length;
  }
  // `2*3` and `snake_case` are far more often meant literally than as emphasis.
  const isInWord = WORD_CHARACTER.test(before) && (character === "_" || (left === 1 && !endsWithCjk(before)));
  if (after.trim() === "" || isInWord || (character === "~" && left !== 2)) return;
  if (left >= 2) open.push(character.repeat(2));
  if (left % 2 === 1) open.push(character);
}
