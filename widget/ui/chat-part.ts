/** The context that every part of the interface gets, and the base class of the parts. */

import { LitElement, type PropertyDeclarations, type ReactiveElement } from "lit";
import type { Strings } from "../i18n/strings.ts";
import type { BlockRenderers } from "../markdown/renderers.ts";
import type { OutgoingMessage, SendOutcome } from "../session/chat-session.ts";
import type { Draft } from "../session/client.ts";
import type { AssistantMessage, ToolBlock, UserMessage } from "../session/messages.ts";

/** `auto`: thoughts are open while they stream, tool calls are closed. The person's own choice always wins. */
export type StepMode = "auto" | "open" | "closed" | "hidden";

/** The attributes of the element that decide which parts are shown. */
export interface ChatModes {
  /** Name of the agent; until the server has said it, the text for an agent without a name. */
  readonly agent: string;
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
  /** Starts a new conversation. */
  reset(): void;
  /** Tries again to load the form that asks for a key. */
  loadKeyPrompt(): void;
  /** Tries a key that the person has entered. */
  submitKey(key: string): void;
  /** Takes an answer with another `feedback`. */
  rate(message: AssistantMessage): void;
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

/**
 * Is passed down as a property. The object is replaced only when something in it changes, so it costs nothing per
 * token, and a change of language redraws everything.
 */
export interface ChatContext {
  readonly strings: Strings;
  readonly actions: ChatActions;
  readonly modes: ChatModes;
  /** The colours that the chat has. */
  readonly theme: "light" | "dark";
  /** The page's own, before the built-in ones. */
  readonly renderers: BlockRenderers;
  readonly toolRenderers: ToolRenderers;
  readonly composerActions: readonly ComposerAction[];
}

/**
 * A part of `<agent-chat>` that is redrawn on its own. It renders into itself, so that the element has one shadow root:
 * its style sheets and the page's `::part` rules reach everything.
 */
export abstract class ChatPart extends LitElement {
  static override properties: PropertyDeclarations = { context: { attribute: false } };
  context!: ChatContext;

  protected override createRenderRoot(): this {
    return this;
  }

  /** Resolves when the parts inside have been drawn, too. */
  protected override async getUpdateComplete(): Promise<boolean> {
    const isComplete = await super.getUpdateComplete();
    await partsComplete(this);
    return isComplete;
  }
}

const PARTS = ["composer", "feedback", "key-prompt", "markdown", "message", "step", "steps"]
  .map((name) => `agent-chat-${name}`)
  .join();

/** Resolves when the parts inside an element or a root have been drawn, and theirs. */
export async function partsComplete(root: ParentNode): Promise<void> {
  // An element whose code is still to be loaded has nothing to wait for.
  const parts = root.querySelectorAll<Element & Partial<Pick<ReactiveElement, "updateComplete">>>(PARTS);
  await Promise.all(Array.from(parts, ({ updateComplete }) => updateComplete));
}
