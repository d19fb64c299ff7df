/**
 * Inline rules: text within a paragraph that Markdown does not know, such as a formula or a reference to a footnote. The
 * lexer reads it before Markdown's own marks; at the end of streaming text, an unfinished one is held back.
 */

import type { Tokens } from "marked";
import type { Strings } from "../i18n/strings.ts";
import { footnoteMark } from "./footnotes.ts";
import { formula } from "./formulas.ts";

export interface InlineRule {
  /** What a match begins with. */
  readonly open: string;
  /** Matches a complete one; must be sticky. Its first group is the text that is drawn. */
  readonly pattern: RegExp;
  /** Matches an incomplete one at the end of the text so far; must be sticky. */
  readonly unfinished: RegExp;
  /** Must put text of the model into text nodes only. */
  readonly draw: (text: string, strings: Strings) => Node;
}

/** Token of a text that matches a rule. */
export interface RuleToken extends Tokens.Generic {
  readonly type: "rule";
  readonly text: string;
  readonly rule: InlineRule;
}

export const inlineRules: InlineRule[] = [
  // A line break, which models write as HTML in table cells, where Markdown has none. Incomplete short tags are held
  // back, too: each may turn out to be one that is drawn.
  {
    open: "<",
    pattern: /<br\s*\/?>/iy,
    unfinished: /<(?:\/?[a-z]{0,7}|br\s*\/?)$/iy,
    draw: () => document.createElement("br"),
  },
  { open: "[^", pattern: /\[\^([^\]\s^]+)\]/y, unfinished: /\[\^[^\]\s]*$/y, draw: footnoteMark },
  // Formulas, but not prices: `$` opens before a non-space and not after a word character; it closes after a non-space
  // and not before a digit or capital. What begins with a digit has no space unless it has a sign of TeX.
  {
    open: "$",
    pattern:
      /(\$\$(?=[^$]*[\\^_={}<>+]|\s*\w+\s*\$)(?:[^$`\\]|\\[\s\S])+\$\$(?!\$)|(?<![\w$])\$(?=[^\s\d$]|\d(?:[^\s$]*\$|[^$\n]*[\\^_={}+]))(?:[^$`\\\n]|\\.)+(?<!\s)\$(?![\dA-Z]))/y,
    unfinished:
      /(?<![\w$])\$(?:\$?|\d[\d.,]*[a-z]? ?|(?:\$|(?=[^\s\d$]|\d[\d.,]*[a-z]? ?[\\^_={}+]))(?:(?=[^`\n]*\\)(?:[^$`\\\n]|\\.){0,300}|[^$`\n]{0,40})\$?)$/y,
    draw: formula,
  },
  {
    open: "\\(",
    pattern: /(\\\((?:[^`\\]|\\[^)])+?\\\))/y,
    unfinished: /\\\((?:[^`\\]|\\[^)]){0,300}$/y,
    draw: formula,
  },
  // Requires a sign of TeX: brackets alone are escaped in other texts, too.
  {
    open: "\\[",
    pattern: /(\\\[(?=(?:(?!\\\])[^`])*?(?:\\[a-z]|[\^_={}<>+*]))(?:[^`\\]|\\[^\]])+?\\\])/iy,
    unfinished: /\\\[(?:[^`\\]|\\[^\]]){0,300}$/y,
    draw: formula,
  },
];

/** The token of the rule that matches at this index, if any. */
export function ruleTokenAt(source: string, index: number): RuleToken | undefined {
  for (const rule of inlineRules) {
    const [raw, text = ""] = matchAt(rule.pattern, source, index) ?? [];
    if (raw) return { type: "rule", raw, text, rule };
  }
  return undefined;
}

/** Longest unfinished match that is held back: the end of a text is tested from each of its positions. */
const MAX_UNFINISHED = 1000;

/** Whether the text from this index on may still become a match of a rule. */
export function isUnfinishedRule(source: string, index: number): boolean {
  if (source.length - index > MAX_UNFINISHED) return false;
  return inlineRules.some(({ unfinished }) => matchAt(unfinished, source, index) !== null);
}

function matchAt(sticky: RegExp, source: string, index: number): string[] | null {
  sticky.lastIndex = index;
  return sticky.exec(source);
}

/** The first index, not before `from`, where a rule may match; -1 if there is none. */
export function ruleStart(source: string, from = 0): number {
  const starts = inlineRules.map(({ open }) => source.indexOf(open, from)).filter((start) => start >= 0);
  return starts.length === 0 ? -1 : Math.min(...starts);
}

/**
 * Masks the matches of rules, so that the search for the ends of emphasis skips them. In `masked`, which is as long as
 * the source, escapes are already plus signs, and code and links are letters: no rule begins within these.
 */
export function maskRules(source: string, masked: string): string {
  let result = masked;
  let at = ruleStart(source);
  while (at >= 0) {
    const character = source.charAt(at);
    const mayBegin = result.charAt(at) === character || (character === "\\" && result.startsWith("++", at));
    const { length } = (mayBegin && ruleTokenAt(source, at)?.raw) || "";
    if (length > 0) result = result.slice(0, at) + "a".repeat(length) + result.slice(at + length);
    at = ruleStart(source, at + Math.max(length, 1));
  }
  return result;
}
