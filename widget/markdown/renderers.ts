/**
 * Block renderers draw a block in another way than as code: a diagram, a formula, a chart. A page adds its own by the
 * element's property `renderers`.
 */

import type { SourceEvent } from "../../server/protocol/sources.ts";

/**
 * Draws a block from its text. A large renderer should import its code here, so that it is loaded only when needed. The
 * returned node is shown as it is, without buttons to copy or fold.
 */
export type RenderBlock = (text: string, block: RenderedBlock) => Node | Promise<Node>;

/** What a renderer gets besides the text. */
export interface RenderedBlock {
  /** The whole info string behind the fence, such as `csv title=Sales`; empty for a block between delimiters. */
  readonly info: string;
  /** The theme of the chat. The block is drawn again when it changes. */
  readonly theme: "light" | "dark";
  /** Aborted when the block is no longer needed. */
  readonly signal: AbortSignal;
  /** Adds a function that is called with the sources of the answer: see `SourcesListener`. */
  onSources(listener: SourcesListener): void;
}

/**
 * Called with the sources of an answer as soon as there are any, and again when there are more. The sources are as the
 * server has sent them, once for each place, whose `at` counts through all texts of the answer together.
 */
export type SourcesListener = (sources: readonly SourceEvent["data"][]) => void;

/**
 * By the language of a fence in lower case (`csv`), or by delimiter: one that opens and closes (`$$`), or two with a
 * space between them (`\[ \]`). A block between delimiters begins and ends with a line, and contains no blank line.
 * Each block is rendered once, as soon as it is complete. If a renderer throws, the block stays as written, with a
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
  // A language may have the name of a property that every object has, such as `constructor`.
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
