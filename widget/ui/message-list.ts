import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { answerText, type Exchange, exchangesOf, type Message, type UserMessage } from "../session/messages.ts";
import { ChatPart } from "./chat-part.ts";
import { loadFeedback } from "./lazy-parts.ts";
import type { MessageElement } from "./message.ts";

/** Drawn in one go, but one message at least: some 7 ms of work, and 30 on a phone. */
const CHARACTERS_AT_A_TIME = 2_000;

/** The conversation. Messages are immutable, so of all of them only the one that has changed is redrawn. */
export class MessageList extends ChatPart {
  static override properties = {
    messages: { attribute: false },
    isBusy: { attribute: false },
    isQueued: { attribute: false },
    canRetry: { attribute: false },
    canEdit: { attribute: false },
    editing: { attribute: false },
    unsent: { attribute: false },
    wasCut: { attribute: false },
    isNotKept: { attribute: false },
    firstDrawn: { state: true },
  };
  messages: readonly Message[] = [];
  /** Whether a message is being answered. */
  isBusy = false;
  /** Whether the last message waits for the connection. */
  isQueued = false;
  /** Whether another answer to the last message can be asked for. */
  canRetry = false;
  /** Whether a message can be changed. */
  canEdit: (message: UserMessage) => boolean = () => false;
  /** Id of the message that is being changed. */
  editing: string | undefined;
  /** Characters of the last message that have not been sent yet; infinite where the browser does not say how many. */
  unsent: () => number = () => 0;
  /** Whether older messages were left out when the conversation was stored. */
  wasCut = false;
  /** Whether nothing will be there after a reload, although the page wants it to be. */
  isNotKept = false;
  /**
   * The first message that is drawn, by its place. A long conversation appears from its end, and the rest of it in
   * pieces: drawn at once it would hold the page up.
   */
  private firstDrawn: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Ends the loading of the thumbs; absent before they are wanted. */
  #loading: AbortController | undefined;

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearTimeout(this.#timer);
    this.#loading?.abort();
    this.#loading = undefined;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.requestUpdate();
  }

  /** The element of a message. */
  find(id: string): MessageElement | undefined {
    return [...this.querySelectorAll<MessageElement>("agent-chat-message")].find(({ message }) => message.id === id);
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    const { messages } = this;
    if (messages.length === 0) this.firstDrawn = undefined;
    else if (changed.has("messages")) this.firstDrawn ??= this.#pieceBefore(messages.length);
  }

  protected override updated(): void {
    if (this.context.modes.feedback) this.#loadFeedback();
    clearTimeout(this.#timer);
    const { firstDrawn } = this;
    if (!firstDrawn) return;
    this.#timer = setTimeout(() => {
      this.firstDrawn = this.#pieceBefore(Math.min(firstDrawn, this.messages.length));
    });
  }

  #loadFeedback(): void {
    if (this.#loading || !this.isConnected) return;
    this.#loading = new AbortController();
    void loadFeedback(this.#loading.signal);
  }

  /** Resolves when the messages have been drawn, too. */
  protected override async getUpdateComplete(): Promise<boolean> {
    const isComplete = await super.getUpdateComplete();
    const messages = [...this.querySelectorAll<MessageElement>("agent-chat-message")];
    await Promise.all(messages.map(({ updateComplete }) => updateComplete));
    return isComplete;
  }

  protected override render(): TemplateResult {
    const drawn = this.messages.slice(this.firstDrawn);
    return html`
      ${this.wasCut ? this.#renderNote(this.context.strings.earlierCut) : nothing}
      ${this.isNotKept ? this.#renderNote(this.context.strings.notKept) : nothing}
      ${repeat(
        exchangesOf(drawn),
        ({ id }) => id,
        (exchange) => this.#renderExchange(exchange),
      )}
    `;
  }

  #renderNote(text: string): TemplateResult {
    return html`<p part="note" class="note">${text}</p>`;
  }

  #renderExchange({ messages }: Exchange): TemplateResult {
    return html`<section class="exchange">
      ${repeat(
        messages,
        ({ id }) => id,
        (message) => this.#renderMessage(message),
      )}
    </section>`;
  }

  #renderMessage(message: Message): TemplateResult | typeof nothing {
    const isLast = message === this.messages.at(-1);
    const isLastQuestion = message === this.messages.findLast(({ role }) => role === "user");
    const isQueued = this.isQueued && (isLast || isLastQuestion);
    // Its question is not even sent.
    if (message.role === "assistant" && isQueued) return nothing;
    return html`<agent-chat-message
      .context=${this.context}
      .message=${message}
      .canRetry=${isLast && this.canRetry}
      .canEdit=${message.role === "user" && (isQueued || this.canEdit(message))}
      .isQueued=${isQueued}
      .isEditing=${message.id === this.editing}
      .isSending=${isLastQuestion && this.isBusy}
      .unsent=${this.unsent}
    ></agent-chat-message>`;
  }

  /** Where the piece begins that ends before a message. It has whole exchanges. */
  #pieceBefore(end: number): number {
    let first = end;
    for (let characters = 0; first > 0 && !(characters >= CHARACTERS_AT_A_TIME && this.#isQuestion(first)); ) {
      const message = this.messages[--first];
      if (message) characters += message.role === "user" ? message.text.length : answerText(message).length;
    }
    return first;
  }

  #isQuestion(index: number): boolean {
    return this.messages[index]?.role === "user";
  }
}
