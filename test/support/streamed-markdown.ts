import { MarkdownStream } from "../../widget/markdown/markdown-stream.ts";

/** An element into which a text was streamed, so many characters at a time. Needs a document (`dom.ts`). */
export function streamed(text: string, step: number): HTMLElement {
  const root = document.createElement("div");
  const stream = new MarkdownStream(root);
  for (let end = step; end < text.length; end += step) stream.update(text.slice(0, end), true);
  stream.update(text, false);
  return root;
}
