/** What a page adds to the chat by properties of the element: headers of messages, drawings of tool calls, buttons. */

import type { ApprovalDecision, ResultImage } from "../../server/protocol/chat.ts";
import type { SourceEvent } from "../../server/protocol/sources.ts";
import type { Message, ToolBlock } from "../conversations/messages.ts";
import type { RenderedBlock } from "../markdown/renderers.ts";

/** A tool call, as a site's own rendering gets it. */
export type ToolCall = Pick<
  ToolBlock,
  | ("callId" | "tool" | "title" | "arguments" | "output" | "status" | "approval" | "decision" | "decidedAt")
  | ("refused" | "problems" | "progress" | "steps")
> & {
  /** Pictures of the result; without `data` where the browser has lost that. */
  readonly images?: readonly (ResultImage | Omit<ResultImage, "data">)[] | undefined;
};

/** The chat, as a drawing of a call gets it. */
export interface ToolHost extends Pick<RenderedBlock, "onSources"> {
  /**
   * Approves or declines this call, which waits for approval; without a decision, takes it back. All are sent as soon as
   * each call that waits has one.
   */
  decide(decision: Omit<ApprovalDecision, "id"> | undefined): void;
}

/**
 * By name of the tool: draws a call in place of its row. The node stays until the call changes, whichever functions the
 * page has set since.
 */
export type ToolRenderers = Readonly<Record<string, (call: ToolCall, host: ToolHost) => Node | undefined>>;

/** A message, as a site's own header gets it. */
export interface MessageSource {
  readonly messageId: string;
  /** `page`: the page has added it. */
  readonly role: Message["role"];
  /** What the page calls who says a message that it has added. */
  readonly name: string | undefined;
}

/** Draws who says a message, above it: once for each message. The node stays, whichever function the page has set since. */
export type MessageHeader = (message: MessageSource) => Node | undefined;

/** The composer, as an action gets it. */
export interface ComposerPort {
  /** The text that is being written, with long pasted texts at its end. Setting it replaces all of them. */
  draft: string;
  /** Puts a text in at the cursor, in place of what is selected. */
  insert(text: string): void;
  addFiles(files: Iterable<File>): Promise<void>;
  focus(): void;
  /** Draws the buttons again, when one is pressed or available by something that the chat does not know. */
  requestUpdate(): void;
}

/** A button whose functions get a `Port`. */
export interface Action<Port, Icon = string> {
  /** Also the name of the button's part. */
  readonly name: string;
  readonly label: string;
  /** Path of an icon on a grid of 24 by 24, drawn as a line in the colour of the text. */
  readonly icon: Icon;
  readonly isAvailable?: (port: Port) => boolean;
  /** Whether the button is pressed; absent where it does not stay so. */
  readonly pressed?: (port: Port) => boolean;
  readonly run: (port: Port, event: MouseEvent) => void | Promise<void>;
}

/** A button beside the text field. */
export interface ComposerAction extends Action<ComposerPort> {}

/** An answer that has ended, as an action gets it. */
export interface MessagePort {
  readonly messageId: string;
  /** All that the agent said, as Markdown; empty where it failed before it said anything. */
  readonly text: string;
  /** What it rests on, as the server has sent it: once for each place, whose `at` counts in all texts together. */
  readonly sources: readonly SourceEvent["data"][];
  /** Draws the buttons again, when one is pressed or available by something that the chat does not know. */
  requestUpdate(): void;
}

/** A button below each answer. */
export interface MessageAction extends Action<MessagePort> {}
