import { type CSSResult, LitElement, type PropertyValues, type TemplateResult, unsafeCSS } from "lit";
import type { AgentInfo, ApprovalDecision } from "../../server/protocol/chat.ts";
import { FileDrop } from "../composer/attachments.ts";
import type { Composer } from "../composer/composer.ts";
import type { ChatSession } from "../conversations/chat-session.ts";
import type { AssistantMessage, Message } from "../conversations/messages.ts";
import { failureText, type Strings } from "../i18n/strings.ts";
import { type Lazy, lazy, whenIdle } from "../loading/lazy.ts";
import type { BlockRenderers } from "../markdown/renderers.ts";
import type { Client } from "../session/client.ts";
import { adoptSheets, sheetOf } from "../styles/adopt.ts";
import baseStyles from "../styles/base.css";
import composerStyles from "../styles/composer.css";
import screenStyles from "../styles/screen.css";
import surfaceStyles from "../styles/surfaces.css";
import tokenStyles from "../styles/tokens.css";
import { partsComplete } from "../ui/chat-part.ts";
import type { ChatContext, ChatModes, ListView } from "../ui/context.ts";
import { Announcer } from "../ui/controllers/announcer.ts";
import { FocusKeeper } from "../ui/controllers/focus-keeper.ts";
import type { TranscriptFormat } from "../ui/export.ts";
import type { MessageAction, MessageHeader, ToolRenderers } from "../ui/extensions.ts";
import { focusTarget, isShortcut, useKey } from "../ui/keys.ts";
import { loadPart } from "../ui/lazy-parts.ts";
import { RESET_SHORTCUT, renderScreen } from "../ui/screen.ts";
import type { Talk } from "../ui/talk.ts";
import { ElementActions } from "./chat-actions.ts";
import { ClientController } from "./client-controller.ts";
import { LocaleController } from "./locale.ts";
import type { Owner, OwnersView } from "./owner.ts";
import { hasSameEntries, PageList, PageTable } from "./page-table.ts";
import { CHAT, initialValue, initialValues, isValid, litProperties } from "./properties.ts";
import type { AddedMessage, ChatProperties, AgentChat as PublicAgentChat } from "./public-types.ts";
import { ThemeWatcher } from "./theme.ts";

/** Lit's class with the properties that `litProperties` declares. */
const ChatElement = LitElement as unknown as Pick<typeof LitElement, keyof typeof LitElement> &
  (new () => LitElement & ChatProperties);

/**
 * A conversation with the agent of one Parley server: `<agent-chat server="https://agent.example/"></agent-chat>`.
 *
 * Its attributes: `properties.ts`. Its parts: `ui/screen.ts`. Its CSS variables: `styles/tokens.css`.
 *
 * @fires {AgentChatReadyEvent} agent-chat-ready - The server has described its agent; the chat can be used.
 * @fires {AgentChatMessageEvent} agent-chat-message - The user has sent a message.
 * @fires {AgentChatTokenEvent} agent-chat-token - A piece of the answer's Markdown has arrived. Thoughts are not reported.
 * @fires {AgentChatToolEvent} agent-chat-tool - A tool call has started (`running`), waits for approval (`waiting`) or has ended (`completed`, `failed`, `stopped`).
 * @fires {AgentChatDoneEvent} agent-chat-done - An answer has ended; `finishReason` is `stopped` if the user stopped it, `suggestions` what the agent offers to say next.
 * @fires {AgentChatErrorEvent} agent-chat-error - An answer has failed.
 * @fires {Event} agent-chat-login-required - The agent does not know the user, and the chat asks them to sign in; also when they press the button for that.
 * @fires {Event} agent-chat-sign-out - The user has signed out with the chat's button.
 * @fires {AgentChatFeedbackEvent} agent-chat-feedback - The user has rated an answer, given a reason, or taken the rating back.
 * @slot header-start - Before the agent's name.
 * @slot avatar - Replaces the mark beside the agent's name.
 * @slot header-end - After the header's buttons.
 * @slot empty - Replaces the greeting of an empty conversation.
 * @slot before-composer - Above the composer.
 * @slot footer - Replaces the disclaimer below the composer.
 */
export class AgentChat extends ChatElement implements PublicAgentChat {
  static override properties = {
    ...litProperties(),
    suggested: { state: true },
    editor: { state: true },
    list: { state: true },
    isKeyPromptMissing: { state: true },
  };

  /** In cascade order: later sheets win. `Talk` inserts the sheets of messages before the last one. */
  static override styles = [tokenStyles, surfaceStyles, baseStyles, screenStyles, composerStyles].map(unsafeCSS);

  /**
   * URL of the server for elements without a `server` attribute: where the script was loaded from. Empty if unknown.
   */
  static defaultServer = "";

  /** @internal The description of the agent, which the server's own page contains. */
  pageInfo: AgentInfo | undefined;
  /** @internal The owner's settings (`chat` of `/api/info`) and who is signed in; absent if there is neither. */
  own: OwnersView | undefined;
  /** @internal See `ChatContext`. */
  images: ChatContext["images"] = "ask";
  /** @internal Messages that the page suggests to send next. */
  suggested: readonly string[] = [];
  /** @internal See `ActionsHost`. */
  editor: Composer | undefined;
  /** @internal See `ListView`. */
  list: ListView = { count: 0, others: 0, isOpen: false };
  /** @internal Draws the conversation; absent until its code is loaded. */
  talk: Talk | undefined;
  #talkLoaded!: (talk: Talk) => void;
  /** @internal For `ElementActions`: resolves to `talk`. */
  readonly talkReady = new Promise<Talk>((resolve) => {
    this.#talkLoaded = resolve;
  });
  /** Resolves when `talk` is loaded, or the first attempt has failed. */
  #talkTried: Promise<void> | undefined;
  #owner: Owner | undefined;
  /** Resolves when `#owner` is there, or the first attempt to load it has failed. */
  #ownerTried: Promise<void> | undefined;
  /** The answer that began streaming before `talk` was loaded. */
  #begun: AssistantMessage | undefined;
  /** Whether the form that asks for a key could not be loaded. */
  private isKeyPromptMissing = false;

  readonly #locale = new LocaleController(this);
  readonly #theme = new ThemeWatcher(this);
  readonly #announcer = new Announcer(this);
  readonly #drop = new FileDrop(this, (files, path) => {
    const { editor } = this;
    void (editor && path.includes(editor) ? editor.addFiles(files) : this.attach(files));
  });
  readonly #clients = new ClientController(this, {
    onChange: (client) => this.#clientChanged(client),
    onDraft: (draft) =>
      void this.#withComposer((composer) => {
        this.#actions.restoreEdit(draft.edit);
        return composer.restore(draft);
      }),
    onSwitch: (written) => void this.#withComposer((composer) => composer.show(written)),
    onUnsent: (message) => void this.#withComposer((composer) => composer.restoreUnsent(message)),
    onForget: (wasShown) => this.#forget(wasShown),
    place: () => (this.talk ? this.talk.scroll.place : this.client?.library.restoredPlace),
    onPrepare: () => void this.#needTalk(),
  });
  readonly #actions = new ElementActions(this, { announcer: this.#announcer, theme: this.#theme });
  /** Declarations of this element alone: its `style` attribute belongs to the site. */
  readonly #sheet = sheetOf(":host{}");
  readonly #renderers = new PageTable<BlockRenderers>();
  readonly #toolRenderers = new PageTable<ToolRenderers>();
  readonly #messageActions = new PageList<MessageAction>();
  readonly #messageHeader = new PageTable<{ draw?: MessageHeader | undefined }>();
  #context!: ChatContext;
  #isConnectionLost = false;
  /** Resolves when the form that asks for a key is loaded, or has failed to load. */
  #keyPrompt: Promise<void> | undefined;
  /** Number of calls of `stop`: `send` also stops an answer that was about to start. */
  #stops = 0;

  constructor() {
    super();
    Object.assign(this, initialValues());
    new FocusKeeper(this);
  }

  // `public-types.ts` documents the public methods.

  async send(text: string): Promise<void> {
    const stops = this.#stops;
    await this.#admitted("send");
    if (text.trim() === "") throw new TypeError("send: text must not be empty");
    const session = this.#sessionFor("send");
    const { outcome, ended } = await this.#actions.sendNow({ text: text.trim(), attachments: [], files: [] });
    if (outcome === "elsewhere") throw new Error("send: another tab goes on already");
    if (outcome !== "accepted") throw new Error(`cannot send while the session is ${session.status}`);
    if (this.#stops > stops) this.stop();
    await ended;
  }

  async addMessage(message: AddedMessage): Promise<string> {
    const { text, name = "" } = { ...message };
    if (typeof text !== "string" || text.trim() === "")
      throw new TypeError("addMessage: text must be a text, not empty");
    if (typeof name !== "string") throw new TypeError("addMessage: name must be a text");
    await this.#admitted("addMessage");
    const session = this.#sessionFor("addMessage");
    const isShown = () => session === this.client?.session;
    const id = await session.addOfPage({ text, name: name || undefined }, isShown);
    if (id === undefined) throw new Error("addMessage: another conversation is shown by now");
    void this.talkReady.then(({ announcer }) => announcer.say(id));
    this.dispatchEvent(new Event(MESSAGE_ADDED));
    return id;
  }

  async decide(decisions: readonly ApprovalDecision[]): Promise<void> {
    await this.#admitted("decide");
    const session = this.#sessionFor("decide");
    const { outcome, ended } = await session.decide(decisions);
    if (outcome === "elsewhere") throw new Error("decide: another tab goes on already");
    if (outcome === "busy") throw new Error(`cannot decide while the session is ${session.status}`);
    if (outcome !== "accepted") throw new TypeError("decide: there must be one decision for each call that waits");
    await ended;
  }

  stop(): void {
    this.#stops += 1;
    this.client?.session.stop();
  }

  async reset(): Promise<void> {
    await this.#restored();
    this.#clear();
    await this.client?.library.reset();
  }

  async signOut(): Promise<void> {
    // A launcher around the element would set its token again. Any other host belongs to the site.
    const { host } = this.getRootNode() as ShadowRoot;
    if (host?.localName === "agent-chat-launcher")
      (host as HTMLElement & Pick<this, "userToken">).userToken = undefined;
    this.userToken = undefined;
    await this.client?.signOut();
  }

  /** @internal For `ElementActions`: like `reset`, but the user can undo it. */
  closeConversation(): void {
    this.#clear();
    this.client?.library.close();
  }

  /** @internal For `ElementActions`: another conversation is about to be shown. */
  leaveConversation(): void {
    this.suggested = [];
    this.#announcer.clear();
    this.#watch(undefined);
    if (this.list.isOpen) this.list = { ...this.list, isOpen: false };
  }

  /** @internal For `ElementActions`. */
  get keepsAll(): boolean {
    return this.#clients.keepsAll;
  }

  focusComposer(): void {
    const keyField = this.shadowRoot?.querySelector<HTMLElement>("#key");
    if (keyField) keyField.focus({ preventScroll: true });
    else this.composer?.focus();
  }

  setDraft(text: string): void {
    void this.#withComposer((composer) => {
      composer.draft = text;
    });
  }

  async attach(files: Iterable<File>): Promise<void> {
    const list = [...files];
    await this.#withComposer((composer) => composer.addFiles(list));
  }

  async exportTranscript(format: TranscriptFormat): Promise<string> {
    await this.#restored();
    const context = this.#context;
    const messages = this.#messages;
    const { exportTranscript } = await transcripts.load();
    return exportTranscript(format, messages, context);
  }

  suggest(texts: Iterable<string>): void {
    if (typeof texts === "string") throw new TypeError("suggest: texts must be a list of strings");
    this.suggested = [...texts].map(String);
  }

  /** @internal For a launcher: the text of the last answer, as it is drawn. */
  async lastAnswer(): Promise<string> {
    await this.#restored();
    await this.updateComplete;
    return this.talk?.lastAnswer(this.texts) ?? "";
  }

  /** @internal For `FocusKeeper`. */
  get asksForKey(): boolean {
    return this.client?.key.prompt !== undefined;
  }

  /** @internal For `ClientController` and `ElementActions`. */
  get texts(): Strings {
    return this.#context.strings;
  }

  /** @internal For `ElementActions`, a launcher and `dev/bar.ts`. */
  get client(): Client | undefined {
    return this.#clients.client;
  }

  /** @internal For `ElementActions`. */
  get composer(): Composer | null | undefined {
    return this.shadowRoot?.querySelector(".dock agent-chat-composer") as Composer | null | undefined;
  }

  get #messages(): readonly Message[] {
    return this.client?.session.messages ?? [];
  }

  #sessionFor(method: string): ChatSession {
    if (!this.client || !this.isConnected) {
      throw new Error(`${method}: the element is not in a page, or has no server`);
    }
    return this.client.session;
  }

  protected override createRenderRoot(): HTMLElement | DocumentFragment {
    const root = super.createRenderRoot();
    adoptSheets(root, [this.#sheet]);
    return root;
  }

  /** The first drawing waits for the language's texts. While an answer streams, one drawing per frame is enough. */
  protected override async scheduleUpdate(): Promise<void> {
    if (!this.hasUpdated) await this.#locale.ready;
    else if (this.client?.session.busy) await nextFrame();
    const info = this.pageInfo ?? this.client?.info;
    if (info?.chat || info?.user || this.client?.refusal) await this.#needOwner();
    super.scheduleUpdate();
  }

  /** Also waits until the parts have been drawn. */
  protected override async getUpdateComplete(): Promise<boolean> {
    let isComplete = await super.getUpdateComplete();
    if (this.#hasConversation && !this.talk) {
      await this.#needTalk();
      isComplete = await super.getUpdateComplete();
    }
    await this.#keyPrompt;
    await partsComplete(this.renderRoot);
    return isComplete;
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    for (const name of Object.keys(CHAT)) if (changed.has(name as keyof AgentChat)) checkProperty(this, name);
    if (changed.has("renderers")) this.#renderers.set(this.renderers);
    if (changed.has("toolRenderers")) this.#toolRenderers.set(this.toolRenderers);
    if (changed.has("messageActions")) this.#messageActions.set(this.messageActions);
    if (changed.has("messageHeader")) this.#messageHeader.set({ draw: this.messageHeader });
    if (changed.has("strings")) this.#locale.override(this.strings);
    if (changed.has("server")) this.#connect();
    else {
      if (changed.has("apiKey")) this.client?.setSiteKey(this.apiKey);
      if (changed.has("userToken")) this.client?.setUserToken(this.userToken);
      if (changed.has("metadata")) this.client?.setMetadata(this.metadata);
    }
    if (this.client) this.#owner?.update(this.client);
    if (changed.has("persist") || changed.has("conversations")) this.#clients.persistChanged();
    if (this.#hasConversation) void this.#needTalk();
    this.#updateContext();
    this.#updateEditor();
    this.#updateSheet(changed.has("accent"));
  }

  protected override firstUpdated(): void {
    if (this.page) this.warmUp();
  }

  protected override updated(): void {
    if (!this.asksForKey) this.#keyPrompt = undefined;
    else this.#keyPrompt ??= this.loadKeyPrompt();
    // The server's own page: its language is known only in the browser.
    const { lang } = this.#context.strings;
    const root = document.documentElement;
    // Written only if the value has changed, because a change makes the browser style the whole page again.
    if (this.page && this.getAttribute("lang") === "" && root.lang !== lang) root.lang = lang;
  }

  protected override render(): TemplateResult {
    return renderScreen({
      context: this.#context,
      direction: this.#locale.direction,
      client: this.client,
      shown: this.own ?? this.client?.info,
      composerActions: Array.isArray(this.composerActions) ? this.composerActions : NO_ACTIONS,
      disclaimer: this.disclaimer,
      suggested: this.suggested,
      editor: this.editor,
      list: this.keepsAll ? this.list : undefined,
      isDragging: this.#drop.isDragging,
      isKeyPromptMissing: this.isKeyPromptMissing,
      announcements: this.#announcer.render(),
      talk: this.talk,
      onKeyDown: this.#keyDown,
    });
  }

  readonly #keyDown = (event: KeyboardEvent): void => {
    void this.#needTalk();
    useKey(event, (pressed) => this.#commandOf(pressed));
  };

  /** Escape ends the edit that has the focus; otherwise it stops the answer; otherwise it moves the focus. */
  #commandOf(event: KeyboardEvent): (() => void) | undefined {
    const isEscape = event.key === "Escape";
    if (isEscape && this.editor?.contains(event.target as Node)) return () => void this.#actions.endEdit();
    if (isEscape && this.client?.session.status === "running") return () => this.stop();
    if (isShortcut(event, RESET_SHORTCUT) && this.#messages.length > 0) return () => this.#actions.closeConversation();
    const image = event.target as HTMLElement;
    if (/^(Enter| )$/.test(event.key) && image.matches("img.image[role]")) return () => image.click();
    const scroller = this.renderRoot.querySelector<HTMLElement>(".scroller");
    const target = scroller && focusTarget(event, scroller, this.talk?.tabStop);
    if (target === "composer") return () => this.focusComposer();
    return target ? () => target.focus() : undefined;
  }

  #connect(): void {
    const hadClient = this.client !== undefined;
    // The attribute was removed, or a framework has set no value.
    this.server ||= AgentChat.defaultServer || siteServer();
    const client = this.#clients.connect(this.server, this.pageInfo);
    this.pageInfo = undefined;
    void client?.library.restored.then(() => this.#actions.showRestored(client.library.restoredPlace));
    if (!hadClient) return;
    this.#watch(undefined);
    this.#clear();
  }

  #clientChanged({ reconnect, phase, session }: Client): void {
    this.requestUpdate();
    this.#watch(session.lastAnswer);
    if (session.queued.length > 0 && !session.busy) void this.#actions.sendQueued();
    const isLost = reconnect.state !== "online";
    if (isLost === this.#isConnectionLost) return;
    this.#isConnectionLost = isLost;
    const { strings } = this.#context;
    // An alert in place of the greeting says the same.
    const isSaid = isLost && phase === "unreachable" && this.#messages.length === 0;
    if (!isSaid) this.#announcer.say(isLost ? strings.unreachable : strings.connected);
  }

  /** Announces an answer to screen readers, from its beginning even if `talk` is loaded later. */
  #watch(answer: AssistantMessage | undefined): void {
    if (this.talk) this.talk.announcer.watch(answer);
    else if (answer?.status === "streaming") this.#begun ??= answer;
    else if (!answer) this.#begun = undefined;
  }

  /** Whether there are messages, or a stored conversation is being read. */
  get #hasConversation(): boolean {
    return this.#messages.length > 0 || this.client?.library.isRestoring === true;
  }

  /** Loads the code that draws and stores a conversation, with retries. Resolves after the first attempt. */
  #needTalk(): Promise<void> {
    this.#talkTried ??= tried(talks, (module) => this.#begin(module));
    this.client?.library.prepare();
    return this.#talkTried;
  }

  /** Loads the code for the owner's settings and for signing in, with retries. Resolves after the first attempt. */
  #needOwner(): Promise<void> {
    this.#ownerTried ??= tried(owners, ({ Owner }) => {
      this.#owner = new Owner(this, { theme: this.#theme, locale: this.#locale, clients: this.#clients });
      this.requestUpdate();
    });
    return this.#ownerTried;
  }

  #begin(module: { readonly Talk: typeof Talk }): void {
    const composerSheet = AgentChat.elementStyles.at(-1) as CSSResult;
    this.talk = new module.Talk(this, composerSheet.styleSheet as CSSStyleSheet, {
      announcer: this.#announcer,
      context: () => this.#context,
      messages: () => this.#messages,
    });
    this.#talkLoaded(this.talk);
    if (this.#begun) this.#watch(this.#begun);
    this.#watch(this.client?.session.lastAnswer);
  }

  /** @internal For a launcher: loads what the first message needs as soon as there is time. */
  warmUp(): void {
    whenIdle(() => void this.#needTalk());
  }

  /** Discards the edit, the suggestions and the announcements of a conversation that is removed. */
  #clear(): void {
    this.editor = undefined;
    this.suggested = [];
    this.#announcer.clear();
    this.#announcer.say(this.#context.strings.startedOver);
  }

  /** The user has signed out or changed: removes what they have written and seen. */
  #forget(wasShown: boolean): void {
    if (wasShown) {
      this.#watch(undefined);
      this.#clear();
      this.composer?.show({ text: "", files: [] });
      this.renderRoot.querySelector<HTMLDialogElement>(".lightbox")?.close();
    }
    this.dispatchEvent(new Event(USER_LEFT));
  }

  /** Waits for the first drawing if necessary: before it there is no composer. */
  async #withComposer<Result>(use: (composer: Composer) => Result): Promise<Awaited<Result> | undefined> {
    if (!this.composer) await this.updateComplete;
    const composer = this.composer;
    return composer ? await use(composer) : undefined;
  }

  /** Like `#restored`, before something is sent. Rejects if the server would not know the user. */
  async #admitted(method: string): Promise<void> {
    await this.updateComplete;
    const refusal = await this.client?.admit();
    await this.#restored();
    if (refusal && (this.client?.isHidden || refusal.code === "user_unknown")) {
      throw new Error(`${method}: ${failureText(refusal, this.texts)}`);
    }
  }

  /** Resolves when the conversation of an earlier page load is restored, which would undo earlier calls. */
  async #restored(): Promise<void> {
    await this.updateComplete;
    await this.client?.library.restored;
  }

  /** @internal Loads the form that asks for a key: at first, and when the user tries again. */
  async loadKeyPrompt(): Promise<void> {
    try {
      await loadPart("agent-chat-key-prompt");
      this.isKeyPromptMissing = false;
    } catch {
      this.isKeyPromptMissing = true;
    }
  }

  /** Keeps the object as long as nothing in it changes: a new one redraws every message. */
  #updateContext(): void {
    const { strings } = this.#locale;
    const modes: ChatModes = {
      thinking: this.thinking,
      // On this machine, the agent's author wants to see the tools' data; elsewhere people read only their titles.
      tools: this.tools === "auto" && !LOOPBACK.test(this.client?.server.hostname ?? "") ? "titles" : this.tools,
      feedback: this.feedback ?? this.own?.feedback ?? this.client?.info?.feedback === true,
    };
    const known = this.#context;
    const context: ChatContext = {
      strings,
      agent: (this.own ?? this.client?.info)?.agent ?? strings.fallbackAgent,
      modes: known && hasSameEntries(known.modes, modes) ? known.modes : modes,
      theme: this.#theme.theme,
      nextTheme: this.#theme.next,
      images: this.images,
      headingLevel: Number(this.headingLevel) || (this.page ? 2 : 3),
      actions: this.#actions,
      renderers: this.#renderers.table,
      toolRenderers: this.#toolRenderers.table,
      messageActions: this.#messageActions.list,
      messageHeader: this.#messageHeader.table.draw,
    };
    if (!known || !hasSameEntries(known, context)) this.#context = context;
  }

  /** Sets the properties of the editor that replaces a message, which no template does. */
  #updateEditor(): void {
    const { editor, client } = this;
    if (!editor?.edits || !client) return;
    const { session, info, library } = client;
    const isShown = editor.edits.conversation === library.shownId && !library.isRestoring;
    if (isShown && !session.canReplace(editor.edits.id)) void this.#actions.giveUpEdit(editor);
    else Object.assign(editor, { context: this.#context, info, session, isBusy: session.busy });
  }

  #updateSheet(isAccentNew: boolean): void {
    const { style } = this.#sheet.cssRules[0] as CSSStyleRule;
    // Everything inside inherits the direction.
    const { direction } = this.#locale;
    if (style.direction !== direction) style.setProperty("direction", direction, "important");
    if (isAccentNew) style.setProperty("--_accent", this.accent && `var(--agent-chat-accent, ${this.accent})`);
  }
}

/** Draws conversations. An empty chat does not need it. */
const talks = lazy(() => import("../ui/talk.ts"), "Talk");

const owners = lazy(() => import("./owner.ts"), "Owner");

const transcripts = lazy(() => import("../ui/export.ts"), "exportTranscript");

/** Loads a part, with retries, and uses it. Resolves after the first attempt. */
function tried<Module>(part: Lazy<Module>, use: (module: Module) => void): Promise<void> {
  return new Promise((resolve) => {
    void part.loadEventually(undefined, resolve).then((module) => {
      if (module) use(module);
      resolve();
    });
  });
}

const warnings = lazy(() => import("./warnings.ts"));

/** Replaces an invalid value of a property by its initial value, and warns. */
function checkProperty(chat: AgentChat, name: string): void {
  const row = CHAT[name] ?? {};
  const value: unknown = Reflect.get(chat, name);
  // A token may be a string, but not in an attribute, which everybody can read in the page's source.
  const isText =
    row.kind === "object" && typeof value === "string" && (name !== "userToken" || chat.hasAttribute(name));
  if (isValid(row, value) && !isText) return;
  const warn = ({ warnOfText, warnOfValue }: typeof import("./warnings.ts")) =>
    isText ? warnOfText(chat, name, value) : warnOfValue(chat, name, row, value);
  if (isText || value) warnings.load().then(warn, () => undefined);
  Reflect.set(chat, name, initialValue(row));
}

/** The server of elements whose script a site has bundled: the page's origin, with a warning. */
function siteServer(): string {
  const { origin } = location;
  console.warn(
    `<agent-chat> needs the attribute server="https://…", the address of a Parley server. Until then it asks ${origin}`,
  );
  return `${origin}/`;
}

/** Host names of this machine. */
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1])$/;

const NO_ACTIONS: readonly never[] = [];

/** Events for the launcher's panel. */
const USER_LEFT = "user-left";
const MESSAGE_ADDED = "message-added";

/** Resolves at the next animation frame, or within a second in a hidden tab, which gets no frames. */
function nextFrame(): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, 1_000);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
