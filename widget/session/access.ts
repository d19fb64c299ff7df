/**
 * A server, as this page may use it: the connection, the key that opens it, what it says of its agent, and its user.
 * It knows of no conversation. What only pages and servers with users need is in `identity.ts`.
 */

import type { AgentInfo } from "../../server/protocol/chat.ts";
import type { Refusal } from "../conversations/messages.ts";
import { ReconnectPolicy } from "../conversations/reconnect-policy.ts";
import { lazy } from "../loading/lazy.ts";
import { forget, recall, remember } from "../storage/storage.ts";
import { FallbackTransport } from "../transport/fallback.ts";
import type { Endpoint } from "../transport/transport.ts";
import { ApiKey } from "./api-key.ts";
import type { Identity, Metadata, UserToken } from "./identity.ts";
import { fetchAgentInfo } from "./server.ts";
import type { SiteDiagnosis } from "./site-diagnosis.ts";

/** What the page says. */
export interface AccessOptions {
  /** See `parseServer`. */
  readonly server: URL;
  /** A key that the site brings, or an empty text. */
  readonly siteKey: string;
  /** Whether people may have keys: on pages of the server itself. Visitors of another site have none. */
  readonly asksPeople?: boolean;
  /** What the page knows of the agent, so that the server is not asked. */
  readonly info?: AgentInfo | undefined;
  readonly userToken?: UserToken | undefined;
  readonly metadata?: Metadata | undefined;
  onChange(): void;
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

export abstract class Access {
  readonly server: URL;
  readonly key: ApiKey;
  readonly reconnect: ReconnectPolicy;
  /** For requests of its user, with its key. */
  readonly endpoint: Endpoint;
  /** Whether its element is in the page. */
  isOpen = false;
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
  /** Whether it was asked about the user, and has answered. Otherwise that is due, for the first time or again. */
  isSettled = false;
  userToken: UserToken | undefined;
  /** What goes with each message. */
  metadata: Metadata | undefined;
  readonly #options: AccessOptions;
  /** Where `localStorage` has the user of this browser, as `/api/info` names them. */
  readonly #userName: string;
  /** Ends the asking about the agent and the user; absent while nothing is asked. */
  #loading: AbortController | undefined;
  /** Resolves after the first answer or failure. */
  #attempt: Promise<void> = Promise.resolve();
  /** Whether what is kept waits until the user is known. */
  #asksUser = false;
  /** Whether the server was asked about the user since the last message, because it did not take it. */
  #wasRenewed = false;
  #identity: Identity | undefined;
  /** The token of the known user: the page may have given another one, and the server not yet said whose it is. */
  #token: string | undefined;
  /** What the page has set as metadata, until it is checked. */
  #unchecked: unknown;
  #diagnosis: SiteDiagnosis | undefined;

  constructor(options: AccessOptions) {
    const { server, siteKey, onChange } = options;
    this.#options = options;
    this.server = server;
    this.#userName = `agent-chat-user:${server.href}`;
    this.key = new ApiKey(server);
    this.key.setSiteKey(siteKey);
    this.reconnect = new ReconnectPolicy(onChange);
    const blockedName = `agent-chat-blocked:${server.href}`;
    this.endpoint = {
      server,
      key: () => this.key.value,
      userToken: () => this.#token,
      onOpen: () => this.reconnect.opened(),
      isSocketBlocked: () => recall(blockedName, "sessionStorage") !== undefined,
      onSocketBlocked: (isBlocked) => {
        if (isBlocked) remember(blockedName, "yes", "sessionStorage");
        else forget(blockedName, "sessionStorage");
      },
    };
    this.setUserToken(options.userToken);
    this.setMetadata(options.metadata);
  }

  /** A connection for a conversation: it is opened when it is needed. */
  protected connection(): FallbackTransport {
    return new FallbackTransport(this.endpoint, async () => (await http.load()).HttpTransport);
  }

  /** Closes the connections, which another user or key has opened. Answers go on over others. */
  protected abstract disconnect(): void;

  /** The server has described the agent, and named the user. */
  protected abstract ready(info: AgentInfo): void;

  /** The server does not know the user. Their message goes back to them; an answer that has begun waits. */
  protected abstract loginRequired(): void;

  /** The server has answered, or cannot be reached. */
  protected abstract answered(): void;

  /**
   * Leaves nothing of the user here, and of tabs' conversations nothing of anybody but `next`, if one is named. What the
   * library has waits for its user, unless they have signed out: then they are `leaving`, an empty text if no user was known.
   */
  protected abstract forget(next: string, leaving?: string): Promise<void>;

  /** Whether nothing is shown of the conversation, because its user is not known yet. */
  get isHidden(): boolean {
    return this.#asksUser && !this.isKnown;
  }

  /** Why the server takes no messages of this page, if it takes none. */
  get refusal(): Refusal | undefined {
    const { phase } = this;
    if (phase === "connecting" || phase === "ready" || phase === "unreachable") return undefined;
    return { code: phase, retryable: phase === "user_unknown" };
  }

  /** Takes note of what other pages have done, and do from now on. */
  protected listen(): void {
    this.#identity?.open();
  }

  /** To be called when the element has left the page. */
  protected leave(): void {
    this.#loading?.abort();
    this.#loading = undefined;
    this.#identity?.close();
  }

  /** To be called when the page is shown again: another page may have another user. */
  async returned(): Promise<void> {
    this.listen();
    if (this.#asksUser) await this.#reload();
  }

  /**
   * Asks about the agent and the user, if that is due, again and again until the server answers or refuses the page. After
   * a refusal it is still due: the site's owner may have mended it.
   */
  ask(): Promise<void> {
    if (!this.isSettled && !this.#loading) {
      this.#loading = new AbortController();
      this.#attempt = this.#tryOnce(this.#loading.signal);
    }
    return this.#attempt;
  }

  /** Asks about the agent once more; the conversation goes on. */
  async refresh(): Promise<AgentInfo | undefined> {
    const info = await fetchAgentInfo(this.server, new AbortController().signal).catch(() => this.info);
    if (this.info) this.info = info;
    this.#options.onChange();
    return info;
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
    if (!this.isOpen) this.isSettled = false;
    else if (isSame || (typeof before === "function" && typeof this.userToken === "function")) {
      if (!this.#loading && !this.user) void this.#checkSoon();
    } else if (this.userToken) void this.#recheck();
    else void this.#reload();
  }

  /** What goes with each message from now on. */
  setMetadata(metadata: unknown): void {
    if (!metadata) this.metadata = undefined;
    this.#unchecked = metadata;
    void this.#checkMetadata();
  }

  /** For that, code has to be loaded. */
  async #checkMetadata(): Promise<void> {
    const it = this.#unchecked ? await this.#withIdentity() : undefined;
    if (!it || !this.#unchecked) return;
    this.metadata = it.metadata(this.#unchecked, (text) => this.hint(text));
    this.#unchecked = undefined;
  }

  /** Why no message can be sent, if none can, after it was asked who sends it. */
  async admit(): Promise<Refusal | undefined> {
    await this.#checkMetadata();
    // No message goes without it.
    if (this.#unchecked) return { code: "unreachable", retryable: true };
    this.#wasRenewed = false;
    const { user } = this;
    if (this.#asksUser) {
      await this.#check();
      // Another message, or the page, may have asked again meanwhile.
      await this.#attempt;
      // The user who wrote it has signed out.
      if (user && !this.user) return { code: "login_required", retryable: false };
      if (!this.isSettled && !this.refusal) return { code: "unreachable", retryable: true };
    } else if (this.refusal) void this.ask();
    return this.refusal;
  }

  /**
   * To be called when the server has not taken a message of this user. Asks once for each message for the user of the
   * moment: the token, or a session of the site, may be another one.
   */
  protected renew(): void {
    this.disconnect();
    if (this.#wasRenewed) this.#requireLogin();
    else void this.#recheck();
    this.#wasRenewed = true;
  }

  /** Forgets the user, and all that the browser has of them. Resolves when nothing is left. */
  async signOut(): Promise<void> {
    this.userToken = undefined;
    // Before the server has named them, it is known who they were.
    const leaving = (this.user || recall(this.#userName) || "").replace("cookie:", "");
    await Promise.all([this.forget(NOBODY, leaving), this.#withIdentity()]);
    this.#identity?.signOut();
    this.disconnect();
    await this.#reload();
  }

  /** Nothing where the code cannot be loaded: it is for the site's owner, on the console. */
  protected async diagnose(): Promise<SiteDiagnosis | undefined> {
    const module = await diagnosis.load().catch(() => undefined);
    if (module) this.#diagnosis ??= new module.SiteDiagnosis(this.endpoint);
    return this.#diagnosis;
  }

  /** Says to the site's owner once what to do. */
  protected hint(text: string): void {
    void this.diagnose().then((it) => it?.hint(text));
  }

  /** Asks for the user as if none was known. */
  #reload(): Promise<void> {
    this.isKnown = false;
    return this.#recheck();
  }

  /** Asks once more for the user. A known one stays known, and is shown, until the server has named another one. */
  #recheck(): Promise<void> {
    this.#loading?.abort();
    this.#loading = undefined;
    this.isSettled = false;
    this.#asksUser = true;
    if (this.refusal) this.phase = this.info ? "ready" : "connecting";
    this.#options.onChange();
    return this.ask();
  }

  /** Asks the page for the token, and the server about a new one. */
  async #check(): Promise<void> {
    const outcome = await (await this.#withIdentity())?.check(() => !this.isSettled || !!this.refusal);
    if (outcome === "due") await this.#recheck();
    else if (outcome) {
      this.phase = outcome;
      this.#options.onChange();
    }
  }

  async #checkSoon(): Promise<void> {
    (await this.#withIdentity())?.callSoon(() => void this.#check());
  }

  async #tryOnce(signal: AbortSignal): Promise<void> {
    const { userToken } = this;
    const info = await this.#fetch(signal).catch(async (error: unknown) => {
      const wasUnreachable = this.phase === "unreachable";
      const why = (await (await this.diagnose())?.explain(error, wasUnreachable, signal)) ?? "unreachable";
      // It has not asked with the user's token.
      return typeof why === "object" && this.#asksUser ? "unreachable" : why;
    });
    // The element has left the page, or has another server or user by now.
    if (signal.aborted) return;
    if (typeof info !== "object") this.phase = info;
    else if (info.auth_required && !this.key.isOfSite && this.#options.asksPeople === false) {
      // The site has forgotten its key.
      this.phase = "unauthorized";
      void this.diagnose().then((it) => it?.lacksKey());
    } else if (info.user_pending && !this.isKnown) {
      // The server could not name the user now.
      this.phase = "unreachable";
    } else {
      this.#loading = undefined;
      this.#begin(info.user_pending ? { ...info, user: this.user } : info);
      // The page has set another function meanwhile, which was not asked.
      if (this.refusal && userToken !== this.userToken) void this.#checkSoon();
      return;
    }
    if (this.refusal) this.#loading = undefined;
    else void this.reconnect.wait().then(() => (signal.aborted ? undefined : this.#tryOnce(signal)));
    this.answered();
  }

  async #fetch(signal: AbortSignal): Promise<AgentInfo | "user_unknown" | "unreachable"> {
    const { info } = this.#options;
    if (info && !this.info) {
      if (!info.user_pending && !this.#asksUser) return info;
      this.#asksUser = true;
      this.info = info;
      this.phase = "ready";
      this.#options.onChange();
    }
    if (!this.#asksUser) return fetchAgentInfo(this.server, signal);
    return (await this.#withIdentity())?.ask(signal) ?? "unreachable";
  }

  /** The server has described the agent, and named the user. */
  #begin(info: AgentInfo): void {
    const { user = "" } = info;
    this.reconnect.succeeded();
    this.info = info;
    // Until a user comes, or is signed out, what is kept waits: before that no user is known to have left.
    if (user || recall(this.#userName)) void this.#withIdentity().then((it) => it?.userNamed(user));
    if (info.login_required) {
      this.#requireLogin();
      return;
    }
    this.phase = "ready";
    if (this.user && this.user !== user) void this.forget(user || NOBODY);
    if (info.auth_required && this.key.value === undefined) this.key.prompt = "required";
    this.#token = this.#identity?.token;
    this.user = user;
    this.isKnown = true;
    this.isSettled = true;
    this.#asksUser ||= user !== "";
    this.ready(info);
  }

  #requireLogin(): void {
    this.phase = "login_required";
    this.isKnown = false;
    this.isSettled = false;
    this.#asksUser = true;
    this.loginRequired();
  }

  /** Another tab has signed the user out, or has another one; or the session of the site has ended. */
  #userLeft(isSignedOut: boolean): void {
    if (isSignedOut) this.userToken = undefined;
    // If another user has come, their tab removes what is kept.
    void this.forget(isSignedOut ? NOBODY : "");
    if (this.isOpen) void this.#reload();
  }

  /** Nothing where the code cannot be loaded. */
  async #withIdentity(): Promise<Identity | undefined> {
    const module = await identity.load().catch(() => undefined);
    if (module && !this.#identity) {
      this.#identity = new module.Identity({
        server: this.server,
        userName: this.#userName,
        userToken: () => this.userToken,
        onLeave: (isSignedOut) => this.#userLeft(isSignedOut),
      });
      if (this.isOpen) this.listen();
    }
    return this.#identity;
  }
}
