/** The exports of the module for a kind of blocks, besides the element that draws them. */

import type { Block } from "../conversations/messages.ts";
import type { Strings } from "../i18n/strings.ts";
import type { ChatModes } from "./context.ts";

/** `quote`: a thought; `name`: what a tool did; `data`: its arguments or output. */
export type TranscriptPart = readonly [kind: "text" | "quote" | "name" | "data", text: string];

/** A block in a transcript: the parts that people read, in order, and the JSON for programs. */
export interface TranscriptBlock {
  readonly parts: readonly TranscriptPart[];
  readonly json: object;
}

export interface BlockModule<It extends Block = Block> {
  transcribe(block: It, strings: Strings, modes: ChatModes): TranscriptBlock;
}
