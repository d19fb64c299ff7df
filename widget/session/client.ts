/** One server: the access to it, the conversation with its agent, and what keeps the conversation. */

import type { AgentInfo } from "../../server/protocol/chat.ts";
import type { ErrorEvent } from "../../server/protocol/events.ts";
import { errorCodeOf } from "../transport/parse-event.ts";
import { Access, type AccessOptions } from "./access.ts";
import { ChatSession, type OutgoingMessage, type SessionListener } from "./chat-session.ts";
import { ConversationKeeper, type Restored } from "./keeper.ts";
import type { AssistantMessage, Failure } from "./messages.ts";
import { type ConversationStore, IndexedDbStore } from "./store.ts";
import type { Draft, Place } from "./tab-slot.ts";

export type { OutgoingMessage } from "./chat-session.ts";
export type { Metadata, UserToken } from "./identity.ts";
export type { Draft, EditedMessage, Written } from "./tab-slot.ts";

export interface ClientOptions extends SessionListener, AccessOptions {
  /** Id of the element, or an empty text: it distinguishes several chats of one server in one tab. */
  readonly id: string;
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

export class Client extends Access {
  readonly session: ChatSession;
  readonly keeper: ConversationKeeper;
  /** Whether the server is being asked about a typed key. */
  isCheckingKey = false;
  readonly #options: ClientOptions;
  /** The last rating that was sent. */
  #feedback: Promise<string | undefined> = Promise.resolve(undefined);
  /** The name of the agent that the restored conversation was with. */
  #agent = "";
  #wasReady = false;
  /** Whether the connection was opened with a key that is no longer the one to send. */
  #isConnectionStale = false;

  constructor(options: ClientOptions) {
    super(options);
    const { server, id, store = new IndexedDbStore(server), onDraft, onChange } = options;
    this.#options = options;
    this.session = new ChatSession({
      ...options,
      transport: this.transport,
      reconnect: this.reconnect,
      metadata: () => (this.metadata ? { metadata: this.metadata } : {}),
      classifyError: (error) => this.#classifyError(error),
      onChange: () => {
        this.#closeStale();
        this.keeper.changed();
        onChange();
      },
      onPending: (change) => void this.keeper.queue(change),
      onAnswerEnd: (message) => {
        if (message.status === "done") this.key.accepted();
        options.onAnswerEnd(message);
      },
    });
    this.keeper = new ConversationKeeper({
      server,
      id,
      store,
      read: () => ({ ...this.session.data, agent: this.info?.agent ?? this.#agent, user: this.user }),
      progress: () => this.session.progress,
      cancel: (run) => void this.transport.cancel(run),
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
  }

  /** Goes on with a run, restores the conversation of an earlier page load, and asks the server about its agent until it answers. */
  open(persist: boolean): void {
    this.isOpen = true;
    this.listen();
    if (persist) this.keeper.open();
    this.session.resume();
    this.reconnect.retryNow();
    void this.ask();
  }

  /** A key that the site brings from now on, or an empty text; the conversation goes on. */
  setSiteKey(key: string | null | undefined): void {
    this.key.setSiteKey(key);
    // A running answer belongs to the key with which it was asked for, and ends on its connection.
    this.#isConnectionStale = true;
    this.#closeStale();
    if (!this.key.isOfSite) return;
    this.#unlock();
    void this.ask();
  }

  /** To be called on `pageshow` if the page was left before: another page may have another user. */
  override async returned(): Promise<void> {
    await super.returned();
    this.keeper.resume();
  }

  /** Tries a key that the person typed; then a waiting message is sent. */
  async submitKey(key: string): Promise<void> {
    if (this.isCheckingKey) return;
    this.key.type(key);
    this.transport.close();
    this.isCheckingKey = true;
    this.#options.onChange();
    // Without an answer the next message shows whether the key is accepted.
    const answer = await this.transport.check().then(
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
    this.#goOn();
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
      return (
        refusal?.code ?? this.transport.rate({ run, conversation, rating, reason, comment, metadata: this.metadata })
      );
    };
    this.#feedback = this.#feedback.then(send);
    return this.#feedback.then((code) => (code ? { code: errorCodeOf(code), retryable: true } : undefined));
  }

  /** Forgets the typed key here and in the browser's storage. */
  forgetKey(): void {
    this.key.forget();
    this.transport.close();
    if (this.info?.auth_required) this.key.prompt = "required";
    this.#options.onChange();
  }

  /** To be called when a message is likely to come: it does not wait for its connection then. */
  prepare(): void {
    if (this.phase === "ready" && !this.key.prompt) this.transport.prepare();
  }

  /** To be called when the network is back, or another one: a connection from before may be dead. */
  networkChanged(): void {
    this.reconnect.retryNow();
    this.transport.close();
  }

  /** To be called on `pagehide`: saves, and ends what keeps the browser from showing the page again as it was left. */
  suspend(): void {
    this.session.forgetClosed();
    this.keeper.suspend();
    if (!this.session.busy) this.networkChanged();
  }

  /**
   * Disconnects: the element has left the page, which is no wish of the person. A run goes on at the server, and here
   * with `open`, or in another element that finds it in the store.
   */
  close(): void {
    this.leave();
    this.session.forgetClosed();
    this.session.pause();
    this.networkChanged();
    this.keeper.close();
    this.isOpen = false;
  }

  protected override ready(info: AgentInfo): void {
    if (this.#isOtherAgent(this.#agent)) void this.session.reset();
    this.answered();
    if (!this.#wasReady) this.#options.onReady(info);
    this.#wasReady = true;
    void this.keeper.restored.then(() => this.#goOn());
  }

  protected override loginRequired(): void {
    const unsent = this.session.withdraw(true);
    this.answered();
    this.#options.onLoginRequired?.(unsent);
  }

  protected override answered(): void {
    this.keeper.userChanged();
    this.#options.onChange();
  }

  /** The connection is the user's, too. */
  protected override forget(next: string, leaving?: string): Promise<void> {
    const keepsRows = leaving === undefined && this.#options.keepsAll?.() === true;
    if (keepsRows) {
      this.keeper.save();
      this.keeper.forget(true);
    }
    void this.session.reset();
    this.transport.close();
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
    if (isNewer) this.transport.close();
    this.#goOn();
  }

  /** Has a run go on that waits for its user, or for a key, unless it still has to. */
  #goOn(): void {
    if (this.isSettled && !this.key.prompt) this.session.unlock();
  }

  /** Whether the conversation was with another agent at this address: this one knows nothing of it. */
  #isOtherAgent(agent: string): boolean {
    return agent !== "" && agent !== (this.info?.agent ?? agent);
  }

  /** Closes a connection that was opened with another key, unless an answer comes over it. */
  #closeStale(): void {
    if (!this.#isConnectionStale || this.session.status === "running") return;
    this.#isConnectionStale = false;
    this.transport.close();
  }

  #unlock(): void {
    this.key.prompt = undefined;
    this.#options.onChange();
    this.session.unlock();
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
    // The site's key and origin are none of the visitor's: the text of the code says so, not the server's sentence.
    return { ...error, data: "" };
  }

  #asksForKey(error: ErrorEvent): boolean {
    if (this.#options.asksPeople === false || !this.key.isAskedForBy(error)) return false;
    this.transport.close();
    return true;
  }
}
