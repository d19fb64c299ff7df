/** One server: its agent, the key that opens it, the conversation with it, and what keeps the conversation. */

import type { AgentInfo } from "../../server/protocol/chat.ts";
import type { ErrorEvent } from "../../server/protocol/events.ts";
import { lazy } from "../loading/lazy.ts";
import { forget, recall, remember } from "../storage/storage.ts";
import { FallbackTransport } from "../transport/fallback.ts";
import { ApiKey } from "./api-key.ts";
import { ChatSession, type SessionListener } from "./chat-session.ts";
import { ConversationKeeper, type Restored } from "./keeper.ts";
import type { Failure } from "./messages.ts";
import { ReconnectPolicy } from "./reconnect-policy.ts";
import { fetchAgentInfo } from "./server.ts";
import { SiteDiagnosis } from "./site-diagnosis.ts";
import { type ConversationStore, IndexedDbStore } from "./store.ts";
import type { Draft, Place } from "./tab-slot.ts";

export type { Draft } from "./tab-slot.ts";

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
  /** The server has described its agent. */
  readonly onReady: (info: AgentInfo) => void;
  /** An earlier page load left this in its composer. Called by `open`, and when the page is shown again. */
  readonly onDraft: (draft: Draft) => void;
  /** Where the reader is in the conversation; absent at its end. */
  readonly place?: () => Place | undefined;
  /** Default: IndexedDB. */
  readonly store?: ConversationStore;
}

/** For networks that block WebSocket. */
const http = lazy(() => import("../transport/http.ts"), "HttpTransport");

export class Client {
  readonly server: URL;
  readonly session: ChatSession;
  readonly reconnect: ReconnectPolicy;
  readonly key: ApiKey;
  readonly keeper: ConversationKeeper;
  /** What the server says of its agent; absent until it has. */
  info: AgentInfo | undefined;
  /** `unauthorized`, `forbidden`: the server is there, but not without a key of the site, or not for pages of this origin. */
  phase: "connecting" | "ready" | "unreachable" | "unauthorized" | "forbidden" = "connecting";
  /** Whether the server is being asked about a typed key. */
  isCheckingKey = false;
  readonly #options: ClientOptions;
  readonly #transport: FallbackTransport;
  /** The name of the agent that the restored conversation was with. */
  #agent = "";
  /** Ends the asking about the agent; absent while nothing is asked. */
  #loading: AbortController | undefined;
  /** Whether the connection was opened with a key that is no longer the one to send. */
  #isConnectionStale = false;
  readonly #diagnosis: SiteDiagnosis;

  constructor(options: ClientOptions) {
    const { server, id, siteKey, store = new IndexedDbStore(server), onDraft, onChange } = options;
    this.#options = options;
    this.server = server;
    this.key = new ApiKey(server);
    this.key.setSiteKey(siteKey);
    this.reconnect = new ReconnectPolicy(onChange);
    const blockedName = `agent-chat-blocked:${server.href}`;
    this.#transport = new FallbackTransport(
      {
        server,
        key: () => this.key.value,
        onOpen: () => this.reconnect.opened(),
        isSocketBlocked: recall(blockedName, "sessionStorage") !== undefined,
        onSocketBlocked: (isBlocked) => {
          if (isBlocked) remember(blockedName, "yes", "sessionStorage");
          else forget(blockedName, "sessionStorage");
        },
      },
      async () => (await http.load()).HttpTransport,
    );
    this.#diagnosis = new SiteDiagnosis(server, () => this.#transport.checkSocket());
    this.session = new ChatSession({
      ...options,
      transport: this.#transport,
      reconnect: this.reconnect,
      classifyError: (error) => this.#classifyError(error),
      onChange: () => {
        this.#closeStale();
        this.keeper.changed();
        onChange();
      },
      onAnswerEnd: (message) => {
        if (message.status === "done") this.key.accepted();
        options.onAnswerEnd(message);
      },
    });
    this.keeper = new ConversationKeeper({
      server,
      id,
      store,
      read: () => ({ ...this.session.data, agent: this.info?.agent ?? this.#agent }),
      restore: (stored, reportedUntil, isNewer) => this.#restore(stored, reportedUntil, isNewer),
      onDraft,
      place: options.place,
      onChange,
    });
  }

  /** Goes on with a run, restores the conversation of an earlier page load, and asks the server about its agent until it answers. */
  open(persist: boolean): void {
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
    if (this.info && !this.key.prompt) this.session.unlock();
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
  }

  /** Why the server takes no messages of this page, if it takes none. */
  get refusal(): Failure | undefined {
    const { phase } = this;
    return phase === "unauthorized" || phase === "forbidden" ? { code: phase, retryable: false } : undefined;
  }

  /** To be called when a page that was refused tries once more: the site's owner may have mended it. */
  askAgain(): void {
    void this.#load();
  }

  /** Asks about the agent, again and again until the server answers or refuses the page. */
  async #load(): Promise<void> {
    if (this.info || this.#loading) return;
    this.#loading = new AbortController();
    const { signal } = this.#loading;
    for (;;) {
      const known = this.#options.info;
      const info = await (known ??
        fetchAgentInfo(this.server, signal).catch((error: unknown) =>
          this.#diagnosis.explain(error, this.phase === "unreachable", signal),
        ));
      // The element has left the page, or has another server by now.
      if (signal.aborted) return;
      if (typeof info === "object" && !this.#lacksKey(info)) {
        this.#loading = undefined;
        await this.#begin(info);
        return;
      }
      this.phase = typeof info === "object" ? "unauthorized" : info;
      this.#options.onChange();
      if (this.refusal) {
        this.#loading = undefined;
        return;
      }
      await this.reconnect.wait();
    }
  }

  /** Whether the site has forgotten its key. */
  #lacksKey({ auth_required }: AgentInfo): boolean {
    if (!auth_required || this.key.isOfSite || this.#options.asksPeople !== false) return false;
    this.#diagnosis.hint(
      `the Parley server at ${this.server.href} needs a key, and this page gives none. Set data-key="YOUR_WIDGET_KEY" on the script tag, or api-key on an <agent-chat> of the page.`,
    );
    return true;
  }

  async #begin(info: AgentInfo): Promise<void> {
    this.reconnect.succeeded();
    this.info = info;
    this.phase = "ready";
    if (this.#isOtherAgent(this.#agent)) void this.session.reset();
    if (info.auth_required && this.key.value === undefined) this.key.prompt = "required";
    this.#options.onChange();
    this.#options.onReady(info);
    await this.keeper.restored;
    if (!this.key.prompt) this.session.unlock();
  }

  #restore(stored: Restored, reportedUntil: number, isNewer: boolean): void {
    // What this element shows already is newer than what another one has left.
    const isOld = this.session.messages.length > 0 && !isNewer;
    if (isOld || this.#isOtherAgent(stored.agent)) return;
    this.#agent = stored.agent;
    this.session.restore(stored, reportedUntil);
    if (isNewer) this.#transport.close();
    if (this.info && !this.key.prompt) this.session.unlock();
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

  #unlock(): void {
    this.key.prompt = undefined;
    this.#options.onChange();
    this.session.unlock();
  }

  #classifyError(error: ErrorEvent): ErrorEvent | undefined {
    if (this.#asksForKey(error)) return undefined;
    const { code, data } = error;
    if (code !== "unauthorized" && code !== "forbidden") return error;
    if (code === "unauthorized" && this.key.isOfSite)
      this.#diagnosis.hint("the server does not accept the key of the attribute api-key (of a script: data-key).");
    else if (!this.refusal) this.#diagnosis.hint(data);
    // The site's key and origin are none of the visitor's: the text of the code says so, not the server's sentence.
    return { ...error, data: "" };
  }

  #asksForKey(error: ErrorEvent): boolean {
    if (this.#options.asksPeople === false || !this.key.isAskedForBy(error)) return false;
    this.#transport.close();
    return true;
  }
}
