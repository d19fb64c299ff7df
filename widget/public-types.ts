/**
 * The public face of the elements: what `parley-agent/widget` declares. It names no class of ours and nothing of Lit, so a
 * site needs neither to compile. The classes implement these interfaces.
 */

import type { AgentInfo, FinishReason } from "../server/protocol/chat.ts";
import type { ErrorCode } from "../server/protocol/errors.ts";
import type { StringsOverride } from "./strings.ts";

export type { AgentInfo, FinishReason } from "../server/protocol/chat.ts";
export type { ErrorCode } from "../server/protocol/errors.ts";
export type { Strings, StringsOverride } from "./strings.ts";

/** `markdown` is to be read, `json` for programs. */
export type TranscriptFormat = "markdown" | "json";

/** How thoughts or tool calls are shown: open while they stream, open at first, closed at first, or not at all. */
export type StepMode = "auto" | "open" | "closed" | "hidden";

/** What was wrong with an answer. */
export type FeedbackReason = "incorrect" | "incomplete" | "off_topic" | "harmful";

/** Properties that both elements have; each has an attribute of the same name, but for `strings`. */
interface SharedProperties {
  /** Base URL of the server. Default: where the script was loaded from. */
  server: string;
  /** `auto` follows the `color-scheme` around the element, until the person chooses. */
  theme: "auto" | "light" | "dark";
  /** Any CSS colour, in place of the blue. */
  accent: string;
  /** How much room text and messages take. */
  density: "normal" | "compact" | "spacious";
  /** How round everything is. */
  corners: "round" | "soft" | "sharp";
  /** Texts of the site's own, in place of ours. */
  strings: StringsOverride | undefined;
  /** `session` keeps the conversation in this tab over a reload. Files are never kept. */
  persist: "session" | "none";
  /** Thoughts: open while they stream, open at first, closed at first, or not shown. */
  thinking: StepMode;
  /** Tool calls, likewise; `auto` is closed. */
  tools: StepMode;
  /** What can be done with messages: `all`, `none`, or words out of `copy`, `retry`, `edit`, `code` and `table`, with spaces between. */
  actions: string;
  /** Thumbs on answers; the page hears of them by `agent-chat-feedback`. */
  feedback: boolean;
  /** A line below the composer, in place of the agent's own. */
  disclaimer: string;
  /** Resolves when what was set so far has been drawn. */
  readonly updateComplete: Promise<boolean>;
}

/** `<agent-chat>`: a conversation with the agent of one Parley server. */
export interface AgentChat extends HTMLElement, SharedProperties {
  /** A key that the site brings. Anybody who sees the page can read it. Never stored. Attribute: `api-key`. */
  apiKey: string;
  /** Fills the viewport. */
  page: boolean;
  /** Leaves out the title and borders, for a frame that has its own. */
  embed: boolean;
  /** Sends a message as if the person had typed it; resolves when the answer is over, rejects if there is to be none. */
  send(text: string): Promise<void>;
  /** Stops the running answer, or that to a message which is about to be sent; what was said so far stays. */
  stop(): void;
  /** Starts a new conversation. */
  reset(): Promise<void>;
  /** Puts the cursor where the person goes on: the text field, or the field for the key. */
  focusComposer(): void;
  /** Puts a text into the text field, in place of what is there, for the person to send. */
  setDraft(text: string): void;
  /** Adds files to the message that is being written; resolves when they are read. What is refused is said in place. */
  attach(files: Iterable<File>): Promise<void>;
  /** Resolves to the conversation as it is shown, as a text; rejects for another format. */
  exportTranscript(format: TranscriptFormat): Promise<string>;
  /** Offers messages to send with one click, until one is sent or the conversation begins anew; an empty list offers none. */
  suggest(texts: Iterable<string>): void;
}

/** `<agent-chat-launcher>`: a round button in the corner that opens the chat in a panel. */
export interface AgentChatLauncher extends HTMLElement, SharedProperties {
  /** The site's key. A property only, so that it does not appear in the page a second time. */
  apiKey: string;
  /** The corner; `end` is the right side where one reads from left to right. */
  position: "bottom-end" | "bottom-start" | "top-end" | "top-start";
  /** What the button shows. An image of your own goes into the slot `launcher-icon`. */
  icon: "chat" | "spark" | "question";
  /** Size of the button: 56, 48 or 64 pixels. */
  size: "medium" | "small" | "large";
  /** A few words beside the icon; also what the button is called. */
  label: string;
  /** Opens by itself: after so many milliseconds, `50%` (so much of the page was in view), `exit` (the mouse leaves the page by its top), or the first of several. */
  autoOpen: number | string | null;
  /** A few words in a bubble beside the closed button. */
  preview: string;
  /** When the bubble comes: as for `autoOpen`. Default: 3000. */
  previewAfter: number | string | null;
  /** Whether the panel is open. */
  readonly opened: boolean;
  /** The chat in the panel, once it has been opened for the first time. */
  readonly chat: AgentChat | null;
  /** Opens the panel and puts the cursor into its text field; resolves when both are done, or the launcher has left the page. */
  open(): Promise<void>;
  /** Closes the panel. The focus, if it was inside, goes back to where it was before. */
  close(): void;
  /** Opens the panel if it is closed, and the other way round. */
  toggle(): Promise<void>;
}

/** The server has said who the agent is; the chat can be used. */
export interface AgentChatReadyEvent extends Event {
  /** What the server says of itself: the answer of `GET /api/info`. */
  readonly info: AgentInfo;
}

/** The person sent a message. */
export interface AgentChatMessageEvent extends Event {
  /** As it was sent. */
  readonly text: string;
  /** How many files go with it. */
  readonly attachmentCount: number;
}

/** A piece of the answer's text has come, as the server sent it. */
export interface AgentChatTokenEvent extends Event {
  /** Markdown. The pieces of an answer make its text, unless the server corrects it in the end: `agent-chat-done` has it whole. */
  readonly text: string;
  /** Names the answer within its conversation, like that of `agent-chat-feedback`. */
  readonly messageId: string;
}

/** A tool was called (`status` is `running`), or its call is over: `completed`, `failed` or `stopped`. */
export interface AgentChatToolEvent extends Event {
  /** The call's id: the same in both events. */
  readonly callId: string;
  /** The tool's name. */
  readonly tool: string;
  /** `stopped`: the answer ended before the tool did. */
  readonly status: "running" | "completed" | "failed" | "stopped";
  /** JSON, as the model wrote it. */
  readonly arguments: string;
  /** Absent while the call runs, and when it was stopped. */
  readonly output: string | undefined;
}

/** An answer ended. */
export interface AgentChatDoneEvent extends Event {
  /** The whole answer, as Markdown. */
  readonly text: string;
  /** `stopped` when the person stopped it. */
  readonly finishReason: FinishReason;
}

/** An answer failed. */
export interface AgentChatErrorEvent extends Event {
  /** A code of the server, or what the element itself has met. */
  readonly code: ErrorCode | "connection_lost" | "unreachable" | "unreadable";
  /** A sentence for people. */
  readonly message: string;
  /** What the server's log calls the run (`run_id`); absent when the server did not answer. */
  readonly reference: string | undefined;
}

/** The person rated an answer, said why, or took the rating back. The last event about an answer counts. */
export interface AgentChatFeedbackEvent extends Event {
  /** Names the answer within its conversation, also after a reload. */
  readonly messageId: string;
  /** `null` when the person took the rating back. */
  readonly rating: "up" | "down" | null;
  /** Only with `down`, in the second event about it, and only if the person chose one. */
  readonly reason: FeedbackReason | undefined;
  /** The person's own words, if any: at most 2,000 characters. */
  readonly comment: string | undefined;
  /** The answer, as Markdown. */
  readonly answer: string;
}

/** What `<agent-chat>` takes in a JSX template: its attributes and properties. */
export interface AgentChatProps extends Partial<Omit<SharedProperties, "updateComplete">> {
  "api-key"?: string;
  apiKey?: string;
  page?: boolean;
  embed?: boolean;
}

/** What `<agent-chat-launcher>` takes in a JSX template: its attributes and properties. */
export interface AgentChatLauncherProps
  extends Partial<Omit<SharedProperties, "updateComplete">>,
    Partial<Pick<AgentChatLauncher, "apiKey" | "position" | "icon" | "size" | "label" | "preview">> {
  "auto-open"?: number | string;
  "preview-after"?: number | string;
}

/** Listeners for the events of an element, under the names that a framework makes of a prefix and the event's. */
export type EventListeners<Prefix extends string> = {
  [Name in keyof GlobalEventHandlersEventMap as Name extends `agent-chat-${string}` ? `${Prefix}${Name}` : never]?: (
    event: GlobalEventHandlersEventMap[Name],
  ) => void;
};

declare global {
  interface HTMLElementTagNameMap {
    "agent-chat": AgentChat;
    "agent-chat-launcher": AgentChatLauncher;
  }

  interface GlobalEventHandlersEventMap {
    "agent-chat-ready": AgentChatReadyEvent;
    "agent-chat-message": AgentChatMessageEvent;
    "agent-chat-token": AgentChatTokenEvent;
    "agent-chat-tool": AgentChatToolEvent;
    "agent-chat-done": AgentChatDoneEvent;
    "agent-chat-error": AgentChatErrorEvent;
    "agent-chat-feedback": AgentChatFeedbackEvent;
    "agent-chat-open": Event;
    "agent-chat-close": Event;
  }
}
