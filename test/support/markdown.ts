/** Markdown streamed into an element. Needs a document (`dom.ts`). */

import assert from "node:assert/strict";
import "../../widget/ui/talk.ts";
import { en } from "../../widget/i18n/strings.ts";
import type { BlockRenderers } from "../../widget/markdown/renderers.ts";
import { MarkdownStream } from "../../widget/markdown/stream.ts";

export function newStream(
  root: HTMLElement,
  renderers: BlockRenderers = {},
  images: "none" | "ask" = "ask",
): MarkdownStream {
  const context = { strings: en, renderers, theme: "light", headingLevel: 0, images, onSources() {} } as const;
  return new MarkdownStream(root, context);
}

/** An element into which a text was streamed, so many characters at a time, but for the characters at its end. */
export function streamed(text: string, step = text.length, slow = 0): HTMLElement {
  const root = document.createElement("div");
  const stream = newStream(root);
  for (let end = step; end < text.length; end += end < text.length - slow ? step : 1) {
    stream.update(text.slice(0, end), true);
  }
  stream.update(text, false);
  return root;
}

/** An element into which a text was streamed in these pieces. */
export function streamedInPieces(pieces: readonly string[]): HTMLElement {
  const root = document.createElement("div");
  const stream = newStream(root);
  let text = "";
  for (const piece of pieces) {
    text += piece;
    stream.update(text, true);
  }
  stream.update(text, false);
  return root;
}

/** A DOM as text in which the order of attributes does not matter, but the cut between text nodes does. */
export function canonical(node: Node): string {
  if (node instanceof Text) return JSON.stringify(node.data);
  if (!(node instanceof Element)) return "";
  const attributes = [...node.attributes].map(({ name, value }) => `${name}=${value}`).sort();
  return `<${node.localName} ${attributes}>${[...node.childNodes].map(canonical).join("")}</>`;
}

/** Fails unless a text becomes this HTML, and the same at every cut. */
export function assertDrawn(source: string, html: string): void {
  const whole = streamed(source);
  assert.equal(whole.innerHTML, html);
  for (const step of [1, 2, 5]) assert.equal(canonical(streamed(source, step)), canonical(whole), source);
}
