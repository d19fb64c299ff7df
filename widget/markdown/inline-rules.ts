/**
 * Inline rules: text within a paragraph that Markdown does not know, such as a formula or a reference to a source. The
 * lexer reads it before Markdown's own marks, long text is not cut inside of it, and an unfinished one is held back.
 */

import type { Tokens } from "marked";
import type { Strings } from "../i18n/strings.ts";
import { footnoteMark } from "./footnotes.ts";
import { formula } from "./formulas.ts";

export interface InlineRule {
  /** What each of them begins with. */
  readonly open: string;
  /** A whole one, as a sticky expression. Its first group is the text that is drawn. */
  readonly pattern: RegExp;
  /** The beginning of one at the end of what has arrived, as a sticky expression. */
  readonly unfinished: RegExp;
  /** Text of the model goes into text nodes only. */
  readonly draw: (text: string, strings: Strings) => Node;
}

/** What the lexer makes of text that a rule is for. */
export interface RuleToken extends Tokens.Generic {
  readonly type: "rule";
  readonly text: string;
  readonly rule: InlineRule;
}

export const inlineRules: InlineRule[] = [
  // A line break, which models write as HTML in the cells of tables: Markdown has none there. Every short name may turn out
  // to be one that is drawn.
  {
    open: "<",
    pattern: /<br\s*\/?>/iy,
    unfinished: /<(?:\/?[a-z]{0,7}|br\s*\/?)$/iy,
    draw: () => document.createElement("br"),
  },
  { open: "[^", pattern: /\[\^([^\]\s^]+)\]/y, unfinished: /\[\^[^\]\s]*$/y, draw: footnoteMark },
  // Formulas. A price is none: a `$` opens before a character and behind no other, and closes behind a character and
  // before no digit; and what begins with a digit has no space without a sign of TeX.
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
  // With a sign of TeX: brackets alone are escaped in other texts, too.
  {
    open: "\\[",
    pattern: /(\\\[(?=(?:(?!\\\])[^`])*?(?:\\[a-z]|[\^_={}<>+*]))(?:[^`\\]|\\[^\]])+?\\\])/iy,
    unfinished: /\\\[(?:[^`\\]|\\[^\]]){0,300}$/y,
    draw: formula,
  },
];

/** What a rule reads at a place in a text. */
export function ruleTokenAt(source: string, index: number): RuleToken | undefined {
  for (const rule of inlineRules) {
    const [raw, text = ""] = matchAt(rule.pattern, source, index) ?? [];
    if (raw) return { type: "rule", raw, text, rule };
  }
  return undefined;
}

/** Longest beginning of what a rule reads that is held back: the end of a text is looked at from each of its places. */
const MAX_UNFINISHED = 1000;

/** Whether the end of a text, from a place on, may become what a rule reads. */
export function isUnfinishedRule(source: string, index: number): boolean {
  if (source.length - index > MAX_UNFINISHED) return false;
  return inlineRules.some(({ unfinished }) => matchAt(unfinished, source, index) !== null);
}

function matchAt(sticky: RegExp, source: string, index: number): string[] | null {
  sticky.lastIndex = index;
  return sticky.exec(source);
}

/** The first place in a text, from one on, where a rule may begin; -1 if there is none. */
export function ruleStart(source: string, from = 0): number {
  const starts = inlineRules.map(({ open }) => source.indexOf(open, from)).filter((start) => start >= 0);
  return starts.length === 0 ? -1 : Math.min(...starts);
}

/**
 * Hides what rules read from the search for the ends of emphasis. In `masked`, which is as long as the source, escapes
 * are plus signs already, and code and links are letters: a rule does not begin within these.
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
