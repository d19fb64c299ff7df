/** Shortens texts that users decide about: repetitions that would push the end out of view are only counted. */

import { html, type TemplateResult } from "lit";
import "../i18n/add-part-texts.ts";
import type { Strings } from "../i18n/strings.ts";
import { beginning, plain } from "./plain-text.ts";

/** Three or more empty lines, more than 40 blanks in a row, and up to three characters repeated 100 times or more. */
const FOLDED =
  /(?<lines>(?<=^|\n)(?:[^\S\n]*\n){3,})|(?<blanks>(?:[^\S\n]|\u2800){41,})|(?<unit>[^\n]{1,3}?)\k<unit>{99,}/gu;

interface Piece {
  readonly text: string;
  /** Whether it describes what was folded. It is drawn as an element then, since a text may have the same words. */
  readonly isFold: boolean;
}

/** A text in pieces, which are cut to `longest` characters. */
function* piecesOf(text: string, strings: Strings, longest: number): Generator<Piece> {
  let end = 0;
  for (const match of text.matchAll(FOLDED)) {
    if (match.index > end) yield { text: plain(text.slice(end, Math.min(match.index, end + longest))), isFold: false };
    end = match.index + match[0].length;
    const { lines, unit } = match.groups ?? {};
    yield { text: `[${wordsFor(match[0], lines, unit, strings)}]`, isFold: true };
    if (lines !== undefined) yield { text: "\n", isFold: false };
  }
  if (end < text.length) yield { text: plain(text.slice(end, end + longest)), isFold: false };
}

function wordsFor(all: string, lines: string | undefined, unit: string | undefined, strings: Strings): string {
  if (lines !== undefined) return strings.emptyLines(lines.split("\n").length - 1);
  if (unit === undefined) return strings.spaces(all.length);
  const shown = plain(unit.replace(/^\p{M}/u, "\u25cc$&"));
  return `${shown} × ${(all.length / unit.length).toLocaleString(strings.lang)}`;
}

/** A text in the form that Lit draws. */
export type Folded = readonly (string | TemplateResult)[];

const draw = ({ text, isFold }: Piece) => (isFold ? html`<span class="fold">${text}</span>` : text);

/** The whole text. */
export function folded(text: string, strings: Strings): Folded {
  return [...piecesOf(text, strings, text.length)].map(draw);
}

/** Whether anything of a text is folded. */
export function hasFolds(text: string): boolean {
  return text.search(FOLDED) >= 0;
}

const MANY_LINES = /^(?:[^\n]*\n){8}/;

/** The beginning of a text, of at most `longest` characters and eight lines, and whether the text was cut. */
export function beginningOf(text: string, longest: number, strings: Strings): [shown: Folded, isCut: boolean] {
  const shown: (string | TemplateResult)[] = [];
  let all = "";
  for (const piece of piecesOf(text, strings, longest + 1)) {
    const start = all.length;
    all += piece.text;
    const end = Math.min(longest, MANY_LINES.exec(all)?.[0].length ?? longest);
    if (all.length > end) {
      const rest = piece.isFold ? "" : beginning(all.slice(start), end - start);
      return [[...shown, `${rest}…`], true];
    }
    shown.push(draw(piece));
  }
  return [shown, false];
}
