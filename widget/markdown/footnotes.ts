/**
 * Footnotes: `[^1]` in a text, and `[^1]: its note` on lines of its own before or after it. `footnote-list.ts` draws
 * the list of notes and its links.
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

/** A line that begins another kind of block, and so does not continue a note. */
const OTHER_BLOCK = /^ {0,3}(?:[-*+>|<] ?|\d{1,9}[.)] |#{1,6} |`{3}|~{3}|\$\$|\\\[|\[\^[^\]\s^]+\]:)/;

/** The note that a source begins with: its first line, the lines that continue it, and indented lines below. */
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

/** Labels that hardly mean anything but a footnote. Others, such as `[^a-z]`, count only once their note exists. */
const USUAL = /^(?:[\p{L}\d_]+|[\p{L}\d_]{2,}(?:-[\p{L}\d_]{2,})+)$/u;

/** Whether a mark is shown as a footnote before its note has arrived. */
export function isExpected(label: string): boolean {
  return USUAL.test(label);
}

/** The mark in a text, which becomes a link once its note has arrived. */
export function footnoteMark(label: string): HTMLElement {
  const node = create("span", "footnote");
  node.dataset.label = label;
  if (isExpected(label)) node.appendChild(create("sup")).append(/^\d+$/.test(label) ? label : "*");
  else node.append(`[^${label}]`);
  return node;
}
