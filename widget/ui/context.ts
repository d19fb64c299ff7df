/** The context of every part of the interface: texts, modes, and the actions that the surrounding element provides. */

import type { TemplateResult } from "lit";
import type { SendOutcome } from "../conversations/chat-session.ts";
import type { OutgoingMessage } from "../conversations/conversation.ts";
import type { AssistantMessage, Failure, Message, ToolBlock, UserMessage } from "../conversations/messages.ts";
import type { Strings } from "../i18n/strings.ts";
import type { MayLoadImages } from "../markdown/render-inline.ts";
import type { BlockRenderers } from "../markdown/renderers.ts";
import type { MessageAction, MessageHeader, ToolRenderers } from "./extensions.ts";

/** `auto`: thoughts are open while they stream, tool calls are closed. The user's own choice always wins. */
export type StepMode = "auto" | "open" | "closed" | "hidden";

/** The attributes of the element that decide which parts are shown. */
export interface ChatModes {
  readonly thinking: StepMode;
  readonly tools: StepMode | "titles";
  /** Whether answers have thumbs. */
  readonly feedback: boolean;
}

/** What the screen shows about the agent: sent by the server or set by its owner, in the user's language. */
export interface ShownAgent {
  readonly name: string;
  readonly agent: string;
  readonly welcome?: string | undefined;
  readonly disclaimer?: string | undefined;
  /** Each a message, or the label of a button followed by the message that it sends. */
  readonly suggestions: readonly (string | readonly string[])[];
  /** Shown below the disclaimer. */
  readonly links?: TemplateResult | undefined;
  /** The card for signing in, if the agent requires that. */
  readonly signIn?: TemplateResult | undefined;
  /** The user's name, shown below everything else. */
  readonly who?: TemplateResult | undefined;
  /** Shown in place of the built-in mark. */
  readonly logo?: TemplateResult | undefined;
}

/** State of the list of conversations. */
export interface ListView {
  readonly count: number;
  /** Number of conversations besides the one that is shown. */
  readonly others: number;
  /** Whether the list is open over the chat, where it is not a column. */
  readonly isOpen: boolean;
}

/** Actions of the user, and requests of the parts to the element around them. */
export interface ChatActions {
  /** `replaces`: id of the message that the new one replaces. */
  send(message: OutgoingMessage, options?: { readonly replaces?: string | undefined }): Promise<SendOutcome>;
  /** Sends a message that the server or the page has suggested. */
  sendSuggestion(text: string): void;
  stop(): void;
  /**
   * Sends the last message again, to replace its answer. With `afresh` it starts a new conversation, for a state that
   * the server no longer has.
   */
  retry(options?: { readonly afresh: boolean }): void;
  /** Continues the last answer where it was cut. */
  continue(): void;
  /** Shows an alternative to this message (by id), with everything that follows that one. */
  switchTo(message: Message, id: string): Promise<void>;
  /** Opens a message for editing in its place. A message not sent yet is withdrawn into the composer instead. */
  edit(message: UserMessage): Promise<void>;
  /** Opens the last message for editing, if the page allows that. */
  recall(): void;
  /** Closes the editor of a message, which was sent again or is left as it was. */
  endEdit(): void;
  /** Saves what is being written, so that it survives a reload. */
  saveDraft(): void;
  /** Withdraws the message that waits for the connection. */
  withdraw(): void;
  /** Sends the queued messages. `asked`: ids of those to send at once, which stops the current answer. */
  sendQueued(asked?: readonly string[]): Promise<void>;
  /** Removes a queued message. `toChange` moves it into the composer, unless it has too many files for that. */
  takeOut(id: string, toChange: boolean): Promise<void>;
  /** Starts a new conversation. The previous one stays in the list, or `undo` brings it back for a while. */
  closeConversation(): void;
  /** Shows a conversation of the list, or a new one. */
  openConversation(id: string | undefined): Promise<void>;
  /** Opens or closes the list of conversations, where it is not a column. */
  toggleList(): void;
  /** Reports the number of conversations in the list: all, and those besides the one that is shown. */
  listed(count: number, others: number): void;
  /** Brings back the conversation that was closed. */
  undo(): void;
  /** Loads the form that asks for a key, after that has failed. */
  loadKeyPrompt(): void;
  /** Tries a key that the user has entered. */
  submitKey(key: string): void;
  /** Stores an answer with changed `feedback` and sends that. Resolves with the failure if the server refused it. */
  rate(message: AssistantMessage): Promise<Failure | undefined>;
  /** Sets the decision about a waiting call, or withdraws it. All are sent once each waiting call has one. */
  decide(callId: string, decision: ToolBlock["decision"]): Promise<void>;
  /** Focuses the card that asks for a decision. Returns whether there is one. */
  goToApproval(): boolean;
  /** Has a screen reader speak texts when it pauses (polite). */
  announce(...texts: string[]): void;
  /** Has a screen reader speak a text at once (assertive): for failures. */
  alert(text: string): void;
  toggleTheme(): void;
  /** Goes to the end of the conversation. */
  jumpToEnd(): void;
  /** Must be called before something opens or closes, to keep the reader's scroll position. */
  holdScroll(): void;
}

/**
 * Passed down as a property. The object is replaced only when something in it changes, so it costs nothing per
 * token, and a change of language redraws everything.
 */
export interface ChatContext {
  readonly strings: Strings;
  /** Name of the agent. Until the server has sent it, the text for an agent without a name. */
  readonly agent: string;
  readonly actions: ChatActions;
  readonly modes: ChatModes;
  /** The theme that is shown. */
  readonly theme: "light" | "dark";
  /** The theme that the theme button switches to. */
  readonly nextTheme: "auto" | "light" | "dark";
  readonly images: MayLoadImages;
  /** Level of the heading of each message. */
  readonly headingLevel: number;
  /** The page's own renderers, which take precedence over the built-in ones. */
  readonly renderers: BlockRenderers;
  readonly toolRenderers: ToolRenderers;
  readonly messageHeader: MessageHeader | undefined;
  /** Buttons of the page below answers. */
  readonly messageActions: readonly MessageAction[];
}
