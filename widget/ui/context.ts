/** The context that every part of the interface gets: texts, modes, and what the parts ask of the element around them. */

import type { Strings } from "../i18n/strings.ts";
import type { BlockRenderers } from "../markdown/renderers.ts";
import type { OutgoingMessage, SendOutcome } from "../session/chat-session.ts";
import type { Draft } from "../session/client.ts";
import type { AssistantMessage, Failure, UserMessage } from "../session/messages.ts";
import type { MessageAction, ToolRenderers } from "./extensions.ts";

/** `auto`: thoughts are open while they stream, tool calls are closed. The person's own choice always wins. */
export type StepMode = "auto" | "open" | "closed" | "hidden";

/** The attributes of the element that decide which parts are shown. */
export interface ChatModes {
  readonly thinking: StepMode;
  readonly tools: StepMode;
  /** Whether answers have thumbs. */
  readonly feedback: boolean;
}

/**
 * Actions of the person, and requests of the parts to the element around them. Parts call these and hold no session.
 */
export interface ChatActions {
  /** `replaces`: id of the message whose place it takes. */
  send(message: OutgoingMessage, options?: { readonly replaces?: string | undefined }): Promise<SendOutcome>;
  /** Sends what the server or the page has suggested. */
  sendSuggestion(text: string): void;
  stop(): void;
  /** Asks the last message again, in place of its answer. */
  retry(): void;
  /** Like `retry`, without what was said before: for a state that the server no longer has. */
  retryAfresh(): void;
  /** Puts a message into the composer, to be changed. One that was not sent yet is withdrawn and restored instead. */
  edit(message: UserMessage): void;
  /** Puts the last message into the composer, where the page lets messages be changed. */
  recall(): void;
  /** Leaves the message that is being changed as it was. */
  cancelEdit(): void;
  /** Another message is being changed, or none any more. */
  editingChanged(id: string | undefined): void;
  /** Keeps what is in the composer over a reload. */
  saveDraft(draft: Draft): void;
  /** Withdraws the message that waits for the connection. */
  withdraw(): void;
  /** Starts a new conversation. The one before can be brought back for a while. */
  closeConversation(): void;
  /** Brings back the conversation that was closed. */
  undo(): void;
  /** Tries again to load the form that asks for a key. */
  loadKeyPrompt(): void;
  /** Tries a key that the person has entered. */
  submitKey(key: string): void;
  /** Takes an answer with another `feedback`. Resolves with why the server did not take it, if it should have. */
  rate(message: AssistantMessage): Promise<Failure | undefined>;
  /** Has texts spoken when the reader pauses. */
  announce(...texts: string[]): void;
  /** Has a text spoken at once: for failures. */
  alert(text: string): void;
  toggleTheme(): void;
  /** Goes to the end of the conversation. */
  jumpToEnd(): void;
  /** To be called before something is opened or closed: the reader stays where they are. */
  holdScroll(): void;
}

/**
 * Is passed down as a property. The object is replaced only when something in it changes, so it costs nothing per
 * token, and a change of language redraws everything.
 */
export interface ChatContext {
  readonly strings: Strings;
  /** Name of the agent; until the server has said it, the text for an agent without a name. */
  readonly agent: string;
  readonly actions: ChatActions;
  readonly modes: ChatModes;
  /** The colours that the chat has. */
  readonly theme: "light" | "dark";
  /** What the button for the theme leads to. */
  readonly nextTheme: "auto" | "light" | "dark";
  /** Images of other servers: `ask` loads them when the reader asks for it, `none` never, because the page forbids it. */
  readonly images: "none" | "ask";
  /** Level of the heading of each message. */
  readonly headingLevel: number;
  /** The page's own, before the built-in ones. */
  readonly renderers: BlockRenderers;
  readonly toolRenderers: ToolRenderers;
  /** Buttons of the page below answers. */
  readonly messageActions: readonly MessageAction[];
}
