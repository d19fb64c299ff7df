/** Runs inside the browser: draws growing answers, and measures what a frame of it costs. */

import type { CSSResult } from "lit";
import type { parse } from "marked";
import * as cut from "../../widget/chunks/cut.ts";
import { longTableSheet } from "../../widget/chunks/long-table.styles.ts";
import { keepQuick } from "../../widget/chunks/long-table.ts";
import { longBlocks } from "../../widget/markdown/long-blocks.ts";
import { markdownStyles } from "../../widget/markdown/markdown.styles.ts";
import { MarkdownStream } from "../../widget/markdown/markdown-stream.ts";
import { inspect } from "./inspect.ts";

/** The whole package, loaded before. */
declare const marked: { parse: typeof parse };

// The element loads it when an answer first has a long block.
longBlocks.chunk = cut;

/** Bodies of rows from which on the element has a table kept quick. */
const LONG_TABLE = 3;

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
  /** At the end too, of frames that follow each other at once: no screen to wait for, and no processor that slept meanwhile. */
  readonly loop: number;
  /** The longest frame of those. */
  readonly longest: number;
}

// Styles decide what layout costs: blocks of code are laid out in chunks.
document.adoptedStyleSheets = [
  ...(markdownStyles as CSSResult[]).flatMap(({ styleSheet }) => styleSheet ?? []),
  longTableSheet,
];

/** What was spent before frames, by what asked for it, since it was last counted. */
let before = 0;
const request = requestAnimationFrame.bind(globalThis);
globalThis.requestAnimationFrame = (callback) =>
  request((time) => {
    const start = performance.now();
    callback(time);
    layOut();
    before += performance.now() - start;
  });

const frame = () => new Promise(request);

type Draw = (text: string) => void;

function newRoot(): HTMLElement {
  const root = document.createElement("div");
  root.className = "markdown";
  document.body.replaceChildren(root);
  return root;
}

/** Ours: reads on from the last frame. It has to see the whole stream, in larger steps where nothing is measured. */
function stream(): Draw {
  const root = newRoot();
  const drawn = new MarkdownStream(root);
  return (text) => {
    drawn.update(text, true);
    const table = root.querySelector<HTMLTableElement>(".table:only-child > table");
    if (table && table.tBodies.length >= LONG_TABLE) keepQuick(table);
  };
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

async function measure(draw: Draw, text: string, from: number, next: () => unknown = frame): Promise<number[]> {
  const costs: number[] = [];
  before = 0;
  for (let count = 1; count <= MEASURED; count += 1) {
    const start = performance.now();
    draw(text.slice(0, from + count * PER_FRAME));
    layOut();
    const now = performance.now() - start;
    await next();
    costs.push(now + before);
    before = 0;
  }
  return costs;
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

async function costOf(draw: Draw, text: string, needsAll: boolean): Promise<Cost> {
  const first = 2_000;
  const last = text.length - 2 * MEASURED * PER_FRAME - 1;
  draw(text.slice(0, first));
  await frame();
  const start = await measure(draw, text, first);
  if (needsAll) {
    for (let end = first; end < last; end += PER_SKIP) {
      draw(text.slice(0, end));
      await frame();
    }
  }
  draw(text.slice(0, last));
  await frame();
  const end = await measure(draw, text, last);
  const loop = mean(await measure(draw, text, last + MEASURED * PER_FRAME, () => {}));
  return { start: mean(start), end: mean(end), loop, longest: Math.max(...start, ...end) };
}

/** Called from outside of the page. */
Object.assign(globalThis, {
  benchmark: async (text: string) => ({
    ours: await costOf(stream(), text, true),
    whole: await costOf(whole(), text, false),
  }),
  // One token of four characters at a time.
  inspect: (text: string) => inspect(text, 4),
});
