/** What a page adds to the chat by properties of the element: drawings of tool calls, and buttons of the composer. */

import type { ToolBlock } from "../session/messages.ts";

/** A tool call, as a site's own rendering gets it. */
export type ToolCall = Pick<ToolBlock, "callId" | "tool" | "arguments" | "output" | "status" | "approval">;

/** By name of the tool: draws a call in place of its row. The node stays until the call changes. */
export type ToolRenderers = Readonly<Record<string, (call: ToolCall) => Node | undefined>>;

/** The composer, as an action gets it. */
export interface ComposerPort {
  /** The text in the field. */
  draft: string;
  /** Puts a text in at the cursor, in place of what is selected. */
  insert(text: string): void;
  addFiles(files: Iterable<File>): Promise<void>;
  focus(): void;
}

/** A button beside the text field. */
export interface ComposerAction {
  /** Also the name of the button's part. */
  readonly name: string;
  readonly label: string;
  /** Path of an icon on a grid of 24 by 24, drawn as a line in the colour of the text. */
  readonly icon: string;
  readonly isAvailable?: (composer: ComposerPort) => boolean;
  readonly run: (composer: ComposerPort) => void | Promise<void>;
}
