/**
 * The few harmless HTML elements that models write into Markdown: `<br>`, pairs such as `<sub>` and `<kbd>`, and
 * `<details>` around blocks. Only bare tags count: with an attribute, or without its end, a tag is text.
 */

import type { Token, Tokens } from "marked";

const PAIRS = "sub|sup|kbd|u|mark|ins|s|small";

const TAG = new RegExp(`<(/?)(${PAIRS})>`, "iy");

/** A line that begins with such an element: a paragraph here, though a block of raw HTML in CommonMark. */
export const BEGINS_WITH_NAME = new RegExp(`^ {0,3}<(?:br\\s*/?|${PAIRS})>`, "i");

/** The tag at a place in a text, if it is one of a pair. */
export function tagAt(source: string, index: number): { raw: string; isEnd: boolean; name: string } | undefined {
  TAG.lastIndex = index;
  const [raw, slash, name = ""] = TAG.exec(source) ?? [];
  return raw === undefined ? undefined : { raw, isEnd: slash === "/", name: name.toLowerCase() };
}

/** The pair of tags that begins at this token: its name, and the index of its end tag. */
export function pairAt(tokens: readonly Token[], from: number): { name: "sub"; end: number } | undefined {
  const tagOf = (token: Token | undefined) => (token?.type === "html" ? tagAt(token.raw, 0) : undefined);
  const start = tagOf(tokens[from]);
  if (!start || start.isEnd) return undefined;
  const end = tokens.findIndex(
    (token, index) => index > from && tagOf(token)?.isEnd && tagOf(token)?.name === start.name,
  );
  return end === -1 ? undefined : { name: start.name as "sub", end };
}

export interface DetailsToken extends Tokens.Generic {
  readonly type: "details";
  /** Inline text. */
  readonly summary: Token[] | undefined;
  readonly tokens: Token[];
}

/** The `<details>` that a source begins with. Without an end tag it extends to the end of the source. */
export function detailsAt(source: string): { raw: string; summary: string | undefined; body: string } | undefined {
  const start =
    /^ {0,3}<details>(?:\s*<summary>((?:(?!<\/?summary>|\n[ \t]*\n)[\s\S])*)<\/summary>|[ \t]*(?![^\n]))/i.exec(source);
  if (!start) return undefined;
  const [{ length }, summary] = start;
  const end = detailsEnd(source, length);
  const raw = source.slice(0, end);
  return { raw, summary: summary?.trim(), body: raw.slice(length).replace(/<\/details>[ \t]*$/i, "") };
}

/** The index after the end tag of the element whose content begins here. Tags in code do not count. */
function detailsEnd(source: string, from: number): number {
  const marks = /<(\/?)details>[ \t]*|^[ \t]*(`{3,}|~{3,})[^\n]*\n|`[^`\n]*`/gim;
  marks.lastIndex = from;
  let depth = 1;
  let fence = "";
  for (let match = marks.exec(source); match !== null; match = marks.exec(source)) {
    const [whole, slash, mark] = match;
    if (mark !== undefined && (fence === "" || mark.startsWith(fence))) fence = fence === "" ? mark : "";
    if (slash === undefined || fence !== "") continue;
    depth += slash === "/" ? -1 : 1;
    if (depth === 0) return match.index + whole.length;
  }
  return source.length;
}

/** The end of a text with an incomplete tag of `<details>`, or before the end of its summary. */
export const BEGUN_DETAILS =
  /(?<![^\n])[^\n]*<(?:\/?details|details>\s*(?:<(?:\/?s[a-z]*)?|<summary>(?:(?!<\/?summary>|\n[ \t]*\n)[\s\S])*)?)$/i;
