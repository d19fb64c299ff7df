/** What is on the screen: joins the controllers of one element with the views that draw its client. */

import { html, nothing, type TemplateResult } from "lit";
import { Announcer } from "./announcer.ts";
import type { ChatClient, KeyPrompt } from "./chat-client.ts";
import type { OutgoingMessage } from "./chat-session.ts";
import { Composer, type ComposerHost } from "./composer.ts";
import { FileDrop } from "./file-drop.ts";
import { ScrollFollower } from "./scroll-follower.ts";
import { strings } from "./strings.ts";
import { ViewState } from "./view-state.ts";
import { connectingView, greetingView, suggestionsView, unreachableView } from "./views/empty.ts";
import { frameView } from "./views/frame.ts";
import { headerView } from "./views/header.ts";
import { keyFormView } from "./views/key-form.ts";
import { transcriptView } from "./views/transcript.ts";

/** What the person can ask of the element. */
export interface ScreenActions {
  send(message: OutgoingMessage): Promise<void>;
  stop(): void;
  reset(): Promise<void>;
  toggleTheme(): void;
}

export class ChatScreen {
  readonly announcer: Announcer;
  readonly #host: ComposerHost;
  readonly #actions: ScreenActions;
  readonly #follower: ScrollFollower;
  readonly #view: ViewState;
  readonly #composer: Composer;
  readonly #drop: FileDrop;

  constructor(host: ComposerHost, actions: ScreenActions) {
    this.#host = host;
    this.#actions = actions;
    this.announcer = new Announcer(host);
    this.#follower = new ScrollFollower(host, () => host.renderRoot.querySelector(".scroller"));
    this.#view = new ViewState(host, {
      beforeToggle: () => this.#follower.hold(),
      hasFocus: (id) => host.renderRoot.querySelector(`[id="body-${id}"]:focus-within`) !== null,
      onCopyFailed: () => this.announcer.interrupt(strings.copyFailed),
    });
    this.#composer = new Composer(host, {
      onSend: (message) => void actions.send(message),
      onStop: () => actions.stop(),
      onRefused: (refusals) => this.announcer.say(refusals.join("\n")),
    });
    this.#drop = new FileDrop(host, (files) => void this.#composer.addFiles(files));
  }

  /** Shows the newest text and keeps it in view. */
  follow(): void {
    this.#follower.jump();
  }

  /** Forgets what was open and what was spoken, with the conversation. */
  clear(): void {
    this.announcer.clear();
    this.#view.clear();
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
    const { session, keyPrompt } = client;
    const empty = session.messages.length === 0;
    const agent = client.info?.agent ?? strings.fallbackAgent;
    return frameView({
      empty,
      header: this.#header(client, dark),
      content: empty ? greeting(client) : transcriptView({ session, agent, view: this.#view }),
      dock: keyPrompt ? keyForm(client, keyPrompt) : this.#composerAndMore(client),
      announcements: this.announcer.render(),
      drop: this.#drop,
      onJump: empty || this.#follower.following ? undefined : () => this.follow(),
      onKeyDown: (event) => this.#keyDown(event, client),
    });
  }

  #header(client: ChatClient, dark: boolean): TemplateResult {
    return headerView({
      name: client.info?.name ?? "",
      agent: client.info?.agent ?? (client.phase === "connecting" ? "" : strings.fallbackAgent),
      dark,
      canReset: client.session.messages.length > 0,
      canForgetKey: client.hasTypedKey,
      onReset: () => void this.#actions.reset().then(() => this.focus()),
      onForgetKey: () => client.forgetKey(),
      onToggleTheme: () => this.#actions.toggleTheme(),
    });
  }

  /** One template for both cases, so that the text field and its focus survive the first message. */
  #composerAndMore({ info, session }: ChatClient): TemplateResult {
    const composer = this.#composer.render({
      limits: info,
      busy: session.busy,
      stopping: session.status === "stopping",
    });
    const offered = session.messages.length === 0 ? (info?.suggestions ?? []) : [];
    const suggestions = suggestionsView(offered, (text) => {
      void this.#actions.send({ text, attachments: [], files: [] });
      this.focus();
    });
    return html`${composer} ${suggestions}`;
  }

  #keyDown(event: KeyboardEvent, { session }: ChatClient): void {
    if (event.key !== "Escape" || session.status !== "running") return;
    // A launcher around the element closes on what is left of Escape.
    event.preventDefault();
    this.#actions.stop();
  }
}

function greeting(client: ChatClient): TemplateResult | typeof nothing {
  if (client.keyPrompt) return nothing;
  if (client.phase === "connecting") return connectingView;
  if (client.phase === "unreachable") return unreachableView(() => void client.load());
  return greetingView(client.info?.welcome);
}

function keyForm(client: ChatClient, prompt: KeyPrompt): TemplateResult {
  return keyFormView({
    name: client.info?.name ?? strings.fallbackAgent,
    prompt,
    checking: client.checkingKey,
    waiting: client.session.status === "locked",
    onSubmit: (key) => void client.submitKey(key),
  });
}
