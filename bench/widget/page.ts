/** Runs inside the browser: draws growing answers, and measures what a frame of it costs. */

import type { CSSResult } from "lit";
import type { parse } from "marked";
import * as cut from "../../widget/chunks/cut.ts";
import { longBlocks } from "../../widget/markdown/long-blocks.ts";
import { markdownStyles } from "../../widget/markdown/markdown.styles.ts";
import { MarkdownStream } from "../../widget/markdown/markdown-stream.ts";
import { inspect } from "./inspect.ts";

/** The whole package, loaded before. */
declare const marked: { parse: typeof parse };

// The element loads it when an answer first has a long block.
longBlocks.chunk = cut;

/** Characters of a frame: four tokens of four. */
const PER_FRAME = 16;

/** Frames that are measured at the start, after the first few, and at the end. */
const MEASURED = 60;

/** Characters of a frame that is not measured. */
const PER_SKIP = 512;

export interface Cost {
  /** Means, in milliseconds of script and layout. */
  readonly start: number;
  readonly end: number;
  /** The longest frame of those. */
  readonly longest: number;
}

// Styles decide what layout costs: blocks of code are laid out in chunks.
document.adoptedStyleSheets = (markdownStyles as CSSResult[]).flatMap(
  ({ styleSheet }) => styleSheet ?? [],
);

type Draw = (text: string) => void;

function newRoot(): HTMLElement {
  const root = document.createElement("div");
  root.className = "markdown";
  document.body.replaceChildren(root);
  return root;
}

/** Ours: reads on from the last frame. It has to see the whole stream, in larger steps where nothing is measured. */
function stream(): Draw {
  const drawn = new MarkdownStream(newRoot());
  return (text) => drawn.update(text, true);
}

/** What most do: the whole message is parsed and drawn anew. */
function whole(): Draw {
  const root = newRoot();
  return (text) => {
    root.innerHTML = marked.parse(text, { async: false });
  };
}

/** Reading a size lays the page out, as the screen would. */
function layOut(): void {
  document.body.getBoundingClientRect();
}

function measure(draw: Draw, text: string, from: number): number[] {
  const costs: number[] = [];
  for (let frame = 1; frame <= MEASURED; frame += 1) {
    const start = performance.now();
    draw(text.slice(0, from + frame * PER_FRAME));
    layOut();
    costs.push(performance.now() - start);
  }
  return costs;
}

const mean = (values: readonly number[]) =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

function costOf(draw: Draw, text: string, needsAll: boolean): Cost {
  const first = 2_000;
  const last = text.length - MEASURED * PER_FRAME - 1;
  draw(text.slice(0, first));
  layOut();
  const start = measure(draw, text, first);
  if (needsAll) {
    for (let end = first; end < last; end += PER_SKIP) draw(text.slice(0, end));
  }
  draw(text.slice(0, last));
  layOut();
  const end = measure(draw, text, last);
  return { start: mean(start), end: mean(end), longest: Math.max(...start, ...end) };
}

/** Called from outside of the page. */
Object.assign(globalThis, {
  benchmark: (text: string) => ({
    ours: costOf(stream(), text, true),
    whole: costOf(whole(), text, false),
  }),
  // One token of four characters at a time.
  inspect: (text: string) => inspect(text, 4),
});
