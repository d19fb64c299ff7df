/**
 * Formulas in TeX. They are shown as they are written, delimiters and all, so that a copy of one is TeX again;
 * `mathematics.ts` draws mathematics over that.
 */

import type { Tokens } from "marked";
import { create } from "../styles/elements.ts";
import { appendText } from "./text.ts";

export function formula(source: string): HTMLElement {
  const node = create("span", "tex");
  node.dir = "ltr";
  node.setAttribute("translate", "no");
  // Says whether the text has changed: what is in the element changes when it is drawn.
  node.dataset.source = source;
  appendText(node.appendChild(create("code")), source);
  return node;
}

/** A formula that stands on lines of its own. */
export interface FormulaToken extends Tokens.Generic {
  readonly type: "formula";
  /** Whether its end has come: until then the text may turn out to be none. */
  readonly isClosed: boolean;
}

/** Longest formula on lines of its own. */
const MAX_LENGTH = 4096;

/** What stands between two prices or escaped brackets has none of these. */
const TEX = /^[ \t]*\n|\\[a-z]|[\^_={}<>+*]/i;

/** What certainly begins a formula, though its end has not come. */
const BEGUN = /^[ \t]*(?:\n|\\[a-z])/i;

/** The formula that a source begins with. One without an end goes on to the end of the source, or is text. */
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
