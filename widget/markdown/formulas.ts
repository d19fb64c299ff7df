/**
 * Formulas in TeX. They are shown as written, with their delimiters, so that a copy of one is TeX again;
 * `mathematics.ts` draws the mathematics over them.
 */

import type { Tokens } from "marked";
import { create } from "../styles/elements.ts";
import { appendText } from "./text.ts";

export function formula(source: string): HTMLElement {
  const node = create("span", "tex");
  node.dir = "ltr";
  node.setAttribute("translate", "no");
  // Tells whether the text has changed: the content of the element changes when it is drawn.
  node.dataset.source = source;
  appendText(node.appendChild(create("code")), source);
  return node;
}

/** A formula on lines of its own. */
export interface FormulaToken extends Tokens.Generic {
  readonly type: "formula";
  /** Whether its end has arrived. Until then the text may turn out not to be a formula. */
  readonly isClosed: boolean;
}

/** Longest formula on lines of its own. */
const MAX_LENGTH = 4096;

/** Signs of TeX, which text between two prices or escaped brackets lacks. */
const TEX = /^[ \t]*\n|\\[a-z]|[\^_={}<>+*]/i;

/** What certainly begins a formula, even if its end has not arrived. */
const BEGUN = /^[ \t]*(?:\n|\\[a-z])/i;

/** The formula that a source begins with. An unclosed one extends to the end of the source, or is text. */
export function formulaAt(source: string): FormulaToken | undefined {
  const [start, open] = /^ {0,3}(\$\$|\\\[)/.exec(source) ?? [];
  if (start === undefined) return undefined;
  const near = source.slice(0, MAX_LENGTH);
  const [before = ""] = near.split(/\n[ \t]*(?:\n|$)/, 1);
  const body = before.slice(start.length);
  const end = body.indexOf(open === "$$" ? open : "\\]");
  if (end === -1) {
    const isOpen = near === source && BEGUN.test(near.slice(start.length)) && source.trimEnd() === before.trimEnd();
    return isOpen ? { type: "formula", raw: source, isClosed: false } : undefined;
  }
  if (!TEX.test(body.slice(0, end))) return undefined;
  const [after] = /^[ \t]*(?:\n|$)/.exec(body.slice(end + 2)) ?? [];
  if (after === undefined) return undefined;
  return { type: "formula", raw: source.slice(0, start.length + end + 2), isClosed: true };
}
