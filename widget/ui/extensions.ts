/** What a page can add to the chat by properties of the element: message headers, drawings of tool calls, buttons. */

import type { ApprovalDecision, ResultImage } from "../../server/protocol/chat.ts";
import type { SourceEvent } from "../../server/protocol/sources.ts";
import type { Message, ToolBlock } from "../conversations/messages.ts";
import type { RenderedBlock } from "../markdown/renderers.ts";

/** A tool call, as passed to a renderer of the page. */
export type ToolCall = Pick<
  ToolBlock,
  | ("callId" | "tool" | "title" | "arguments" | "output" | "status" | "approval" | "decision" | "decidedAt")
  | ("refused" | "problems" | "progress" | "steps")
> & {
  /** Pictures of the result; without `data` if the browser no longer has it. */
  readonly images?: readonly (ResultImage | Omit<ResultImage, "data">)[] | undefined;
};

/** The chat, as passed to a renderer of tool calls. */
export interface ToolHost extends Pick<RenderedBlock, "onSources"> {
  /**
   * Approves or declines this call, which waits for approval; `undefined` withdraws the decision. All decisions are
   * sent once each waiting call has one.
   */
  decide(decision: Omit<ApprovalDecision, "id"> | undefined): void;
}

/**
 * By name of the tool: draws a call in place of its row. The node is kept until the call changes, even if the page sets
 * other functions meanwhile.
 */
export type ToolRenderers = Readonly<Record<string, (call: ToolCall, host: ToolHost) => Node | undefined>>;

/** A message, as passed to the page's `messageHeader`. */
export interface MessageSource {
  readonly messageId: string;
  /** `page`: a message added by the page. */
  readonly role: Message["role"];
  /** Name of the speaker, for a message added by the page. */
  readonly name: string | undefined;
}

/** Draws the header above a message, once for each. The node is kept, even if the page sets another function. */
export type MessageHeader = (message: MessageSource) => Node | undefined;

/** The composer, as passed to an action. */
export interface ComposerPort {
  /** The text that is being written, with long pasted texts at its end. Setting it replaces all of them. */
  draft: string;
  /** Inserts a text at the cursor, in place of the selection. */
  insert(text: string): void;
  addFiles(files: Iterable<File>): Promise<void>;
  focus(): void;
  /** Redraws the buttons, if `pressed` or `isAvailable` depend on something that the chat does not know. */
  requestUpdate(): void;
}

/** A button whose functions get a `Port`. */
export interface Action<Port, Icon = string> {
  /** Also the name of the button's CSS part. */
  readonly name: string;
  readonly label: string;
  /** SVG path of an icon on a grid of 24 by 24, drawn as a line in the text colour. */
  readonly icon: Icon;
  readonly isAvailable?: (port: Port) => boolean;
  /** Whether the button is shown as pressed; absent for a button that is not a toggle. */
  readonly pressed?: (port: Port) => boolean;
  readonly run: (port: Port, event: MouseEvent) => void | Promise<void>;
}

/** A button beside the text field. */
export interface ComposerAction extends Action<ComposerPort> {}

/** An answer that has ended, as passed to an action. */
export interface MessagePort {
  readonly messageId: string;
  /** The whole text of the answer, as Markdown; empty if it failed before any text. */
  readonly text: string;
  /** Its sources, as sent by the server: one for each place. `at` counts through all texts of the answer. */
  readonly sources: readonly SourceEvent["data"][];
  /** Redraws the buttons, if `pressed` or `isAvailable` depend on something that the chat does not know. */
  requestUpdate(): void;
}

/** A button below each answer. */
export interface MessageAction extends Action<MessagePort> {}
