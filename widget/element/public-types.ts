/**
 * The public types of the elements: what `parley-agent/widget` declares. They refer to no internal class and to nothing
 * of Lit, so a site can compile without them. The classes implement these interfaces.
 */

import type { AgentInfo, ApprovalDecision, FinishReason } from "../../server/protocol/chat.ts";
import type { ArgumentProblem, ErrorCode } from "../../server/protocol/errors.ts";
import type { FeedbackReason } from "../conversations/messages.ts";
import type { StringsOverride } from "../i18n/strings.ts";
import type { BlockRenderers } from "../markdown/renderers.ts";
import type { Metadata, UserToken } from "../session/identity.ts";
import type { TranscriptFormat } from "../ui/export.ts";
import type { ComposerAction, MessageAction, MessageHeader, ToolCall, ToolRenderers } from "../ui/extensions.ts";

export type { Strings } from "../i18n/strings.ts";
export type { RenderBlock, RenderedBlock, SourcesListener } from "../markdown/renderers.ts";
export type { StepMode } from "../ui/context.ts";
export type { ComposerPort, MessagePort, MessageSource, ToolHost } from "../ui/extensions.ts";
export type {
  AgentInfo,
  ApprovalDecision,
  ArgumentProblem,
  BlockRenderers,
  ComposerAction,
  ErrorCode,
  FeedbackReason,
  FinishReason,
  MessageAction,
  MessageHeader,
  Metadata,
  StringsOverride,
  ToolCall,
  ToolRenderers,
  TranscriptFormat,
  UserToken,
};

/*
 * The comments on properties are also in the custom elements manifest and in docs/element.md, with the link of `@see`.
 * Their attributes and defaults are in `properties.ts`.
 */

/** Properties that both elements have. */
export interface SharedProperties {
  /** Base URL of the server, with its path if it has one. Default: where the script was loaded from. */
  server: string;
  /** The site's key. Anyone can read it in the page's source, so use a widget key. It is never stored. */
  apiKey: string;
  /**
   * Proves to the agent who the user is. A function is asked before each message, and again if the token has expired.
   * @see [Your users](docs/widget.md#your-users)
   */
  userToken: UserToken | undefined;
  /**
   * Data of your page for each message: at most 16 strings of 512 characters. The agent's tools read it in
   * `ctx.metadata`, and nothing proves it.
   */
  metadata: Metadata | undefined;
  /**
   * `auto` follows the CSS `color-scheme` around the element until the user chooses. Their choice is stored, and
   * applies to all chats of your site with the same `theme`.
   */
  theme: "auto" | "light" | "dark";
  /**
   * Any CSS colour, including `light-dark()`, instead of the blue. Text and icons on it are black or white, whichever
   * is easier to read.
   */
  accent: string;
  /** Space between messages and size of the text. */
  density: "normal" | "compact" | "spacious";
  /** How round the corners are. */
  corners: "round" | "soft" | "sharp";
  /**
   * Language of the texts. Default: the nearest `lang` around the element, then the browser's.
   * @see [Languages](docs/customize.md#languages)
   */
  lang: string;
  /** `ltr` or `rtl`. Default: the nearest `dir` around the element, or the direction of the language. */
  dir: string;
  /**
   * `session` keeps the conversation in this tab across reloads and pages of the same site; `none` does not.
   */
  persist: "session" | "none";
  /**
   * Keeps all conversations in this browser, also of closed tabs, and lists them; `off` does not. Default: as the agent's
   * `chat` says; on at the server's own page.
   * @see [Keep conversations](docs/conversations.md)
   */
  conversations: boolean | undefined;
  /** What stays in view while an answer is written: the question at the top, or the end of the answer. */
  follow: "question" | "end";
  /**
   * Thinking. `auto`: open while it streams, closed afterwards. `open`, `closed`: at first, until the user decides.
   * `hidden`: not shown. Hidden thinking is not exported either.
   */
  thinking: "auto" | "open" | "closed" | "hidden";
  /**
   * Tool calls, with the same values. `titles`: rows that do not open, without arguments and output. `auto`: `closed` if
   * the server is on this machine, else `titles`. Hidden calls are not announced to screen readers either. A call that
   * waits for approval is always shown and exported.
   */
  tools: "auto" | "open" | "closed" | "hidden" | "titles";
  /**
   * What users can do with messages: `all`, `none`, or a list of words separated by spaces. `copy` a message, `retry`
   * (answer again), `edit` a message, copy `code`, copy a `table` as Markdown or CSV. After a failure users can always
   * try again.
   */
  actions: string;
  /**
   * Shows thumbs on answers, and a rating fires `agent-chat-feedback`; `off` shows none. Default: as the agent's `chat` says,
   * else they are there if the agent has `onFeedback`. For any other agent, ratings go nowhere unless your page listens.
   * @see [Feedback](docs/customize.md#feedback)
   */
  feedback: boolean | undefined;
  /**
   * A sentence below the composer, instead of the agent's `chat.disclaimer`. May contain links and bold text in
   * Markdown. For example: "Answers may be wrong."
   */
  disclaimer: string;
  /**
   * Your own texts instead of the built-in ones.
   * @see [Languages](docs/customize.md#languages)
   */
  strings: StringsOverride | undefined;
  /**
   * Draw blocks of an answer yourself, by the language of the code fence or by delimiter.
   * @see [Blocks of your own](docs/customize.md#blocks-of-your-own)
   */
  renderers: BlockRenderers | undefined;
  /**
   * Draw tool calls yourself, by the name of the tool.
   * @see [Tool calls of your own](docs/customize.md#tool-calls-of-your-own)
   */
  toolRenderers: ToolRenderers | undefined;
  /**
   * Buttons beside the text field.
   * @see [Buttons in the composer](docs/customize.md#buttons-in-the-composer)
   */
  composerActions: readonly ComposerAction[] | undefined;
  /**
   * Buttons below each answer, after those of the chat.
   * @see [Buttons below answers](docs/customize.md#buttons-below-answers)
   */
  messageActions: readonly MessageAction[] | undefined;
  /**
   * Draw a header above messages: a name, an avatar.
   * @see [Names and avatars](docs/customize.md#names-and-avatars)
   */
  messageHeader: MessageHeader | undefined;
}

/** Properties of `<agent-chat>`. */
export interface ChatProperties extends SharedProperties {
  /**
   * Level of the headings that screen readers find at each message ("You said", "Ada said"). `auto`: `2` on a page of
   * its own, else `3`. The agent's name is a heading one level above, and those in answers begin one level below.
   */
  headingLevel: "auto" | "2" | "3" | "4" | "5";
  /** Fills the viewport. */
  page: boolean;
  /** Leaves out the title and borders, for a frame that has its own. */
  embed: boolean;
}

/** Properties of `<agent-chat-launcher>`. */
export interface LauncherProperties extends SharedProperties {
  /** The corner. `end` is the right side in languages that run from left to right. */
  position: "bottom-end" | "bottom-start" | "top-end" | "top-start";
  /** The picture on the button. An image of your own goes into the slot `launcher-icon`. A URL is refused. */
  icon: "chat" | "spark" | "question";
  /** Size of the button: 56, 48 or 64 pixels. */
  size: "medium" | "small" | "large";
  /** A few words beside the icon. Screen readers read them as the name of the button. */
  label: string;
  /**
   * Keys that open and close the chat, such as `Ctrl+Shift+K` (Ctrl or ⌘). Default: none.
   * @see [Control the button](docs/widget.md#control-the-button)
   */
  shortcut: string;
  /**
   * Milliseconds until the chat opens by itself, once per session, without moving the focus, and never on a small
   * screen.
   * @see [Preview and opening by itself](docs/widget.md#preview-and-opening-by-itself)
   */
  autoOpen: number | string | null;
  /** A few words in a bubble beside the closed button. */
  preview: string;
  /**
   * Milliseconds until the bubble appears. Default: `3000`.
   * @see [Preview and opening by itself](docs/widget.md#preview-and-opening-by-itself)
   */
  previewAfter: number | string | null;
}

/** A message that the page adds to the conversation. */
export interface AddedMessage {
  /** Markdown. */
  readonly text: string;
  /** The name of the speaker, shown above the message. Default: the agent, without a name. */
  readonly name?: string | undefined;
}

/** `<agent-chat>`: a conversation with the agent of one Parley server. */
export interface AgentChat extends HTMLElement, ChatProperties {
  /** Resolves when what was set so far has been drawn. */
  readonly updateComplete: Promise<boolean>;
  /**
   * Sends a message as if the user had typed it. Resolves when the answer has ended, however it ended; stays pending
   * while the message waits for a key or the network, or the element is out of the page; resolves if it is withdrawn or
   * cleared by `reset()`. Rejects if another answer is running, the text is empty or the user has to
   * sign in. If the server finds that out first, the message goes back into the text field, and the promise resolves.
   */
  send(text: string): Promise<void>;
  /**
   * Adds a message of your page after the last one, or after the running answer. The server and the agent never
   * learn of it. Resolves to its id. Rejects if the text is empty, or if another conversation is shown before the answer has
   * ended.
   * @see [Messages of your page](docs/customize.md#messages-of-your-page)
   */
  addMessage(message: AddedMessage): Promise<string>;
  /** Answers all tool calls that wait for approval, in place of the card. Resolves and rejects like `send`. */
  decide(decisions: readonly ApprovalDecision[]): Promise<void>;
  /** Stops the running answer, or one that is about to start. The text so far stays. */
  stop(): void;
  /** Starts a new conversation, which cannot be undone. Resolves when the server has forgotten the old one. */
  reset(): Promise<void>;
  /**
   * Ends running answers, forgets `userToken` and all that the browser keeps of the user, also in other tabs. Resolves
   * when nothing is left.
   * @see [Your users](docs/widget.md#your-users)
   */
  signOut(): Promise<void>;
  /** Puts the cursor into the text field, or into the field for the key. */
  focusComposer(): void;
  /** Replaces the text that is being written, with long texts that were pasted. The user sends it. */
  setDraft(text: string): void;
  /** Adds `File`s to the next message. Resolves when they are read; the chat itself says which are refused. */
  attach(files: Iterable<File>): Promise<void>;
  /** Resolves to the conversation as `"markdown"` or `"json"`, without what `thinking` and `tools` hide. */
  exportTranscript(format: TranscriptFormat): Promise<string>;
  /**
   * Offers messages to send with one click, in place of those that the agent offers, until one is sent or a new
   * conversation starts. An empty list removes them.
   */
  suggest(texts: Iterable<string>): void;
}

/** `<agent-chat-launcher>`: a round button in the corner that opens the chat in a panel. */
export interface AgentChatLauncher extends HTMLElement, LauncherProperties {
  /** Resolves when what was set so far has been drawn. */
  readonly updateComplete: Promise<boolean>;
  /** Whether the panel is open. */
  readonly opened: boolean;
  /** The chat in the panel, once it has been opened for the first time. */
  readonly chat: AgentChat | null;
  /** Opens the panel and puts the cursor into it. Resolves when both are done. */
  open(): Promise<void>;
  /** Closes the panel. The focus returns to where it was. */
  close(): void;
  /** Opens the panel if it is closed, and closes it if it is open. */
  toggle(): Promise<void>;
  /** As `signOut()` of the chat, which it loads for that. */
  signOut(): Promise<void>;
}

/** The server has described its agent; the chat can be used. */
export interface AgentChatReadyEvent extends Event {
  /** The server's description of its agent: the answer of `GET /api/info`. */
  readonly info: AgentInfo;
}

/** The user sent a message. */
export interface AgentChatMessageEvent extends Event {
  /** As it was sent. */
  readonly text: string;
  /** Number of attached files. */
  readonly attachmentCount: number;
}

/** A piece of the answer's text has arrived, as the server sent it. */
export interface AgentChatTokenEvent extends Event {
  /**
   * Markdown. The pieces of an answer together are its text, unless the server corrects it at the end:
   * `agent-chat-done` has the whole text.
   */
  readonly text: string;
  /** Identifies the answer within its conversation, like the `messageId` of `agent-chat-feedback`. */
  readonly messageId: string;
}

/**
 * A tool was called (`status` is `running`), its call needs approval (`waiting`), or the call has ended (`completed`,
 * `failed` or `stopped`).
 */
export interface AgentChatToolEvent extends Event {
  /** The call's id: the same in all events of the call. */
  readonly callId: string;
  /** The tool's name. */
  readonly tool: string;
  /** Shown to users in place of the tool's name: a text, or texts by language. */
  readonly title: string | Readonly<Record<string, string>> | undefined;
  /** `stopped`: the answer ended before the tool did. `waiting`: the call needs the user's approval. */
  readonly status: "running" | "completed" | "failed" | "stopped" | "waiting";
  /** JSON, as the model wrote it. */
  readonly arguments: string;
  /** Absent while the call runs, and when it was stopped. */
  readonly output: string | undefined;
  /** Present if the call needs approval: what the user is asked, and until when (an ISO 8601 date). */
  readonly approval: ToolCall["approval"];
  /** Present if the call waits again because the server refused its changed arguments: what is wrong with them. */
  readonly problems: ToolCall["problems"];
}

/** An answer ended. */
export interface AgentChatDoneEvent extends Event {
  /** The whole answer, as Markdown. */
  readonly text: string;
  /** `stopped` when the user stopped it; `approval_required` when tool calls wait for their approval. */
  readonly finishReason: FinishReason | "approval_required";
  /** Messages that the agent suggests to send next, shown below the answer; empty if there are none. */
  readonly suggestions: readonly string[];
}

/** An answer failed. */
export interface AgentChatErrorEvent extends Event {
  /** An error code of the server, or one of the element's own: `connection_lost`, `unreachable`, `unreadable`. */
  readonly code: ErrorCode | "connection_lost" | "unreachable" | "unreadable";
  /** A sentence for users. */
  readonly message: string;
  /** The id of the run in the server's log (`run_id`); absent when the server did not answer. */
  readonly reference: string | undefined;
}

/** The user rated an answer, gave a reason, or took the rating back. The last event about an answer counts. */
export interface AgentChatFeedbackEvent extends Event {
  /** Identifies the answer within its conversation, also after a reload. */
  readonly messageId: string;
  /** `null` when the user took the rating back. */
  readonly rating: "up" | "down" | null;
  /** Only with `down`, in the second event about it, and only if the user chose one. */
  readonly reason: FeedbackReason | undefined;
  /** The user's own words, if any: at most 2,000 characters. */
  readonly comment: string | undefined;
  /** The answer, as Markdown. */
  readonly answer: string;
}

/** Attributes and properties of `<agent-chat>` in a JSX template. */
export interface AgentChatProps extends Partial<ChatProperties> {
  "heading-level"?: ChatProperties["headingLevel"];
  "api-key"?: string;
}

/** Attributes and properties of `<agent-chat-launcher>` in a JSX template. */
export interface AgentChatLauncherProps extends Partial<LauncherProperties> {
  "auto-open"?: number | string;
  "preview-after"?: number | string;
}

/** Attributes and properties of each element in a template, by its tag. */
export interface ElementProps {
  "agent-chat": AgentChatProps;
  "agent-chat-launcher": AgentChatLauncherProps;
}

/** Listeners for the events of an element. Their names are a framework's prefix followed by the event's name. */
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
    "agent-chat-login-required": Event;
    "agent-chat-sign-out": Event;
    "agent-chat-open": Event;
    "agent-chat-close": Event;
  }
}
