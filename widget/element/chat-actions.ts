/** What the parts of the interface ask for, done with the element's session, composer and controllers. */

import { toJson } from "../../server/protocol/json.ts";
import { Composer } from "../composer/composer.ts";
import { failureText, type Strings } from "../i18n/strings.ts";
import { lazy } from "../loading/lazy.ts";
import type { SendOptions, SendOutcome, SendResult } from "../session/chat-session.ts";
import type { Client, Draft, EditedMessage } from "../session/client.ts";
import type { OutgoingMessage } from "../session/conversation.ts";
import {
  type AssistantMessage,
  answerText,
  type Failure,
  type Message,
  type ToolBlock,
  type UserMessage,
} from "../session/messages.ts";
import type { Place } from "../session/tab-slot.ts";
import type { ChatActions, ListView } from "../ui/context.ts";
import type { Announcer } from "../ui/controllers/announcer.ts";
import { hasTouchKeyboard } from "../ui/controls.ts";
import type { MessageElement } from "../ui/message.ts";
import type { Talk } from "../ui/talk.ts";
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
  /** Stands in the place of the message that is being changed; where that is out of sight, it waits. */
  editor: Composer | undefined;
  list: ListView;
  /** What shows the conversation, once it is loaded. */
  readonly talk: Talk | undefined;
  readonly talkReady: Promise<Talk>;
  /** Whether the browser keeps all conversations. */
  readonly keepsAll: boolean;
  stop(): void;
  closeConversation(): void;
  leaveConversation(): void;
  focusComposer(): void;
  loadKeyPrompt(): Promise<void>;
}

interface Controllers {
  readonly announcer: Announcer;
  readonly theme: ThemeWatcher;
}

/** Much else is new then, and to be read. */
const ELSEWHERE_FOR_MS = 12_000;

/** For messages that wait for the end of an answer. */
const pending = lazy(() => import("../session/pending.ts"), "sendPending");

/** For the element and its parts. What the methods mean: `ChatActions`. */
export class ElementActions implements ChatActions {
  readonly #host: ActionsHost;
  readonly #controllers: Controllers;
  /** What the editor began with. */
  #begun = "";
  /** Whether it was opened from the composer. */
  #isRecalled = false;
  /** Brings back what was closed last. */
  #reopen = () => {};
  /** How often another conversation was opened. */
  #opened = 0;
  /** The same, for the conversation whose decisions are about to be sent: as they stand then. */
  #deciding: number | undefined;

  constructor(host: ActionsHost, controllers: Controllers) {
    this.#host = host;
    this.#controllers = controllers;
  }

  /** What an earlier page load has kept comes first: it would take the place of the message. */
  async send(message: OutgoingMessage, options?: SendOptions): Promise<SendOutcome> {
    const { client } = this.#host;
    // What is busy at the press is busy: an answer may end while storage is asked.
    if (client?.session.busy) {
      if (options?.replaces !== undefined) return "busy";
      if (client.session.status !== "stopping") {
        if (!client.session.queue(message)) return "full";
        // Until it is kept there, the text field keeps it.
        await client.keeper.queued;
        return "accepted";
      }
      await client.session.ended;
    }
    return (await this.#admit()) ?? this.sendNow(message, options).outcome;
  }

  async sendPending(asked?: readonly string[]): Promise<void> {
    const { client } = this.#host;
    const module = await pending.load().catch(() => undefined);
    const admit = async () => {
      // What has ended is said first.
      await this.#host.updateComplete;
      return this.#admit(!!asked);
    };
    const send = (message: OutgoingMessage) => this.sendNow(message, { isUnasked: !asked });
    if (client) await module?.sendPending(client, { asked, admit, send });
  }

  async takeOut(id: string, toChange: boolean): Promise<void> {
    const { client, composer } = this.#host;
    const { session } = client ?? {};
    const find = () => session?.pending.find((it) => it.id === id);
    const attachments = session?.pendingFiles.get(id) ?? [];
    const message = find();
    if (toChange && message && !(await composer?.canJoin({ ...message, attachments }))) return;
    // It may have been sent meanwhile.
    if (!message || !find()) return;
    session?.changePending((list) => list.filter((it) => it.id !== id));
    if (toChange) composer?.restoreUnsent({ ...message, attachments });
  }

  /** Resolves with the reason why the session can do nothing now, if there is one, and says it. */
  async #admit(isAsked = true): Promise<SendOutcome | undefined> {
    const { client, texts } = this.#host;
    const opened = this.#opened;
    const refusal = await client?.admit();
    await client?.keeper.restored;
    const mayGoOn = refusal || (await client?.keeper.claim());
    // The element has another server or conversation now, or has left the page.
    const isOver = !client || client !== this.#host.client || !this.#host.isConnected || opened !== this.#opened;
    if (isOver) return "busy";
    // What nobody has asked for is done by the other tab.
    if (!mayGoOn && isAsked) this.#sayElsewhere();
    // In place of a conversation that is not shown stands an alert already.
    if (refusal && !(client.isHidden && client.refusal)) this.alert(failureText(refusal, texts));
    return refusal ? "refused" : mayGoOn ? undefined : "elsewhere";
  }

  /** Says, in place and aloud, that another tab has gone on with what stood here. */
  #sayElsewhere(): void {
    const { texts, composer } = this.#host;
    this.alert(texts.wentOnElsewhere);
    composer?.note(texts.wentOnElsewhere, ELSEWHERE_FOR_MS);
  }

  /**
   * Sends a message, with its event, when an earlier conversation has been restored. See `ChatSession.send`. One that
   * goes `isUnasked` does not take the reader away from an answer of which they have not seen the end.
   */
  sendNow(message: OutgoingMessage, options?: SendOptions & { readonly isUnasked?: boolean }): SendResult {
    const host = this.#host;
    const sent = host.client?.session.send(message, options) ?? { outcome: "busy", ended: Promise.resolve() };
    if (sent.outcome !== "accepted") return sent;
    if (options?.replaces !== undefined) this.announce(host.texts.edited);
    host.suggested = [];
    const { text, attachments, pending } = message;
    if (pending) this.announce(host.texts.nextAnswering);
    void this.#showNewExchange(options?.isUnasked && host.talk?.scroll.wayToEnd === "shown");
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

  async continue(): Promise<void> {
    if (!(await this.#admit())) this.#host.client?.session.continue();
  }

  async switchTo(message: Message, id: string): Promise<void> {
    const { client } = this.#host;
    const opened = this.#opened;
    // Another tab may be about to go on with what is in sight.
    const mayGoOn = await client?.keeper.claim();
    if (opened !== this.#opened) return;
    if (!mayGoOn) return this.#sayElsewhere();
    const { scroll } = await this.#host.talkReady;
    const top = scroll.topOf(message.id);
    client?.session.switchTo(id);
    await this.#host.updateComplete;
    scroll.keepAt(top, id);
  }

  retryAfresh(): void {
    void this.retry({ afresh: true });
  }

  async edit({ id }: UserMessage): Promise<void> {
    this.#isRecalled = false;
    await this.#host.client?.keeper.filled;
    const { client, composer, editor } = this.#host;
    const message = client?.session.messages.find((it) => it.id === id);
    if (message?.role !== "user") return;
    const unsent = client?.session.withdraw();
    if (unsent) composer?.restoreUnsent(unsent);
    else if (editor?.isConnected && this.#isChanged(editor)) void this.#showEditor(editor);
    else if (client?.session.canEdit(message)) {
      this.giveUpEdit();
      const next = this.#openEditor({ conversation: client.keeper.shown.id, id: message.id });
      next.restoreUnsent({ ...client.session.outgoing(message), files: message.files });
      this.#begun = toJson(next.written);
      void this.#showEditor(next);
    }
  }

  #openEditor(edits: EditedMessage): Composer {
    const editor = new Composer();
    const { context } = this.#host.composer ?? {};
    Object.assign(editor, { context, edits });
    editor.setAttribute("part", "editor");
    this.#host.editor = editor;
    return editor;
  }

  #isChanged({ written }: Composer): boolean {
    return toJson(written) !== this.#begun;
  }

  async #showEditor(editor: Composer): Promise<void> {
    this.holdScroll();
    await this.#host.updateComplete;
    editor.focusEnd();
  }

  /** An earlier page load has left a message that was being changed. */
  restoreEdit(edit: Draft["edit"]): void {
    if (!edit || this.#host.editor) return;
    const { text, files, ...edits } = edit;
    this.#begun = "";
    void this.#openEditor(edits).restore({ text, files });
  }

  /** The message is gone that was being changed, or another one is now: what was written goes to the composer. */
  giveUpEdit(): void {
    const { editor, composer } = this.#host;
    this.#host.editor = undefined;
    if (editor && this.#isChanged(editor)) composer?.restoreUnsent(editor.outgoing);
  }

  recall(): void {
    const { client, actions } = this.#host;
    const last = client?.session.pending.at(-1);
    if (last) {
      void this.takeOut(last.id, true);
      return;
    }
    const question = client?.session.lastQuestion;
    if (!question || !/all|edit/.test(actions)) return;
    void this.edit(question);
    this.#isRecalled = true;
  }

  async endEdit(): Promise<void> {
    const host = this.#host;
    const message = host.editor?.closest<MessageElement>("agent-chat-message");
    this.holdScroll();
    host.editor = undefined;
    this.saveDraft();
    await host.updateComplete;
    const button = message?.querySelector<HTMLElement>('.said [part="edit"]:enabled');
    if (button && !this.#isRecalled) button.focus({ preventScroll: true });
    else if (!hasTouchKeyboard()) host.focusComposer();
  }

  saveDraft(): void {
    const { client, composer, editor } = this.#host;
    if (!composer) return;
    const edit = editor?.edits && { ...editor.edits, ...editor.written };
    client?.keeper.saveDraft({ ...composer.written, edit });
  }

  withdraw(): void {
    this.#host.client?.session.withdraw();
  }

  /** Shows another conversation, or a new one. */
  async openConversation(id: string | undefined): Promise<void> {
    const host = this.#host;
    this.#opened += 1;
    host.leaveConversation();
    if (id === undefined) this.announce(host.texts.startedOver);
    // What lay over it is gone then. A keyboard on the screen would cover what has been opened.
    const find = id !== undefined && hasTouchKeyboard() ? ".scroller" : "";
    void host.updateComplete.then(() => (find ? this.#focus(find) : host.focusComposer()));
    await host.client?.keeper.show(id);
    await host.updateComplete;
    this.jumpToEnd();
    await this.showRestored(undefined);
  }

  closeConversation(): void {
    const host = this.#host;
    if (host.keepsAll) {
      // Nothing ends: it is the first one in the list.
      if (!host.client?.keeper.isNotKept) return void this.openConversation(undefined);
      // What is stored of it stays.
      host.client.keeper.begin(undefined);
    }
    const { suggested, editor, client } = host;
    host.closeConversation();
    this.announce(host.texts.closed, host.texts.undo);
    host.focusComposer();
    this.#reopen = () => {
      client?.undo();
      Object.assign(host, { suggested, editor });
    };
  }

  toggleList(): void {
    const { list } = this.#host;
    this.#host.list = { ...list, isOpen: !list.isOpen && list.count > 0 };
    if (list.isOpen) void this.#host.updateComplete.then(() => this.#focus('[part="list"]'));
  }

  #focus(selector: string): void {
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
    client?.session.keep(message);
    const { id: messageId, feedback } = message;
    const { rating = null, reason, comment } = feedback ?? {};
    fireEvent(this.#host, "agent-chat-feedback", { messageId, rating, reason, comment, answer: answerText(message) });
    return client?.sendFeedback(message);
  }

  async decide(callId: string, decision: ToolBlock["decision"]): Promise<void> {
    const { client } = this.#host;
    // A page's own card may be quicker than the end of the run that asks.
    await client?.session.ended;
    const session = client?.session;
    session?.mark(callId, decision);
    const opened = this.#opened;
    if (!session?.decisions || this.#deciding === opened) return;
    this.#deciding = opened;
    const refused = await this.#admit();
    if (this.#deciding === opened) this.#deciding = undefined;
    // The person may have changed their mind while the page or another tab was asked.
    if (!refused && session.decisions) session.decide(session.decisions);
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

  /** Has the message at the top whose answer begins, or goes on after a reload. */
  async showNewAnswer(options?: { readonly glides: boolean }): Promise<void> {
    const { scroll } = await this.#host.talkReady;
    await this.#host.updateComplete;
    const { follow, client } = this.#host;
    if (follow === "question" && client?.session.isAnswerNew) scroll.anchorLastExchange(options);
  }

  /** After a reload: the message whose answer goes on, or the place that was left. */
  async showRestored(place: Place | undefined): Promise<void> {
    await this.showNewAnswer({ glides: false });
    if (place && !this.#host.client?.session.busy) this.#host.talk?.scroll.returnTo(place);
  }

  /** `isNextUnseen`: the end of the answer before has not been read, and nothing moves. */
  async #showNewExchange(isNextUnseen = false): Promise<void> {
    const { scroll } = await this.#host.talkReady;
    scroll.isNextUnseen = isNextUnseen;
    await this.#host.updateComplete;
    if (isNextUnseen) return;
    if (this.#host.follow === "question") scroll.anchorLastExchange();
    else scroll.follow();
  }
}
