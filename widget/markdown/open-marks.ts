/** Closes the marks that are open at the end of incomplete inline text. */

import { tagAt } from "./html-names.ts";
import { endsWithCjk } from "./inline-marks.ts";
import { inlineRules, isUnfinishedRule, ruleTokenAt } from "./inline-rules.ts";

/** Escapes, runs of code, emphasis, and the brackets of links and images. */
const MARKS = /\\[\s\S]|`+|\*+|_+|~+|!?\[|\]/;

/** The destination after the label of a link. */
const DESTINATION = /\((?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*\)/y;

/** The marks, and the first characters of inline rules. */
function marksAndRules(): RegExp {
  const firsts = inlineRules.map(({ open }) => `|\\u{${open.codePointAt(0)?.toString(16)}}`);
  return new RegExp(MARKS.source + firsts.join(""), "gu");
}

/**
 * Completes inline text that breaks off: removes unfinished marks at its end, closes open emphasis and code, and
 * replaces an unfinished link by its label.
 */
export function healInline(text: string): string {
  const shown = text.replace(/(?:&#?\w{0,10}|(?:!?\[|[*_~`\\])+)$/, "");
  const marks = marksAndRules();
  /** The closing marks and tags of everything that is open, the outermost first. */
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

/** The text before an unfinished link, and its label. An image, or a link around one, is left out. */
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
