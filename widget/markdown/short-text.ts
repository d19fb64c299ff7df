/**
 * Draws short texts of the agent's author, such as the greeting: bold, code, links and emphasis, without the lexer,
 * which an empty chat has not loaded yet.
 */

import { create } from "../styles/elements.ts";
import { safeLink } from "./safe-url.ts";
import { appendText, linkElement, type Parent } from "./text.ts";

/** Where two marks begin at the same place, the first one here wins. */
const MARKS = new RegExp(
  [
    String.raw`\\([!-/:-@[-\x60{-~])`,
    "(?<ticks>`+)(?<code>[^`]+)\\k<ticks>(?!`)",
    String.raw`(?<picture>!?)\[(?<label>[^\]]+)\]\((?<address>[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)`,
    String.raw`(?<url>https?://[^\s<>]*[^\s<>.,:;!?"')\]*_])`,
    String.raw`(?<mark>\*{1,3}|(?<![\p{L}\p{N}])_{1,3})(?=[^\s*_])(?<marked>.+?)(?<=\S)\k<mark>(?!\*|_[\p{L}\p{N}])`,
  ].join("|"),
  "gsu",
);

/** Draws such a text. An image becomes its description: a button that loads it would do nothing here. */
export function drawShortText(text: string): DocumentFragment {
  const drawn = document.createDocumentFragment();
  append(drawn, text, false);
  return drawn;
}

function append(parent: Parent, text: string, isInLink: boolean): void {
  let end = 0;
  for (const match of text.matchAll(MARKS)) {
    const { index, 0: whole, 1: escaped, groups = {} } = match;
    appendText(parent, text.slice(end, index));
    end = index + whole.length;
    const { code, picture, label, url, address = url, mark, marked = "" } = groups;
    const link = isInLink || picture || address === undefined ? undefined : safeLink(address);
    const target = link ? parent.appendChild(linkElement(link)) : parent;
    if (code !== undefined) appendText(parent.appendChild(create("code")), code);
    else if (mark !== undefined) append(withMarks(parent, mark.length), marked, isInLink);
    else if (label !== undefined) append(target, label, true);
    else appendText(target, escaped ?? whole);
  }
  appendText(parent, text.slice(end));
}

/** One mark is emphasis, two are bold, three are both. */
function withMarks(parent: Parent, count: number): HTMLElement {
  const outer = parent.appendChild(create(count === 1 ? "em" : "strong"));
  return count === 3 ? outer.appendChild(create("em")) : outer;
}

/** Removes the first characters from `drawn`, and returns them. A mark around the cut is closed, and reopened after it. */
export function takeStart(drawn: DocumentFragment, characters: number): DocumentFragment {
  const range = document.createRange();
  range.setStart(drawn, 0);
  const texts = document.createTreeWalker(drawn, NodeFilter.SHOW_TEXT);
  for (let left = characters; texts.nextNode(); left -= (texts.currentNode as Text).length) {
    if (left > (texts.currentNode as Text).length) continue;
    range.setEnd(texts.currentNode, left);
    break;
  }
  return range.extractContents();
}
