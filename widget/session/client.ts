/** One server: its agent, the key that opens it, the conversation with it, and what keeps the conversation. */

import type { AgentInfo } from "../../server/protocol/chat.ts";
import type { ErrorEvent } from "../../server/protocol/events.ts";
import { lazy } from "../loading/lazy.ts";
import { forget, recall, remember } from "../storage/storage.ts";
import { FallbackTransport } from "../transport/fallback.ts";
import { errorCodeOf } from "../transport/parse-event.ts";
import { ApiKey } from "./api-key.ts";
import { ChatSession, type OutgoingMessage, type SessionListener } from "./chat-session.ts";
import type { Identity, Metadata, UserToken } from "./identity.ts";
import { ConversationKeeper, type Restored } from "./keeper.ts";
import type { AssistantMessage, Failure, Refusal } from "./messages.ts";
import { ReconnectPolicy } from "./reconnect-policy.ts";
import { fetchAgentInfo } from "./server.ts";
import type { SiteDiagnosis } from "./site-diagnosis.ts";
import { type ConversationStore, IndexedDbStore } from "./store.ts";
import type { Draft, Place } from "./tab-slot.ts";

export type { OutgoingMessage } from "./chat-session.ts";
export type { Metadata, UserToken } from "./identity.ts";
export type { Draft, EditedMessage, Written } from "./tab-slot.ts";

export interface ClientOptions extends SessionListener {
  /** See `parseServer`. */
  readonly server: URL;
  /** Id of the element, or an empty text: it distinguishes several chats of one server in one tab. */
  readonly id: string;
  /** A key that the site brings, or an empty text. */
  readonly siteKey: string;
  /** Whether people may have keys: on pages of the server itself. Visitors of another site have none. */
  readonly asksPeople?: boolean;
  /** What the page knows of the agent, so that the server is not asked. */
  readonly info?: AgentInfo | undefined;
  readonly userToken?: UserToken | undefined;
  readonly metadata?: Metadata | undefined;
  /** The server has described its agent. */
  readonly onReady: (info: AgentInfo) => void;
  /** The user has to sign in. A message that was sent meanwhile comes back. */
  readonly onLoginRequired?: (unsent: OutgoingMessage | undefined) => void;
  /** A user has left, and nothing of them is here any more; `wasShown` says whether anything was. */
  readonly onForget?: (wasShown: boolean) => void;
  /** An earlier page load left this. Called by `open`, and when the page is shown again. */
  readonly onDraft: (draft: Draft) => void;
  /** Where the reader is in the conversation; absent at its end. */
  readonly place?: () => Place | undefined;
  /** Whether the browser keeps all conversations, and lists them. */
  readonly keepsAll?: () => boolean;
  /** Default: IndexedDB. */
  readonly store?: ConversationStore;
}

type RefusedPhase = "unauthorized" | "forbidden" | "login_required" | "user_unknown";

/** A name that no user has. */
const NOBODY = "nobody";

/** For networks that block WebSocket. */
const http = lazy(() => import("../transport/http.ts"), "HttpTransport");

/** For pages that cannot use the server. */
const diagnosis = lazy(() => import("./site-diagnosis.ts"), "SiteDiagnosis");

/** For pages and servers that know their users. */
const identity = lazy(() => import("./identity.ts"), "Identity");

export class Client {
  readonly server: URL;
  readonly session: ChatSession;
  readonly reconnect: ReconnectPolicy;
  readonly key: ApiKey;
  readonly keeper: ConversationKeeper;
  /** What the server says of its agent; absent until it has. */
  info: AgentInfo | undefined;
  /**
   * `unauthorized`, `forbidden`: the server is there, but not without a key of the site, or not for pages of this origin.
   * `login_required`: nor for users that it does not know. `user_unknown`: the page does not say who they are.
   */
  phase: "connecting" | "ready" | "unreachable" | RefusedPhase = "connecting";
  /** The user of the conversation, as `/api/info` names them; empty without one. */
  user = "";
  /** Whether the server has named the user, or said that there is none. They stay known until it names another one. */
  isKnown = false;
  userToken: UserToken | undefined;
  /** See `IdentityHost`. */
  readonly userName: string;
  /** Whether the server is being asked about a typed key. */
  isCheckingKey = false;
  readonly #options: ClientOptions;
  readonly #transport: FallbackTransport;
  /** The last rating that was sent. */
  #feedback: Promise<string | undefined> = Promise.resolve(undefined);
  /** The name of the agent that the restored conversation was with. */
  #agent = "";
  /** Ends the asking about the agent and the user; absent while nothing is asked. */
  #loading: AbortController | undefined;
  /** Resolves after the first answer or failure. */
  #attempt: Promise<void> = Promise.resolve();
  /** Whether the server is to be asked about the user, for the first time or again. */
  #isDue = true;
  /** Whether what is kept waits until the user is known. */
  #asksUser = false;
  #identity: Identity | undefined;
  /** Whether the server was asked about the user since the last message or answer, because it did not take a message. */
  #wasRenewed = false;
  #wasReady = false;
  /** Whether its element is in the page. */
  isOpen = false;
  #metadata: Metadata | undefined;
  /** What the page has set as metadata, until it is checked. */
  #unchecked: { readonly metadata: unknown } | undefined;
  /** Whether the connection was opened with a key that is no longer the one to send. */
  #isConnectionStale = false;
  #diagnosis: SiteDiagnosis | undefined;

  constructor(options: ClientOptions) {
    const { server, id, siteKey, store = new IndexedDbStore(server), onDraft, onChange } = options;
    this.#options = options;
    this.server = server;
    this.userName = `agent-chat-user:${server.href}`;
    this.key = new ApiKey(server);
    this.key.setSiteKey(siteKey);
    this.reconnect = new ReconnectPolicy(onChange);
    const blockedName = `agent-chat-blocked:${server.href}`;
    this.#transport = new FallbackTransport(
      {
        server,
        key: () => this.key.value,
        userToken: () => this.#identity?.token,
        onOpen: () => this.reconnect.opened(),
        isSocketBlocked: recall(blockedName, "sessionStorage") !== undefined,
        onSocketBlocked: (isBlocked) => {
          if (isBlocked) remember(blockedName, "yes", "sessionStorage");
          else forget(blockedName, "sessionStorage");
        },
      },
      async () => (await http.load()).HttpTransport,
    );
    this.session = new ChatSession({
      ...options,
      transport: this.#transport,
      reconnect: this.reconnect,
      metadata: () => (this.#metadata ? { metadata: this.#metadata } : {}),
      classifyError: (error) => this.#classifyError(error),
      onChange: () => {
        this.#closeStale();
        this.keeper.changed();
        onChange();
      },
      onPending: (change) => void this.keeper.queue(change),
      onAnswerEnd: (message) => {
        if (message.status === "done") this.key.accepted();
        this.#wasRenewed = false;
        options.onAnswerEnd(message);
      },
    });
    this.keeper = new ConversationKeeper({
      server,
      id,
      store,
      read: () => ({ ...this.session.data, agent: this.info?.agent ?? this.#agent, user: this.user }),
      progress: () => this.session.progress,
      cancel: (run) => void this.#transport.cancel(run),
      keepsAll: () => options.keepsAll?.() === true,
      mayShow: (user) => (this.isKnown && user === this.user) || (user === "" && !this.isHidden),
      isAsking: () => !this.isKnown && !this.refusal,
      onErased: () => options.onForget?.(false),
      restore: (stored, reportedUntil, isNewer) => this.#restore(stored, reportedUntil, isNewer),
      fill: (restored, filled) => this.session.addFiles(restored, filled),
      onDraft,
      onPending: (list) => this.session.setPending(list),
      place: options.place,
      onChange,
    });
    this.setUserToken(options.userToken);
    this.setMetadata(options.metadata);
  }

  /** Goes on with a run, restores the conversation of an earlier page load, and asks the server about its agent until it answers. */
  open(persist: boolean): void {
    this.isOpen = true;
    this.#identity?.open();
    if (persist) this.keeper.open();
    this.session.resume();
    this.reconnect.retryNow();
    void this.#load();
  }

  /** A key that the site brings from now on, or an empty text; the conversation goes on. */
  setSiteKey(key: string | null | undefined): void {
    this.key.setSiteKey(key);
    // A running answer belongs to the key with which it was asked for, and ends on its connection.
    this.#isConnectionStale = true;
    this.#closeStale();
    if (!this.key.isOfSite) return;
    this.#unlock();
    void this.#load();
  }

  /**
   * Sets the user from now on. A function in place of a function, as frameworks set it with each of their renders, is asked
   * with the next message; and soon, at most once a second, while no user is known. So is what is set again while the chat
   * says that one must sign in.
   */
  setUserToken(token: UserToken | null | undefined): void {
    const before = this.userToken;
    this.userToken = token || undefined;
    const isSame = before === this.userToken;
    if (isSame && !this.refusal) return;
    this.#asksUser = true;
    if (!this.isOpen) this.#isDue = true;
    else if (isSame || (typeof before === "function" && typeof this.userToken === "function")) {
      if (!this.#loading && !this.user) void this.#withIdentity().then((it) => it?.checkSoon());
    } else if (this.userToken) void this.recheck();
    else void this.reload();
  }

  /** What goes with each message from now on. */
  setMetadata(metadata: unknown): void {
    if (!metadata && !this.#metadata && !this.#unchecked) return;
    this.#unchecked = { metadata };
    void this.#withCheckedMetadata();
  }

  /** Whether the metadata is checked, for which code has to be loaded: no message goes without it. */
  async #withCheckedMetadata(): Promise<boolean> {
    const it = this.#unchecked && (await this.#withIdentity());
    if (it && this.#unchecked) this.#metadata = it.metadata(this.#unchecked.metadata, (text) => this.#hint(text));
    if (it) this.#unchecked = undefined;
    return !this.#unchecked;
  }

  /** Why no message can be sent, if none can, after it was asked who sends it. */
  async admit(): Promise<Refusal | undefined> {
    if (!(await this.#withCheckedMetadata())) return { code: "unreachable", retryable: true };
    this.#wasRenewed = false;
    const { user } = this;
    if (this.#asksUser) {
      await (await this.#withIdentity())?.check();
      // Another message, or the page, may have asked anew meanwhile.
      await this.#attempt;
      // The user who wrote it has signed out.
      if (user && !this.user) return { code: "login_required", retryable: false };
      if (this.#isDue && !this.refusal) return { code: "unreachable", retryable: true };
    } else if (this.refusal) this.askAgain();
    return this.refusal;
  }

  /** Forgets the user, and all that the browser has of them. Resolves when nothing is left. */
  async signOut(): Promise<void> {
    this.userToken = undefined;
    await Promise.all([this.#forget(NOBODY, true), this.#withIdentity()]);
    this.#identity?.signOut();
    this.#transport.close();
    await this.reload();
  }

  /** For `Identity`: another tab has signed the user out, or has another one. */
  leave(isSignedOut: boolean): void {
    if (isSignedOut) this.userToken = undefined;
    // If another user has come, their tab removes what is kept.
    void this.#forget(isSignedOut ? NOBODY : "");
    if (this.isOpen) void this.reload();
  }

  /** Asks for the user as if none was known. */
  reload(): Promise<void> {
    this.isKnown = false;
    return this.recheck();
  }

  /** Asks once more for the user. Who is known stays known, and is shown, until the server has named another one. */
  recheck(): Promise<void> {
    this.#loading?.abort();
    this.#loading = undefined;
    this.#isDue = true;
    this.#asksUser = true;
    if (this.refusal) this.phase = this.info ? "ready" : "connecting";
    this.#options.onChange();
    return this.#load();
  }

  /** For `Identity`: the page does not name its user. */
  refuse(): void {
    this.phase = "user_unknown";
    this.#options.onChange();
  }

  /** Whether the server has answered about the user since it was last to be asked. */
  get isSettled(): boolean {
    return this.isKnown && !this.#isDue;
  }

  /** Whether nothing is shown of the conversation, because its user is not known yet. */
  get isHidden(): boolean {
    return this.#asksUser && !this.isKnown;
  }

  /** To be called on `pageshow` if the page was left before: another page may have another user. */
  async returned(): Promise<void> {
    this.#identity?.lookUp();
    if (this.#asksUser) await this.reload();
    this.keeper.resume();
  }

  /** Tries a key that the person typed; then a waiting message is sent. */
  async submitKey(key: string): Promise<void> {
    if (this.isCheckingKey) return;
    this.key.type(key);
    this.#transport.close();
    this.isCheckingKey = true;
    this.#options.onChange();
    // Without an answer the next message shows whether the key is accepted.
    const answer = await this.#transport.check().then(
      (refusal) => ({ refusal }),
      () => undefined,
    );
    this.isCheckingKey = false;
    if (answer?.refusal) this.#asksForKey(answer.refusal);
    // A refused key is forgotten, and the person may have forgotten it meanwhile.
    if (!this.key.value) {
      this.#options.onChange();
      return;
    }
    if (answer) this.key.accepted();
    this.#unlock();
  }

  /** Brings back the conversation that the person has closed. */
  undo(): void {
    this.session.undo();
    // The key that it waited for may have been given meanwhile.
    if (this.isSettled && !this.key.prompt) this.session.unlock();
  }

  /** Sends the rating of an answer, after those before, if the server takes any. Resolves with why it was not taken. */
  sendFeedback({ run, feedback }: AssistantMessage): Promise<Failure | undefined> {
    if (!this.info?.feedback || !run) return Promise.resolve(undefined);
    const { rating = null, reason, comment } = feedback ?? {};
    const { user } = this;
    const { conversation } = this.session.state;
    const send = async () => {
      const refusal = await this.admit();
      // Another user is here by now, and has rated nothing.
      if (user && user !== this.user) return undefined;
      const metadata = this.#metadata;
      return refusal?.code ?? this.#transport.rate({ run, conversation, rating, reason, comment, metadata });
    };
    this.#feedback = this.#feedback.then(send);
    return this.#feedback.then((code) => (code ? { code: errorCodeOf(code), retryable: true } : undefined));
  }

  /** Forgets the typed key here and in the browser's storage. */
  forgetKey(): void {
    this.key.forget();
    this.#transport.close();
    if (this.info?.auth_required) this.key.prompt = "required";
    this.#options.onChange();
  }

  /** To be called when a message is likely to come: it does not wait for its connection then. */
  prepare(): void {
    if (this.phase === "ready" && !this.key.prompt) this.#transport.prepare();
  }

  /** To be called when the network is back, or another one: a connection from before may be dead. */
  networkChanged(): void {
    this.reconnect.retryNow();
    this.#transport.close();
  }

  /** To be called on `pagehide`: saves, and ends what keeps the browser from showing the page again as it was left. */
  suspend(): void {
    this.session.forgetClosed();
    this.keeper.suspend();
    if (!this.session.busy) this.networkChanged();
  }

  /** Asks about the agent once more; the conversation goes on. */
  async refresh(): Promise<AgentInfo | undefined> {
    const info = await fetchAgentInfo(this.server, new AbortController().signal).catch(() => this.info);
    if (this.info) this.info = info;
    this.#options.onChange();
    return info;
  }

  /**
   * Disconnects: the element has left the page, which is no wish of the person. A run goes on at the server, and here
   * with `open`, or in another element that finds it in the store.
   */
  close(): void {
    this.#loading?.abort();
    this.#loading = undefined;
    this.session.forgetClosed();
    this.session.pause();
    this.networkChanged();
    this.keeper.close();
    this.#identity?.close();
    this.isOpen = false;
  }

  /** Why the server takes no messages of this page, if it takes none. */
  get refusal(): Refusal | undefined {
    const { phase } = this;
    if (phase === "connecting" || phase === "ready" || phase === "unreachable") return undefined;
    return { code: phase, retryable: phase === "user_unknown" };
  }

  /** To be called when a page that was refused tries once more: the site's owner may have mended it. */
  askAgain(): void {
    void this.#load();
  }

  /** Asks about the agent and the user, again and again until the server answers or refuses the page. */
  #load(): Promise<void> {
    if (this.#isDue && !this.#loading) {
      this.#loading = new AbortController();
      this.#attempt = this.#tryOnce(this.#loading.signal);
    }
    return this.#attempt;
  }

  async #tryOnce(signal: AbortSignal): Promise<void> {
    const { userToken } = this;
    const info = await this.#ask(signal).catch(async (error: unknown) => {
      const wasUnreachable = this.phase === "unreachable";
      const why = (await (await this.#diagnose())?.explain(error, wasUnreachable, signal)) ?? "unreachable";
      // It has not asked with the user's token.
      return typeof why === "object" && this.#asksUser ? "unreachable" : why;
    });
    // The element has left the page, or has another server or user by now.
    if (signal.aborted) return;
    if (typeof info !== "object") this.phase = info;
    else if (this.#lacksKey(info)) this.phase = "unauthorized";
    // The server could not say now who is there.
    else if (info.user_pending && !this.isKnown) this.phase = "unreachable";
    else {
      this.#loading = undefined;
      this.#begin(info.user_pending ? { ...info, user: this.user } : info);
      // The page has set another function meanwhile, which was not asked.
      if (this.refusal && userToken !== this.userToken) this.#identity?.checkSoon();
      return;
    }
    if (this.refusal) this.#loading = undefined;
    else void this.reconnect.wait().then(() => (signal.aborted ? undefined : this.#tryOnce(signal)));
    this.keeper.userChanged();
    this.#options.onChange();
  }

  async #ask(signal: AbortSignal): Promise<AgentInfo | "user_unknown"> {
    const { info } = this.#options;
    if (info && !this.info) {
      if (!info.user_pending && !this.#asksUser) return info;
      this.#asksUser = true;
      this.info = info;
      this.phase = "ready";
      this.#options.onChange();
    }
    if (!this.#asksUser) return fetchAgentInfo(this.server, signal);
    return (await this.#loadIdentity()).ask(signal);
  }

  async #loadIdentity(): Promise<Identity> {
    const { Identity } = await identity.load();
    if (!this.#identity) {
      this.#identity = new Identity(this);
      if (this.isOpen) this.#identity.open();
    }
    return this.#identity;
  }

  #withIdentity(): Promise<Identity | undefined> {
    return this.#loadIdentity().catch(() => undefined);
  }

  /** Whether the site has forgotten its key. */
  #lacksKey({ auth_required }: AgentInfo): boolean {
    if (!auth_required || this.key.isOfSite || this.#options.asksPeople !== false) return false;
    void this.#diagnose().then((it) => it?.lacksKey());
    return true;
  }

  /** The server has described the agent, and named the user. */
  #begin(info: AgentInfo): void {
    const { user = "" } = info;
    this.reconnect.succeeded();
    this.info = info;
    // Until a user comes, or is signed out, what is kept waits: before that no user is known to have left.
    if (user || recall(this.userName)) void this.#withIdentity().then((it) => it?.settled(user));
    if (info.login_required) {
      this.#requireLogin();
      return;
    }
    this.phase = "ready";
    if (this.user && this.user !== user) void this.#forget(user || NOBODY);
    if (this.#isOtherAgent(this.#agent)) void this.session.reset();
    if (info.auth_required && this.key.value === undefined) this.key.prompt = "required";
    this.user = user;
    this.isKnown = true;
    this.#isDue = false;
    this.#asksUser ||= user !== "";
    this.keeper.userChanged();
    this.#options.onChange();
    if (!this.#wasReady) this.#options.onReady(info);
    this.#wasReady = true;
    void this.keeper.restored.then(() => {
      if (this.isSettled && !this.key.prompt) this.session.unlock();
    });
  }

  /** The server does not know the user. Their message goes back to them; an answer that has begun waits. */
  #requireLogin(): void {
    this.phase = "login_required";
    this.isKnown = false;
    this.#isDue = true;
    this.#asksUser = true;
    const unsent = this.session.withdraw(true);
    this.keeper.userChanged();
    this.#options.onChange();
    this.#options.onLoginRequired?.(unsent);
  }

  /** Asks once for each message for the user of the moment: the token, or a session of the site, may be another one. */
  #renew(): void {
    this.#transport.close();
    if (this.#wasRenewed) this.#requireLogin();
    else void this.recheck();
    this.#wasRenewed = true;
  }

  /**
   * Leaves nothing of the user here, and of tabs' conversations nothing of anybody but `next`, if one is named. What the
   * library has waits for its user, unless they have signed out. The connection is theirs, too.
   */
  #forget(next: string, isSignedOut = false): Promise<void> {
    // Before the server has named them, it is known who they were.
    const leaving = isSignedOut ? this.user || recall(this.userName)?.replace("cookie:", "") : undefined;
    const keepsRows = !isSignedOut && this.#options.keepsAll?.() === true;
    if (keepsRows) {
      this.keeper.save();
      this.keeper.forget(true);
    }
    void this.session.reset();
    this.#transport.close();
    this.#agent = "";
    if (!keepsRows) this.keeper.forget();
    this.user = "";
    this.#options.onForget?.(true);
    return this.keeper.purge(next, leaving);
  }

  #restore(stored: Restored, reportedUntil: number, isNewer: boolean): void {
    // What this element shows already is newer than what another one has left.
    const isOld = this.session.messages.length > 0 && !isNewer;
    if (isOld || this.#isOtherAgent(stored.agent)) return;
    this.#agent = stored.agent;
    this.session.restore(stored, reportedUntil);
    if (isNewer) this.#transport.close();
    if (this.isSettled && !this.key.prompt) this.session.unlock();
  }

  /** Whether the conversation was with another agent at this address: this one knows nothing of it. */
  #isOtherAgent(agent: string): boolean {
    return this.info !== undefined && agent !== "" && agent !== this.info.agent;
  }

  /** Closes a connection that was opened with another key, unless an answer comes over it. */
  #closeStale(): void {
    if (!this.#isConnectionStale || this.session.status === "running") return;
    this.#isConnectionStale = false;
    this.#transport.close();
  }

  /** Nothing where the code cannot be loaded: it is for the site's owner, on the console. */
  async #diagnose(): Promise<SiteDiagnosis | undefined> {
    const module = await diagnosis.load().catch(() => undefined);
    if (module) this.#diagnosis ??= new module.SiteDiagnosis(this.server, () => this.#transport.checkSocket());
    return this.#diagnosis;
  }

  #hint(text: string): void {
    void this.#diagnose().then((it) => it?.hint(text));
  }

  #unlock(): void {
    this.key.prompt = undefined;
    this.#options.onChange();
    this.session.unlock();
  }

  #classifyError(error: ErrorEvent): ErrorEvent | undefined {
    if (error.code === "login_required") {
      this.#renew();
      return undefined;
    }
    if (this.#asksForKey(error)) return undefined;
    const { code, data } = error;
    if (code !== "unauthorized" && code !== "forbidden") return error;
    if (code === "unauthorized" && this.key.isOfSite) void this.#diagnose().then((it) => it?.hasWrongKey());
    else if (!this.refusal) this.#hint(data);
    // The site's key and origin are none of the visitor's: the text of the code says so, not the server's sentence.
    return { ...error, data: "" };
  }

  #asksForKey(error: ErrorEvent): boolean {
    if (this.#options.asksPeople === false || !this.key.isAskedForBy(error)) return false;
    this.#transport.close();
    return true;
  }
}
