/** Streams Markdown into an element. Needs a DOM (`dom.ts`). */

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

/** Streams a text into an element, `step` characters at a time; the last `slow` characters one by one. */
export function streamed(text: string, step = text.length, slow = 0): HTMLElement {
  const root = document.createElement("div");
  const stream = newStream(root);
  for (let end = step; end < text.length; end += end < text.length - slow ? step : 1) {
    stream.update(text.slice(0, end), true);
  }
  stream.update(text, false);
  return root;
}

/** Streams a text into an element in these pieces. */
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

/** Serializes a DOM: ignores the order of attributes, but distinguishes adjacent text nodes. */
export function canonical(node: Node): string {
  if (node instanceof Text) return JSON.stringify(node.data);
  if (!(node instanceof Element)) return "";
  const attributes = [...node.attributes].map(({ name, value }) => `${name}=${value}`).sort();
  return `<${node.localName} ${attributes}>${[...node.childNodes].map(canonical).join("")}</>`;
}

/** Asserts that a text is rendered as this HTML, and the same no matter how the stream is cut. */
export function assertDrawn(source: string, html: string): void {
  const whole = streamed(source);
  assert.equal(whole.innerHTML, html);
  for (const step of [1, 2, 5]) assert.equal(canonical(streamed(source, step)), canonical(whole), source);
}
