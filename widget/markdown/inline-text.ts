/** Short texts of the agent's author, such as the greeting, in which bold, code and links are drawn. */

import type { Strings } from "../i18n/strings.ts";
import { lexInline, noLinks } from "./lexer.ts";
import { appendInline } from "./render-inline.ts";

/** An image is its description: nobody would listen for its button. */
export function drawInline(text: string, strings: Strings): DocumentFragment {
  const drawn = document.createDocumentFragment();
  appendInline(drawn, lexInline(text, noLinks()), { strings, images: new Map(), mayLoadImages: true });
  for (const image of drawn.querySelectorAll("button")) image.replaceWith(image.dataset.alt ?? "");
  return drawn;
}

/** Takes the first characters out of what is drawn. A mark around the last of them is closed, and opened again behind it. */
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
