/** Carries out what the parts of the interface ask for, with the element's session, composer and controllers. */

import { Composer } from "../composer/composer.ts";
import type { SendOptions, SendOutcome, SendResult } from "../conversations/chat-session.ts";
import type { OutgoingMessage } from "../conversations/conversation.ts";
import {
  type AssistantMessage,
  answerText,
  type Failure,
  type Message,
  type ToolBlock,
  type UserMessage,
} from "../conversations/messages.ts";
import type { Draft, EditedMessage, Place } from "../conversations/tab-slot.ts";
import { failureText, type Strings } from "../i18n/strings.ts";
import { lazy, whenIdle } from "../loading/lazy.ts";
import { adoptSheets } from "../styles/adopt.ts";
import type { ChatActions, ListView } from "../ui/context.ts";
import type { Announcer } from "../ui/controllers/announcer.ts";
import { hasTouchKeyboard } from "../ui/controls.ts";
import { fileNotes, lateStyles, waysOn } from "../ui/lazy-parts.ts";
import type { Talk } from "../ui/talk.ts";
import type { EditHost, EditInPlace } from "./edit-in-place.ts";
import { fireEvent } from "./events.ts";
import type { ThemeWatcher } from "./theme.ts";

/** The members of the element that the actions use. */
export interface ActionsHost extends EditHost {
  readonly texts: Strings;
  readonly follow: "question" | "end";
  /** Messages that the page suggests to send next. */
  suggested: readonly string[];
  list: ListView;
  /** Draws the conversation; absent until its code is loaded. */
  readonly talk: Talk | undefined;
  readonly talkReady: Promise<Talk>;
  /** Whether the browser keeps all conversations. */
  readonly keepsAll: boolean;
  stop(): void;
  closeConversation(): void;
  leaveConversation(): void;
  loadKeyPrompt(): Promise<void>;
}

interface Controllers {
  readonly announcer: Announcer;
  readonly theme: ThemeWatcher;
}

/** How long the note about another tab stays: the user first has to read what is new. */
const ELSEWHERE_FOR_MS = 12_000;

const NOT_SENT: SendResult = { outcome: "busy", ended: Promise.resolve() };

/** For messages that wait for the end of an answer. */
const queue = lazy(() => import("../conversations/send-queued.ts"), "sendQueued");

/** For editing messages. */
const editing = lazy(() => import("./edit-in-place.ts"), "EditInPlace");

/** The actions for the element and its parts. `ChatActions` documents the methods. */
export class ElementActions implements ChatActions {
  readonly #host: ActionsHost;
  readonly #controllers: Controllers;
  #editing: EditInPlace | undefined;
  /** Brings back the conversation that was closed last. */
  #reopen = () => {};
  /** How often another conversation was opened. */
  #opened = 0;
  /** `#opened` for the conversation whose decisions are about to be sent. They can still change until then. */
  #deciding: number | undefined;

  constructor(host: ActionsHost, controllers: Controllers) {
    this.#host = host;
    this.#controllers = controllers;
    // Preloaded: a press must open an editor at once, even offline. Screen keyboards open only right after a press.
    void host.talkReady.then(() =>
      whenIdle(() => {
        void editing.loadEventually();
        // Preloaded, too: a file may be refused, or an answer fail, because nothing can be loaded any more.
        void fileNotes.loadEventually();
        void waysOn.loadEventually();
        void lateStyles.loadEventually().then((it) => it && adoptSheets(host.shadowRoot as ShadowRoot, it.lateSheets));
      }),
    );
  }

  /** Waits until an earlier conversation is restored, which would otherwise replace the message. */
  async send(message: OutgoingMessage, options?: SendOptions): Promise<SendOutcome> {
    const { client } = this.#host;
    // The state at the press counts: an answer may end while storage is read.
    if (client?.session.busy) {
      if (options?.replaces !== undefined) return "busy";
      if (client.session.status !== "stopping") {
        if (!client.session.queue(message)) return "full";
        // The text field keeps the message until it is stored.
        await client.library.stored;
        return "accepted";
      }
      await client.session.ended;
    }
    const reason = await this.#admit();
    if (reason) {
      // The button to sign in, if there is one.
      void this.#focus(".way-in");
      return reason;
    }
    const { outcome } = await this.sendNow(message, options);
    this.#said(outcome);
    return outcome;
  }

  async sendQueued(asked?: readonly string[]): Promise<void> {
    const { client } = this.#host;
    const module = await queue.load().catch(() => undefined);
    if (!client) return;
    const { session } = client;
    const isReady = () => session === client.session && client.isReady;
    const admit = async () => {
      // The end of the previous answer is announced first.
      await this.#host.updateComplete;
      return this.#admit();
    };
    const send = (message: OutgoingMessage) => this.sendNow(message, { isUnasked: !asked });
    await module?.sendQueued(session, { asked, isReady, admit, send });
  }

  async takeOut(id: string, toChange: boolean): Promise<void> {
    const module = await queue.load().catch(() => undefined);
    const { client, composer } = this.#host;
    if (client && composer) await module?.takeOut(client.session, id, toChange ? composer : undefined);
  }

  /** Resolves to the reason if nothing can be sent now. Announces a refusal of the server. */
  async #admit(): Promise<SendOutcome | undefined> {
    const { client, texts } = this.#host;
    const opened = this.#opened;
    const refusal = await client?.admit();
    await client?.library.restored;
    // A file that has not been read yet would be lost.
    await client?.library.filled;
    // The element has another server or conversation now, or has left the page.
    const isOver = !client || client !== this.#host.client || !this.#host.isConnected || opened !== this.#opened;
    if (isOver) return "busy";
    if (refusal) this.alert(failureText(refusal, texts));
    return refusal && "refused";
  }

  /** If another tab has continued the conversation: shows that at the text field, and announces it. */
  #said(outcome: SendOutcome | undefined): void {
    if (outcome !== "elsewhere") return;
    const { texts, composer } = this.#host;
    this.alert(texts.wentOnElsewhere);
    composer?.note(texts.wentOnElsewhere, ELSEWHERE_FOR_MS);
  }

  /**
   * Sends a message and fires its event. To be called once an earlier conversation is restored. See `ChatSession.send`.
   * With `isUnasked`, a reader who has not seen the end of the previous answer stays there.
   */
  async sendNow(
    message: OutgoingMessage,
    options?: SendOptions & { readonly isUnasked?: boolean },
  ): Promise<SendResult> {
    const host = this.#host;
    const sent = (await host.client?.session.send(message, options)) ?? NOT_SENT;
    if (sent.outcome !== "accepted") return sent;
    if (options?.replaces !== undefined) this.announce(host.texts.edited);
    host.suggested = [];
    const { text, attachments, queued } = message;
    if (queued) this.announce(host.texts.nextAnswering);
    void this.#showNewExchange(options?.isUnasked && host.talk?.scroll.isAway);
    fireEvent(host, "agent-chat-message", { text, attachmentCount: attachments.length });
    return sent;
  }

  sendSuggestion(text: string): void {
    void this.send({ text, attachments: [], files: [] });
    // A screen keyboard would cover the answer.
    if (hasTouchKeyboard()) this.#host.composer?.blur();
    else this.#host.focusComposer();
  }

  stop(): void {
    this.#host.stop();
  }

  async retry(options?: { readonly afresh: boolean }): Promise<void> {
    if (await this.#admit()) return;
    void this.#host.client?.session.retry(options).then(({ outcome }) => this.#said(outcome));
    void this.showNewAnswer();
  }

  async continue(): Promise<void> {
    if (!(await this.#admit())) this.#said((await this.#host.client?.session.continue())?.outcome);
  }

  async switchTo(message: Message, id: string): Promise<void> {
    const { session } = this.#host.client ?? {};
    const { scroll } = await this.#host.talkReady;
    const top = scroll.topOf(message.id);
    if (!session || session.busy) return;
    if (!(await session.switchTo(id))) return this.#said("elsewhere");
    await this.#host.updateComplete;
    scroll.keepAt(top, id);
  }

  async edit(message: UserMessage): Promise<void> {
    // Taking back an unsent message needs no further code, so it also works offline.
    if (!(await this.takeBack())) await (await this.#editInPlace())?.edit(message);
  }

  /** Moves a message that was not sent yet back into the composer. Resolves to the message, if there is one. */
  async takeBack(): Promise<OutgoingMessage | undefined> {
    await this.#host.client?.library.filled;
    const { client, composer } = this.#host;
    const unsent = client?.session.withdraw();
    if (unsent) composer?.restoreUnsent(unsent);
    return unsent;
  }

  async recall(): Promise<void> {
    (await this.#editInPlace())?.recall();
  }

  async endEdit(): Promise<void> {
    await (await this.#editInPlace())?.end();
  }

  async giveUpEdit(editor: Composer): Promise<void> {
    (await this.#editInPlace())?.giveUp(editor);
  }

  /** Resolves to `undefined` if its code cannot be loaded now. */
  async #editInPlace(): Promise<EditInPlace | undefined> {
    const module = await editing.load().catch(() => undefined);
    if (module) this.#editing ??= new module.EditInPlace(this.#host, this);
    return this.#editing;
  }

  openEditor(edits: EditedMessage): Composer {
    const editor = new Composer();
    const { context } = this.#host.composer ?? {};
    Object.assign(editor, { context, edits });
    editor.setAttribute("part", "editor");
    this.#host.editor = editor;
    return editor;
  }

  /** Reopens the editor that an earlier page load has left open. */
  restoreEdit(edit: Draft["edit"]): void {
    if (!edit || this.#host.editor) return;
    const { text, files, ...edits } = edit;
    void this.openEditor(edits).restore({ text, files });
  }

  saveDraft(): void {
    const { client, composer, editor } = this.#host;
    if (!composer) return;
    const edit = editor?.edits && { ...editor.edits, ...editor.written };
    client?.library.saveDraft({ ...composer.written, edit });
  }

  withdraw(): void {
    this.#host.client?.session.withdraw();
  }

  /** Shows another conversation, or a new one. */
  async openConversation(id: string | undefined): Promise<void> {
    const host = this.#host;
    this.#opened += 1;
    // The draft may have been written before the server changed, so it is saved again.
    this.saveDraft();
    host.leaveConversation();
    if (id === undefined) this.announce(host.texts.startedOver);
    // After the drawing the list no longer covers the field. A screen keyboard would cover an opened conversation.
    const find = id !== undefined && hasTouchKeyboard() ? ".scroller" : "";
    void (find ? this.#focus(find) : host.updateComplete.then(() => host.focusComposer()));
    await host.client?.library.show(id);
    await host.updateComplete;
    this.jumpToEnd();
    await this.showRestored(undefined);
  }

  closeConversation(): void {
    const host = this.#host;
    if (host.keepsAll) {
      // The conversation is not removed: it becomes the first one in the list.
      if (!host.client?.library.isNotKept) return void this.openConversation(undefined);
    }
    const { suggested, editor, client } = host;
    host.closeConversation();
    this.announce(host.texts.closed, host.texts.undo);
    host.focusComposer();
    this.#reopen = () => {
      client?.library.undo();
      Object.assign(host, { suggested, editor });
    };
  }

  toggleList(): void {
    const { list } = this.#host;
    this.#host.list = { ...list, isOpen: !list.isOpen && list.count > 0 };
    if (list.isOpen) void this.#focus('[part="list"]');
  }

  /** Moves the focus after the next drawing. */
  async #focus(selector: string): Promise<void> {
    await this.#host.updateComplete;
    this.#host.shadowRoot?.querySelector<HTMLElement>(selector)?.focus({ preventScroll: true });
  }

  listed(count: number, others: number): void {
    const { list } = this.#host;
    const isOpen = list.isOpen && count > 0;
    if (list.count !== count || list.others !== others) this.#host.list = { count, others, isOpen };
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

  async decide(callId: string, decision: ToolBlock["decision"]): Promise<void> {
    const { client } = this.#host;
    // A page's own card may decide before the run that asks has ended.
    await client?.session.ended;
    const session = client?.session;
    session?.mark(callId, decision);
    const opened = this.#opened;
    if (!session?.decisions || this.#deciding === opened) return;
    this.#deciding = opened;
    const refused = await this.#admit();
    if (this.#deciding === opened) this.#deciding = undefined;
    // Meanwhile the user may have changed their mind, or another user may have signed in.
    if (refused || !session.decisions) return;
    this.#said((await session.decide(session.decisions)).outcome);
  }

  goToApproval(): boolean {
    const card = this.#host.shadowRoot?.querySelector<HTMLElement>(".approval");
    card?.focus();
    return !!card;
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
    const { scroll } = this.#host.talk ?? {};
    if (scroll?.isNextUnseen) void this.#showNewExchange();
    else scroll?.follow();
  }

  holdScroll(): void {
    this.#host.talk?.scroll.hold();
  }

  /** Moves the message whose answer begins, or resumes after a reload, to the top if `follow` is `question`. */
  async showNewAnswer(options?: { readonly glides: boolean }): Promise<void> {
    const { scroll } = await this.#host.talkReady;
    await this.#host.updateComplete;
    const { follow, client } = this.#host;
    if (follow === "question" && client?.session.isAnswerNew) scroll.anchorLastExchange(options);
  }

  /** After a reload: scrolls to the message whose answer resumes, or to where the reader was. */
  async showRestored(place: Place | undefined): Promise<void> {
    await this.showNewAnswer({ glides: false });
    if (place && !this.#host.client?.session.busy) this.#host.talk?.scroll.returnTo(place);
  }

  /** `isNextUnseen`: the end of the previous answer has not been read, so nothing moves. */
  async #showNewExchange(isNextUnseen = false): Promise<void> {
    const { scroll } = await this.#host.talkReady;
    scroll.isNextUnseen = isNextUnseen;
    await this.#host.updateComplete;
    if (isNextUnseen) return;
    if (this.#host.follow === "question") scroll.anchorLastExchange();
    else scroll.follow();
  }
}
