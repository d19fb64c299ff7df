/** One server: the access to it, the conversation with its agent, and what keeps the conversation. */

import type { AgentInfo } from "../../server/protocol/chat.ts";
import type { ErrorEvent } from "../../server/protocol/events.ts";
import { ChatSession, type SessionListener } from "../conversations/chat-session.ts";
import type { OutgoingMessage } from "../conversations/conversation.ts";
import { Library, type LibraryOptions } from "../conversations/library.ts";
import type { AssistantMessage, Failure } from "../conversations/messages.ts";
import type { OpenConversation } from "../conversations/open-conversation.ts";
import type { ConversationStore } from "../conversations/store.ts";
import { lazy } from "../loading/lazy.ts";
import { Access, type AccessOptions } from "./access.ts";
import type { Ratings } from "./ratings.ts";

export interface ClientOptions
  extends SessionListener,
    AccessOptions,
    Pick<LibraryOptions, "id" | "onDraft" | "onSwitch" | "place">,
    Partial<Pick<LibraryOptions, "keepsAll">> {
  /** The server has described its agent. */
  readonly onReady: (info: AgentInfo) => void;
  /** A message that was not sent is returned to the user, who has to sign in. */
  readonly onUnsent?: (message: OutgoingMessage) => void;
  readonly onLoginRequired?: () => void;
  /** A user has left, and nothing of theirs is shown any more; `wasShown`: whether anything was. */
  readonly onForget?: (wasShown: boolean) => void;
  /** Default: IndexedDB. */
  readonly store?: ConversationStore;
}

/** Loaded for stored conversations: a first visitor's empty chat is drawn before that. */
const databases = lazy(() => import("../conversations/indexed-db.ts"), "IndexedDbStore");

/** For users who type a key. */
const checks = lazy(() => import("../transport/check.ts"), "check");

const ratings = lazy(() => import("./ratings.ts"), "Ratings");

export class Client extends Access {
  readonly library: Library;
  /** Whether the server is being asked about a typed key. */
  isCheckingKey = false;
  readonly #options: ClientOptions;
  #ratings: Ratings | undefined;
  #wasReady = false;
  /** The message that the server refused last, if nobody has signed in since. */
  #unsent: OutgoingMessage | undefined;
  /** Sessions whose connection was opened with a key that has been replaced. */
  readonly #stale = new Set<ChatSession>();

  constructor(options: ClientOptions) {
    super(options);
    const { server, id, store, onDraft, onSwitch, onChange } = options;
    this.#options = options;
    this.library = new Library({
      server,
      id,
      store: async () => store ?? new (await databases.load()).IndexedDbStore(server),
      sessionOf: (conversation) => this.#sessionOf(conversation),
      owner: () => ({ agent: this.info?.agent ?? this.library.agent, user: this.user }),
      keepsAll: () => options.keepsAll?.() === true,
      mayShow: (user) => (this.isKnown && user === this.user) || (user === "" && !this.isHidden),
      isAsking: () => !this.isKnown && !this.refusal,
      isOtherAgent: (agent) => this.#isOtherAgent(agent),
      onErased: () => options.onForget?.(false),
      onShow: () => {
        this.#goOn();
        this.prepare();
      },
      onRestored: () => this.#goOn(),
      onDraft,
      onSwitch,
      place: options.place,
      onChange,
      cancel: (run) => void this.session.transport.cancel(run),
    });
  }

  /** The run of the conversation that is shown. */
  get session(): ChatSession {
    return this.library.shown;
  }

  /** Whether the server accepts messages from this user, and the element is in the page. */
  get isReady(): boolean {
    return this.isOpen && this.isKnown && !this.refusal && !this.key.prompt && !this.library.isRestoring;
  }

  protected override disconnect(): void {
    for (const { transport } of this.library.sessions) transport.close();
  }

  #sessionOf(conversation: OpenConversation): ChatSession {
    const { onToken, onTool, onAnswerEnd, onChange } = this.#options;
    const isShown = () => session === this.library.shown;
    const session: ChatSession = new ChatSession({
      conversation,
      transport: this.connection(),
      reconnect: this.reconnect,
      metadata: () => (this.metadata ? { metadata: this.metadata } : {}),
      classifyError: (error) => this.#classifyError(error),
      onChange: () => {
        this.#closeStale(session);
        this.library.changed(session);
        if (isShown()) onChange();
      },
      onToken: (text, messageId) => isShown() && onToken(text, messageId),
      onTool: (call, messageId) => isShown() && onTool(call, messageId),
      onAnswerEnd: (message) => {
        if (message.status === "done") this.key.accepted();
        if (isShown()) onAnswerEnd(message);
        else conversation.change({ type: "unread" });
      },
    });
    return session;
  }

  /** Resumes runs, restores the conversation of an earlier page load, and asks about the agent until the server answers. */
  open(persist: boolean): void {
    this.isOpen = true;
    this.listen();
    if (persist) this.library.open();
    for (const session of this.library.sessions) session.resume();
    this.reconnect.retryNow();
    void this.ask();
  }

  /** Sets the site's own key, or removes it with an empty string; the conversation continues. */
  setSiteKey(key: string | null | undefined): void {
    this.key.setSiteKey(key);
    for (const session of this.library.sessions) {
      this.#stale.add(session);
      this.#closeStale(session);
    }
    if (!this.key.isOfSite) return;
    this.#unlock();
    void this.ask();
  }

  /** To be called on `pageshow` if the page was left before: another page may have another user. */
  override async returned(): Promise<void> {
    await super.returned();
    this.library.resume();
  }

  /** Checks a key that the user has typed; unless it is refused, a waiting message is sent. */
  async submitKey(key: string): Promise<void> {
    if (this.isCheckingKey) return;
    this.key.type(key);
    this.disconnect();
    this.isCheckingKey = true;
    this.#options.onChange();
    // Without an answer the next message shows whether the key is accepted.
    const answer = await checks
      .load()
      .then(({ check }) => check(this.endpoint))
      .then(
        (refusal) => ({ refusal }),
        () => undefined,
      );
    this.isCheckingKey = false;
    if (answer?.refusal) this.#asksForKey(answer.refusal);
    // A refused key is forgotten, and the user may have removed it in the meantime.
    if (!this.key.value) {
      this.#options.onChange();
      return;
    }
    if (answer) this.key.accepted();
    this.#unlock();
  }

  /** Sends the rating of an answer, if the server accepts ratings. Resolves with the failure, if any. */
  async sendFeedback(message: AssistantMessage): Promise<Failure | undefined> {
    if (!this.info?.feedback || !message.run) return undefined;
    const rater = { user: this.user, conversation: this.session.state.conversation };
    const module = await ratings.load().catch(() => undefined);
    if (!module) return { code: "unreachable", retryable: true };
    this.#ratings ??= new module.Ratings(this);
    return this.#ratings.send(message, rater);
  }

  /** Forgets the typed key here and in the browser's storage. */
  forgetKey(): void {
    this.key.forget();
    this.disconnect();
    if (this.info?.auth_required) this.key.prompt = "required";
    this.#options.onChange();
  }

  /** Opens the connection early. To be called when a message is likely to follow soon. */
  prepare(): void {
    if (this.phase === "ready" && !this.key.prompt) this.session.transport.prepare();
  }

  /** To be called when the network is back or has changed: an old connection may be dead. */
  networkChanged(): void {
    this.reconnect.retryNow();
    this.disconnect();
  }

  /** To be called on `pagehide`: saves, and ends what keeps the browser from showing the page again as it was left. */
  suspend(): void {
    this.library.suspend();
    for (const session of this.library.sessions) if (!session.busy) session.transport.close();
  }

  /**
   * Disconnects: the element has left the page, but the user has stopped nothing. A run continues at the server, and
   * here with `open`, or in another element that finds it in the store.
   */
  close(): void {
    this.leave();
    for (const session of this.library.sessions) session.pause();
    this.networkChanged();
    this.library.leave();
    this.isOpen = false;
  }

  protected override ready(info: AgentInfo): void {
    if (this.#isOtherAgent(this.library.agent)) void this.library.reset();
    this.#unsent = undefined;
    this.answered();
    if (!this.#wasReady) this.#options.onReady(info);
    this.#wasReady = true;
    void this.library.restored.then(() => this.#goOn());
  }

  protected override loginRequired(): void {
    this.#unsent = this.session.withdraw(true);
    this.answered();
    this.returnUnsent();
    this.#options.onLoginRequired?.();
  }

  protected override returnUnsent(): void {
    if (this.#unsent) this.#options.onUnsent?.(this.#unsent);
  }

  protected override answered(): void {
    this.library.userChanged();
    this.#options.onChange();
  }

  /** See `Access.forget`. Also closes the connections, which belong to the user. */
  protected override async forget(next: string, leaving?: string): Promise<void> {
    const keepsRows = leaving === undefined && this.#options.keepsAll?.() === true;
    const forgotten = this.library.forget(keepsRows);
    this.user = "";
    this.#options.onForget?.(true);
    await forgotten;
    await this.library.purge(next, leaving);
  }

  /** Continues runs that wait for their user or a key, unless they still have to wait. */
  #goOn(): void {
    if (!this.isSettled || this.key.prompt) return;
    for (const session of this.library.sessions) session.unlock();
  }

  /** Whether a conversation was with another agent at this address. The current agent does not know it. */
  #isOtherAgent(agent: string): boolean {
    const { info } = this;
    return info !== undefined && agent !== "" && agent !== info.agent;
  }

  /**
   * Closes a connection that was opened with another key. A running answer belongs to the key that it was requested
   * with, and ends on its connection.
   */
  #closeStale(session: ChatSession): void {
    if (session.status !== "running" && this.#stale.delete(session)) session.transport.close();
  }

  #unlock(): void {
    this.key.prompt = undefined;
    this.#options.onChange();
    for (const session of this.library.sessions) session.unlock();
  }

  #classifyError(error: ErrorEvent): ErrorEvent | undefined {
    if (error.code === "login_required") {
      this.renew();
      return undefined;
    }
    if (this.#asksForKey(error)) return undefined;
    const { code, data } = error;
    if (code !== "unauthorized" && code !== "forbidden") return error;
    if (code === "unauthorized" && this.key.isOfSite) void this.diagnose().then((it) => it?.hasWrongKey());
    else if (!this.refusal) this.hint(data);
    // The site's key and origin do not concern the visitor: they see the text for the code, not the server's message.
    return { ...error, data: "" };
  }

  #asksForKey(error: ErrorEvent): boolean {
    if (this.#options.asksPeople === false || !this.key.isAskedForBy(error)) return false;
    this.disconnect();
    return true;
  }
}
