/** What the file of a kind of blocks exports, beside the element that draws them. */

import type { Block } from "../conversations/messages.ts";
import type { Strings } from "../i18n/strings.ts";
import type { ChatModes } from "./context.ts";

/** `quote`: a thought; `name`: what was done; `data`: what is no text for people. */
export type TranscriptPart = readonly [kind: "text" | "quote" | "name" | "data", text: string];

/** A block in a transcript: what people read of it, in this order, and what programs get. */
export interface TranscriptBlock {
  readonly parts: readonly TranscriptPart[];
  readonly json: object;
}

export interface BlockModule<It extends Block = Block> {
  transcribe(block: It, strings: Strings, modes: ChatModes): TranscriptBlock;
}
