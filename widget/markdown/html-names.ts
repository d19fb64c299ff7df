/**
 * The few elements of HTML that models write into Markdown, and that can do no harm: `<br>`, pairs such as `<sub>` and
 * `<kbd>`, and `<details>` around blocks. Only their names are read: with an attribute, or without its end, a tag is text.
 */

import type { Token, Tokens } from "marked";

const PAIRS = "sub|sup|kbd|u|mark|ins|s|small";

const TAG = new RegExp(`<(/?)(${PAIRS})>`, "iy");

/** A line that begins with such an element is a paragraph, where CommonMark has a block of raw HTML. */
export const BEGINS_WITH_NAME = new RegExp(`^ {0,3}<(?:br\\s*/?|${PAIRS})>`, "i");

/** The tag at a place in a text, if it is one of a pair. */
export function tagAt(source: string, index: number): { raw: string; isEnd: boolean; name: string } | undefined {
  TAG.lastIndex = index;
  const [raw, slash, name = ""] = TAG.exec(source) ?? [];
  return raw === undefined ? undefined : { raw, isEnd: slash === "/", name: name.toLowerCase() };
}

/** Where the pair that begins at this token ends: the index of its end, and its name. */
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

/** What a source begins with, if that is `<details>`: without an end it goes on to the end of the source. */
export function detailsAt(source: string): { raw: string; summary: string | undefined; body: string } | undefined {
  const start =
    /^ {0,3}<details>(?:\s*<summary>((?:(?!<\/?summary>|\n[ \t]*\n)[\s\S])*)<\/summary>|[ \t]*(?![^\n]))/i.exec(source);
  if (!start) return undefined;
  const [{ length }, summary] = start;
  const end = detailsEnd(source, length);
  const raw = source.slice(0, end);
  return { raw, summary: summary?.trim(), body: raw.slice(length).replace(/<\/details>[ \t]*$/i, "") };
}

/** Behind the tag that ends the element whose content begins here. Tags in code are none. */
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

/** The end of a text in which a tag of `<details>` is not whole, or its summary has not come. */
export const BEGUN_DETAILS =
  /(?<![^\n])[^\n]*<(?:\/?details|details>\s*(?:<(?:\/?s[a-z]*)?|<summary>(?:(?!<\/?summary>|\n[ \t]*\n)[\s\S])*)?)$/i;
