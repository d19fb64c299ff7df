/** What is on the screen: joins the controllers of one element with the views that draw its client. */

import { html, nothing, type TemplateResult } from "lit";
import { Announcer } from "./announcer.ts";
import type { ChatClient } from "./chat-client.ts";
import type { ChatSession } from "./chat-session.ts";
import { Composer } from "./composer.ts";
import type { Connection } from "./connection.ts";
import type { KeptDraft } from "./conversation.ts";
import { FileDrop } from "./file-drop.ts";
import { FocusKeeper } from "./focus-keeper.ts";
import { KeyAsker } from "./key-asker.ts";
import { KeyboardRoom } from "./keyboard-room.ts";
import { LateChunk } from "./late-chunk.ts";
import type { MessageEditor } from "./message-editor.ts";
import type { ScreenActions, ScreenHost } from "./screen-actions.ts";
import { ScrollFollower } from "./scroll-follower.ts";
import { strings } from "./strings.ts";
import type { Question } from "./transcript.ts";
import { ViewState } from "./view-state.ts";
import { connectionView } from "./views/connection.ts";
import { startView, suggestionsView, unreachableView } from "./views/empty.ts";
import { frameView } from "./views/frame.ts";
import { headerView } from "./views/header.ts";
import { jumpView } from "./views/jump.ts";
import { transcriptView } from "./views/transcript.ts";

export class ChatScreen {
  readonly announcer: Announcer;
  readonly #host: ScreenHost;
  readonly #actions: ScreenActions;
  readonly #follower: ScrollFollower;
  readonly #view: ViewState;
  readonly #composer: Composer;
  readonly #afterwards: LateChunk<"actions">;
  #editor: MessageEditor | undefined;
  /** The message that the person wants to change, until that has begun. */
  #wanted: Question | undefined;
  readonly #keyAsker: KeyAsker;
  readonly #drop: FileDrop;
  #client: ChatClient | undefined;
  #isLost = false;
  /** What the page offers to say next. */
  #followUps: readonly string[] = [];

  constructor(host: ScreenHost, actions: ScreenActions) {
    this.#host = host;
    this.#actions = actions;
    this.announcer = new Announcer(host);
    new FocusKeeper(host);
    new KeyboardRoom(host, () => host.renderRoot.querySelector(".chat"));
    this.#follower = new ScrollFollower(host, () => host.renderRoot.querySelector(".scroller"));
    this.#view = new ViewState(host, {
      beforeToggle: () => this.#follower.hold(),
      hasFocus: (id) => host.renderRoot.querySelector(`[id="body-${id}"]:focus-within`) !== null,
      onRate: (reply, words) => {
        actions.rate(reply);
        this.announcer.say(words);
      },
      copyDrawn: (text, drawn) => this.#afterwards.chunk?.copyDrawn(text, drawn),
      onCopyFailed: () => this.announcer.interrupt(strings.copyFailed),
    });
    this.#composer = new Composer(host, {
      onSend: (message, empty) => {
        const onAccepted = () => {
          empty();
          this.#endEditing();
        };
        actions.send(message, { replaces: this.#editor?.id, onAccepted });
      },
      onRecall: () => this.#recall(),
      onDraftChanged: () => {
        // What somebody writes is not taken out of their hands.
        this.#wanted = undefined;
        if (this.#editor?.id === undefined) actions.draftChanged(this.#composer.kept);
      },
      onStop: () => actions.stop(),
      onFiles: (outcomes) => this.announcer.sayLines(outcomes),
    });
    this.#afterwards = new LateChunk(host, "actions");
    this.#keyAsker = new KeyAsker(host);
    this.#drop = new FileDrop(host, (files) => void this.#composer.addFiles(files));
  }

  /** Shows the newest text and keeps it in view. */
  follow(): void {
    this.#follower.jump();
  }

  /** Offers messages to send with one click, in place of those that were offered before. */
  suggest(texts: readonly string[]): void {
    this.#followUps = texts;
    this.#host.requestUpdate();
  }

  /** Begins with what an earlier page had in its composer. */
  set draft(draft: KeptDraft) {
    if (this.#editor?.id === undefined) this.#composer.restore(draft);
  }

  /** Says once that the line is lost, and once that it is back. */
  watch({ state }: Connection): void {
    const isLost = state !== "up";
    if (isLost === this.#isLost) return;
    this.#isLost = isLost;
    this.announcer.say(isLost ? strings.unreachable : strings.connected);
  }

  /** Forgets what was open and what was spoken, with the conversation. */
  clear(): void {
    this.#endEditing();
    this.suggest([]);
    this.#view.clear();
    this.announcer.clear();
    this.announcer.say(strings.begunAnew);
  }

  /** Puts the cursor into the text field, or into the field for the key. */
  focus(): void {
    const keyField = this.#host.renderRoot.querySelector<HTMLElement>("#key");
    if (keyField) keyField.focus({ preventScroll: true });
    else this.#composer.focus();
  }

  /** Puts a text into the text field, in place of what is there. */
  setDraft(text: string): void {
    this.#composer.draft = text;
  }

  /** Adds files to the message that is being written; what is refused is said in place. */
  attach(files: Iterable<File>): Promise<void> {
    return this.#composer.addFiles(files);
  }

  render(client: ChatClient, dark: boolean): TemplateResult {
    const { session, key, keeper } = client;
    this.#client = client;
    const empty = session.messages.length === 0 && !keeper.isRestoring;
    return frameView({
      empty,
      header: this.#header(client, dark),
      content: empty ? startView(client) : this.#transcript(client),
      status: this.#status(client, empty),
      disclaimer: this.#host.disclaimer || client.info?.disclaimer,
      dock: key.prompt ? this.#keyAsker.render(client, key.prompt) : this.#composerAndMore(client, empty),
      announcements: this.announcer.render(),
      drop: this.#drop,
      jump: empty ? nothing : jumpView(this.#follower, session.messages),
      onKeyDown: (event) => this.#keyDown(event, client),
    });
  }

  #header(client: ChatClient, dark: boolean): TemplateResult {
    return headerView({
      name: client.info?.name ?? "",
      agent: client.info?.agent ?? (client.phase === "connecting" ? "" : strings.fallbackAgent),
      dark,
      canReset: client.session.messages.length > 0,
      canForgetKey: client.key.isTyped,
      onReset: () => void this.#actions.reset().then(() => this.focus()),
      onForgetKey: () => client.forgetKey(),
      onToggleTheme: () => this.#actions.toggleTheme(),
    });
  }

  /** One template for both cases, so that the text field and its focus survive the first message. */
  #composerAndMore({ info, session, keeper }: ChatClient, empty: boolean): TemplateResult {
    const composer = this.#composer.render({
      limits: info,
      state: session.stateFor(this.#editor?.id),
      restoring: keeper.isRestoring,
      busy: session.busy,
      stopping: session.status === "stopping",
    });
    const isFree = !session.busy && !keeper.isRestoring;
    const mayFollow = isFree && this.#editor?.id === undefined;
    const offered = empty ? info?.suggestions : mayFollow && this.#followUps;
    const suggestions = suggestionsView(offered || [], (text) => {
      this.#actions.send({ text, attachments: [], files: [] });
      this.focus();
    });
    return html`${composer} ${suggestions}`;
  }

  #transcript({ info, session, keeper }: ChatClient): unknown {
    // Before anybody wants to change something: ↑ is to work at once.
    if (!session.busy) this.#afterwards.get();
    return transcriptView({
      session,
      isLost: keeper.isLost,
      agent: info?.agent ?? strings.fallbackAgent,
      view: this.#view,
      editing: this.#editor?.id,
      onEdit: (question) => void this.#edit(question, session),
      onWithdraw: () => session.withdraw(),
    });
  }

  #status({ connection, phase, session }: ChatClient, empty: boolean): unknown {
    const wanted = this.#wanted;
    // Without a conversation the middle of the screen says that nobody answers.
    const line = empty && phase === "unreachable" ? nothing : connectionView(connection);
    const isRefused = wanted && this.#afterwards.failed;
    const editing = isRefused ? unreachableView(() => void this.#edit(wanted, session)) : nothing;
    return [line, this.#editor?.render() ?? editing];
  }

  /** The last message back into the composer. */
  #recall(): void {
    const session = this.#client?.session;
    const question = session?.lastQuestion;
    if (question && /all|edit/.test(this.#host.actions)) void this.#edit(question, session);
  }

  /** Begins to change a message where that is possible; one that was not sent yet is taken back instead. */
  async #edit(question: Question, session: ChatSession): Promise<void> {
    const unsent = session.withdraw();
    if (unsent) this.#composer.putBefore(unsent);
    if (unsent || !session.canEdit(question)) return;
    this.#wanted = question;
    const chunk = await this.#afterwards.load();
    // Something else may have been sent meanwhile.
    if (!chunk || this.#wanted !== question) return;
    this.#wanted = undefined;
    this.#editor ??= new chunk.MessageEditor(this.#composer, this.announcer);
    this.#editor.begin(question, session);
  }

  #endEditing(): void {
    this.#wanted = undefined;
    this.#editor?.end();
  }

  #keyDown(event: KeyboardEvent, { session }: ChatClient): void {
    const editing = this.#wanted ?? this.#editor?.id;
    // 229: an input method's own key, also where Safari says that the composition is over.
    if (event.key !== "Escape" || event.isComposing || event.keyCode === 229) return;
    if (!editing && session.status !== "running") return;
    // A launcher around the element closes on what is left of Escape.
    event.preventDefault();
    if (editing) {
      this.#wanted = undefined;
      this.#editor?.leave();
      this.#host.requestUpdate();
    } else this.#actions.stop();
  }
}
