/**
 * Footnotes: `[^1]` in a text, and `[^1]: its note` on lines of its own, which may stand before or after it. The list of them
 * and its links are drawn by `footnote-list.ts`.
 */

import type { Tokens } from "marked";
import { create } from "../styles/elements.ts";

export interface FootnoteToken extends Tokens.Generic {
  readonly type: "footnote";
  readonly label: string;
  /** The note's Markdown. */
  readonly text: string;
}

/** The notes by label. */
export type Footnotes = ReadonlyMap<string, string>;

const START = /^ {0,3}\[\^([^\]\s^]+)\]:[ \t]*/;

/** A line that begins a block of another kind, and so does not go on with a note. */
const OTHER_BLOCK = /^ {0,3}(?:[-*+>|<] ?|\d{1,9}[.)] |#{1,6} |`{3}|~{3}|\$\$|\\\[|\[\^[^\]\s^]+\]:)/;

/** The note that a source begins with: its line, those that go on with it, and what is indented below. */
export function footnoteAt(source: string): FootnoteToken | undefined {
  const [start, label = ""] = START.exec(source) ?? [];
  if (start === undefined) return undefined;
  let raw = "";
  let blank = "";
  for (const [line] of source.matchAll(/[^\n]*(?:\n|$)/g)) {
    if (line.trim() === "") {
      blank += line;
      continue;
    }
    const isIndented = /^(?: {4}|\t)/.test(line);
    if (raw !== "" && !isIndented && (blank !== "" || OTHER_BLOCK.test(line))) break;
    raw += blank + line;
    blank = "";
  }
  raw = raw.replace(/\n$/, "");
  return {
    type: "footnote",
    raw,
    label: label.toLowerCase(),
    text: raw.slice(start.length).replace(/\n(?: {1,4}|\t)/g, "\n"),
  };
}

/** Numbers and words, which are hardly anything else: only a note shows what `[^a-z]` is. */
const USUAL = /^(?:[\p{L}\d_]+|[\p{L}\d_]{2,}(?:-[\p{L}\d_]{2,})+)$/u;

/** Whether a mark is shown as one before its note has come. */
export function isExpected(label: string): boolean {
  return USUAL.test(label);
}

/** A mark in a text, which is a link once its note is there. */
export function footnoteMark(label: string): HTMLElement {
  const node = create("span", "footnote");
  node.dataset.label = label;
  if (isExpected(label)) node.appendChild(create("sup")).append(/^\d+$/.test(label) ? label : "*");
  else node.append(`[^${label}]`);
  return node;
}
