/** What the parts of the interface ask for, done with the element's session, composer and controllers. */

import type { Composer } from "../composer/composer.ts";
import { failureText, type Strings } from "../i18n/strings.ts";
import type { SendOptions, SendOutcome, SendResult } from "../session/chat-session.ts";
import type { Client, Draft } from "../session/client.ts";
import type { OutgoingMessage } from "../session/conversation.ts";
import { type AssistantMessage, answerText, type Failure, type UserMessage } from "../session/messages.ts";
import type { Place } from "../session/tab-slot.ts";
import type { ChatActions } from "../ui/context.ts";
import type { Announcer } from "../ui/controllers/announcer.ts";
import type { ScrollPosition } from "../ui/controllers/scroll-position.ts";
import { hasTouchKeyboard } from "../ui/controls.ts";
import { fireEvent } from "./events.ts";
import type { ThemeWatcher } from "./theme.ts";

/** The element: what of it the actions use. */
export interface ActionsHost extends HTMLElement {
  readonly updateComplete: Promise<boolean>;
  readonly client: Client | undefined;
  readonly composer: Composer | null | undefined;
  readonly texts: Strings;
  readonly follow: "question" | "end";
  /** The attribute: what people can do with messages. */
  readonly actions: string;
  /** What the page offers to say next. */
  suggested: readonly string[];
  /** Id of the message that is being changed. */
  editing: string | undefined;
  stop(): void;
  closeConversation(): void;
  focusComposer(): void;
  loadKeyPrompt(): Promise<void>;
}

interface Controllers {
  readonly announcer: Announcer;
  readonly scroll: ScrollPosition;
  readonly theme: ThemeWatcher;
}

/** For the element and its parts. What the methods mean: `ChatActions`. */
export class ElementActions implements ChatActions {
  readonly #host: ActionsHost;
  readonly #controllers: Controllers;
  /** Brings back what was closed last. */
  #reopen = () => {};

  constructor(host: ActionsHost, controllers: Controllers) {
    this.#host = host;
    this.#controllers = controllers;
  }

  /** What an earlier page load has kept comes first: it would take the place of the message. */
  async send(message: OutgoingMessage, options?: SendOptions): Promise<SendOutcome> {
    return (await this.#admit()) ?? this.sendNow(message, options).outcome;
  }

  /** Resolves with the reason why the session can do nothing now, if there is one. */
  async #admit(): Promise<SendOutcome | undefined> {
    const { client } = this.#host;
    const refusal = await client?.admit();
    await client?.keeper.restored;
    // The element has another server now, or has left the page.
    if (client !== this.#host.client || !this.#host.isConnected) return "busy";
    if (!refusal) return undefined;
    // In place of a conversation that is not shown stands an alert already.
    if (!client?.isHidden || !client.refusal) this.alert(failureText(refusal, this.#host.texts));
    return "refused";
  }

  /** Sends a message, with its event, when an earlier conversation has been restored. See `ChatSession.send`. */
  sendNow(message: OutgoingMessage, options?: SendOptions): SendResult {
    const host = this.#host;
    const sent = host.client?.session.send(message, options) ?? { outcome: "busy", ended: Promise.resolve() };
    if (sent.outcome !== "accepted") return sent;
    const { edited, answering } = host.texts;
    if (options?.replaces !== undefined) this.announce(`${edited} ${answering}`);
    host.suggested = [];
    void this.#showNewExchange();
    const { text, attachments } = message;
    fireEvent(host, "agent-chat-message", { text, attachmentCount: attachments.length });
    return sent;
  }

  sendSuggestion(text: string): void {
    void this.send({ text, attachments: [], files: [] });
    // Its keyboard would cover the answer.
    if (hasTouchKeyboard()) this.#host.composer?.blur();
    else this.#host.focusComposer();
  }

  stop(): void {
    this.#host.stop();
  }

  async retry(options?: { readonly afresh: boolean }): Promise<void> {
    if (await this.#admit()) return;
    void this.#host.client?.session.retry(options);
    void this.showNewAnswer();
  }

  retryAfresh(): void {
    void this.retry({ afresh: true });
  }

  edit(message: UserMessage): void {
    const { client, composer } = this.#host;
    const unsent = client?.session.withdraw();
    if (unsent) composer?.restoreUnsent(unsent);
    else if (client?.session.canEdit(message)) composer?.edit(message, client.session.outgoing(message));
  }

  recall(): void {
    const { client, actions } = this.#host;
    const question = client?.session.lastQuestion;
    if (!question || !/all|edit/.test(actions)) return;
    this.edit(question);
    this.#controllers.scroll.revealMessage(question.id);
  }

  cancelEdit(): void {
    this.#host.composer?.cancelEdit();
  }

  editingChanged(id: string | undefined): void {
    this.#host.editing = id;
  }

  saveDraft(draft: Draft): void {
    this.#host.client?.keeper.saveDraft(draft);
  }

  withdraw(): void {
    this.#host.client?.session.withdraw();
  }

  closeConversation(): void {
    const host = this.#host;
    const { suggested, editing, composer, client } = host;
    const draft = editing === undefined ? undefined : composer?.draft;
    host.closeConversation();
    this.announce(host.texts.closed, host.texts.undo);
    host.focusComposer();
    this.#reopen = () => {
      client?.undo();
      host.suggested = suggested;
      const edited = client?.session.messages.find(({ id }) => id === editing);
      if (!composer || draft === undefined || edited?.role !== "user" || !client?.session.canEdit(edited)) return;
      composer.edit(edited, client.session.outgoing(edited));
      composer.draft = draft;
    };
  }

  undo(): void {
    this.#reopen();
    this.#host.focusComposer();
    this.jumpToEnd();
    void this.showNewAnswer();
  }

  loadKeyPrompt(): void {
    void this.#host.loadKeyPrompt();
  }

  submitKey(key: string): void {
    void this.#host.client?.submitKey(key);
  }

  async rate(message: AssistantMessage): Promise<Failure | undefined> {
    const { client } = this.#host;
    client?.session.rate(message);
    const { id: messageId, feedback } = message;
    const { rating = null, reason, comment } = feedback ?? {};
    fireEvent(this.#host, "agent-chat-feedback", { messageId, rating, reason, comment, answer: answerText(message) });
    return client?.sendFeedback(message);
  }

  announce(...texts: string[]): void {
    this.#controllers.announcer.say(...texts);
  }

  alert(text: string): void {
    this.#controllers.announcer.interrupt(text);
  }

  toggleTheme(): void {
    this.#controllers.theme.toggle();
  }

  jumpToEnd(): void {
    this.#controllers.scroll.follow();
  }

  holdScroll(): void {
    this.#controllers.scroll.hold();
  }

  /** Has the message at the top whose answer begins again, or goes on after a reload. */
  async showNewAnswer(options?: { readonly glides: boolean }): Promise<void> {
    await this.#host.updateComplete;
    const { follow, client } = this.#host;
    if (follow === "question" && client?.session.busy) this.#controllers.scroll.anchorLastExchange(options);
  }

  /** After a reload: the message whose answer goes on, or the place that was left. */
  async showRestored(place: Place | undefined): Promise<void> {
    await this.showNewAnswer({ glides: false });
    if (place && !this.#host.client?.session.busy) this.#controllers.scroll.returnTo(place);
  }

  async #showNewExchange(): Promise<void> {
    await this.#host.updateComplete;
    if (this.#host.follow === "question") this.#controllers.scroll.anchorLastExchange();
    else this.jumpToEnd();
  }
}
