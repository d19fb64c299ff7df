/** The context that every part of the interface gets: texts, modes, and what the parts ask of the element around them. */

import type { TemplateResult } from "lit";
import type { SendOutcome } from "../conversations/chat-session.ts";
import type { OutgoingMessage } from "../conversations/conversation.ts";
import type { AssistantMessage, Failure, Message, ToolBlock, UserMessage } from "../conversations/messages.ts";
import type { Strings } from "../i18n/strings.ts";
import type { MayLoadImages } from "../markdown/render-inline.ts";
import type { BlockRenderers } from "../markdown/renderers.ts";
import type { MessageAction, MessageHeader, ToolRenderers } from "./extensions.ts";

/** `auto`: thoughts are open while they stream, tool calls are closed. The person's own choice always wins. */
export type StepMode = "auto" | "open" | "closed" | "hidden";

/** The attributes of the element that decide which parts are shown. */
export interface ChatModes {
  readonly thinking: StepMode;
  readonly tools: StepMode | "titles";
  /** Whether answers have thumbs. */
  readonly feedback: boolean;
}

/** What the screen shows of the agent: as the server says it, or as its owner has it, in the reader's language. */
export interface ShownAgent {
  readonly name: string;
  readonly agent: string;
  readonly welcome?: string | undefined;
  readonly disclaimer?: string | undefined;
  /** What a button says, with what it sends, where that is something else. */
  readonly suggestions: readonly (string | readonly string[])[];
  /** Below the disclaimer. */
  readonly links?: TemplateResult | undefined;
  /** The way in, where the agent has to know its users. */
  readonly signIn?: TemplateResult | undefined;
  /** The name of the user, below everything. */
  readonly who?: TemplateResult | undefined;
  /** In place of the mark. */
  readonly logo?: TemplateResult | undefined;
}

/** What the screen knows of the list of conversations. */
export interface ListView {
  readonly count: number;
  /** Without the one that is shown. */
  readonly others: number;
  /** Where it is not a column. */
  readonly isOpen: boolean;
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
  /**
   * Asks the last message again, in place of its answer; `afresh` without what was said before, for a state that the server no
   * longer has.
   */
  retry(options?: { readonly afresh: boolean }): void;
  /** Has the last answer go on where it was cut. */
  continue(): void;
  /** Brings another message that stands in the place of this one into sight, with all that follows it. */
  switchTo(message: Message, id: string): Promise<void>;
  /** Has a message changed in its place. One that was not sent yet is withdrawn, and is in the composer then. */
  edit(message: UserMessage): Promise<void>;
  /** Has the last message changed, where the page lets messages be changed. */
  recall(): void;
  /** Shows the message again that is being changed: it was sent again, or is left as it was. */
  endEdit(): void;
  /** Keeps what is being written over a reload. */
  saveDraft(): void;
  /** Withdraws the message that waits for the connection. */
  withdraw(): void;
  /** Sends what is queued. `asked`: these, by their ids, now, in place of the rest of the answer. */
  sendQueued(asked?: readonly string[]): Promise<void>;
  /** Takes a queued message out; to be changed, it goes into the composer, or stays if it has too many files for that. */
  takeOut(id: string, toChange: boolean): Promise<void>;
  /** Starts a new conversation. The one before can be brought back for a while, or stays in the list. */
  closeConversation(): void;
  /** Shows a conversation of the list, or a new one. */
  openConversation(id: string | undefined): Promise<void>;
  /** Opens or closes the list of conversations, where it is not a column. */
  toggleList(): void;
  /** The list has entries, or has none; and some besides what is shown, or none. */
  listed(count: number, others: number): void;
  /** Brings back the conversation that was closed. */
  undo(): void;
  /** Tries again to load the form that asks for a key. */
  loadKeyPrompt(): void;
  /** Tries a key that the person has entered. */
  submitKey(key: string): void;
  /** Takes an answer with another `feedback`. Resolves with why the server did not take it, if it should have. */
  rate(message: AssistantMessage): Promise<Failure | undefined>;
  /** Keeps the decision about a call that waits, or takes it back. The last one that is missing sends them all. */
  decide(callId: string, decision: ToolBlock["decision"]): Promise<void>;
  /** Puts the focus on what asks for a decision, if anything does. */
  goToApproval(): boolean;
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
  readonly images: MayLoadImages;
  /** Level of the heading of each message. */
  readonly headingLevel: number;
  /** The page's own, before the built-in ones. */
  readonly renderers: BlockRenderers;
  readonly toolRenderers: ToolRenderers;
  readonly messageHeader: MessageHeader | undefined;
  /** Buttons of the page below answers. */
  readonly messageActions: readonly MessageAction[];
}
