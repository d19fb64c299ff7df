/**
 * Block renderers draw a block in another way than as code: a diagram, a formula, a chart. A page adds its own by the
 * element's property `renderers`.
 */

import type { SourceEvent } from "../../server/protocol/sources.ts";

/**
 * Draws a block from its text. A renderer that is large imports what it needs here, so that it is loaded when needed.
 * What it returns is shown as it is, without buttons to copy or fold.
 */
export type RenderBlock = (text: string, block: RenderedBlock) => Node | Promise<Node>;

/** What a renderer gets besides the text. */
export interface RenderedBlock {
  /** The whole info string behind the fence, such as `csv title=Sales`; empty for a block between delimiters. */
  readonly info: string;
  /** The colours that the chat has. The block is drawn again when they change. */
  readonly theme: "light" | "dark";
  /** Is aborted when the block is not needed any more. */
  readonly signal: AbortSignal;
  /** Calls a function with what the answer rests on, as `SourcesListener` has it. */
  onSources(listener: SourcesListener): void;
}

/**
 * Gets what an answer rests on, as soon as there is anything, and again when there is more: as the server has sent it, once
 * for each place, whose `at` counts in all texts of the answer together.
 */
export type SourcesListener = (sources: readonly SourceEvent["data"][]) => void;

/**
 * By language of a fence in lower case (`csv`), or by delimiter: one that opens and closes (`$$`), or two with a space
 * between them (`\[ \]`). A block between delimiters begins and ends with a line, and has no blank line in it. Each
 * block is rendered once, as soon as it has ended. A renderer that throws leaves the block as it is written, and a
 * warning in the console.
 */
export type BlockRenderers = Readonly<Record<string, RenderBlock>>;

export interface Delimiter {
  readonly open: string;
  readonly close: string;
  readonly render: RenderBlock;
}

export function hasRenderers(own: BlockRenderers): boolean {
  return Object.keys(own).length > 0;
}

/** The renderer of a fence, if there is one for its language. */
export function rendererOf(info: string, own: BlockRenderers): RenderBlock | undefined {
  const language = info.split(/\s/, 1)[0]?.toLowerCase() ?? "";
  // A language may have the name of something that every object has.
  return Object.hasOwn(own, language) ? own[language] : undefined;
}

/** The renderers that are not for a language, but for the text between two marks. */
export function delimitersOf(own: BlockRenderers): readonly Delimiter[] {
  return Object.entries(own)
    .filter(([key]) => !/[\p{L}\p{N}]/u.test(key))
    .map(([key, render]) => {
      const [open = key, close = open] = key.split(" ");
      return { open, close, render };
    });
}
