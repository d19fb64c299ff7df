/** Runs inside the browser: draws a growing answer, and looks at what a reader would see of it in each frame. */

import { MarkdownStream } from "../../widget/markdown/markdown-stream.ts";

export interface Sight {
  readonly frames: number;
  /** Frames that showed something which the finished answer does not begin with, such as a mark that is not closed yet. */
  readonly raw: number;
  /** Is what was selected near the beginning still selected at the end? */
  readonly kept: boolean;
}

export function inspect(text: string, perFrame: number): Sight {
  const root = document.body.appendChild(document.createElement("div"));
  const finished = document.createElement("div");
  new MarkdownStream(finished).update(text, false);
  const whole = finished.textContent;
  const stream = new MarkdownStream(root);
  let frames = 0;
  let raw = 0;
  let chosen = "";
  for (let end = perFrame; end < text.length; end += perFrame) {
    stream.update(text.slice(0, end), true);
    frames += 1;
    if (!whole.startsWith(root.textContent.trimEnd())) raw += 1;
    const first = root.querySelector("p")?.firstChild;
    if (chosen === "" && first instanceof Text && first.length > 8) {
      getSelection()?.setBaseAndExtent(first, 2, first, 8);
      chosen = String(getSelection());
    }
  }
  const kept = chosen !== "" && String(getSelection()) === chosen;
  root.remove();
  return { frames, raw, kept };
}
