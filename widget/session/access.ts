/**
 * This page's access to a server: the connection, the key for it, the description of the agent, and the user. Knows no
 * conversations. The parts that only pages and servers with users need are in `identity.ts`.
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

/** What the page has set. */
export interface AccessOptions {
  /** See `parseServer`. */
  readonly server: URL;
  /** The site's own key, or an empty string. */
  readonly siteKey: string;
  /** Whether the user may be asked for a key: on pages of the server itself. Visitors of other sites have none. */
  readonly asksPeople?: boolean;
  /** The description of the agent, if the page contains it: then the server is not asked. */
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
  /** For requests with this key and the user's token. */
  readonly endpoint: Endpoint;
  /** Whether its element is in the page. */
  isOpen = false;
  /** The server's description of its agent; absent until it has arrived. */
  info: AgentInfo | undefined;
  /**
   * `unauthorized`: the server needs a key of the site. `forbidden`: it does not allow pages of this origin.
   * `login_required`: it requires a user that it knows. `user_unknown`: the page does not say who the user is.
   */
  phase: "connecting" | "ready" | "unreachable" | RefusedPhase = "connecting";
  /** The user of the conversation, as `/api/info` names them; empty without one. */
  user = "";
  /** Whether the server has named the user, or said that there is none. They stay known until it names another one. */
  isKnown = false;
  /** Whether the server has answered about the user. Otherwise it has to be asked, for the first time or again. */
  isSettled = false;
  userToken: UserToken | undefined;
  /** The metadata sent with each message. */
  metadata: Metadata | undefined;
  readonly #options: AccessOptions;
  /** Key in `localStorage` of this browser's user, as `/api/info` names them. */
  readonly #userName: string;
  /** Aborts the requests about the agent and the user; absent while there are none. */
  #loading: AbortController | undefined;
  /** Resolves after the first answer or failure. */
  #attempt: Promise<void> = Promise.resolve();
  /** Whether stored data is hidden until the user is known. */
  #asksUser = false;
  /** Whether the server was asked about the user again since it refused the last message. */
  #wasRenewed = false;
  #identity: Identity | undefined;
  /** The token of the known user. The page may have given a newer one, whose user the server has not named yet. */
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

  /** Closes the connections, which were opened for another user or key. Running answers continue over new ones. */
  protected abstract disconnect(): void;

  /** The server has described the agent, and named the user. */
  protected abstract ready(info: AgentInfo): void;

  /** The server does not know the user. An unsent message is returned to them; an answer that has begun waits. */
  protected abstract loginRequired(): void;

  /** Returns the message that the server has just refused to the user once more: everything else of theirs is removed. */
  protected abstract returnUnsent(): void;

  /** The server has answered, or cannot be reached. */
  protected abstract answered(): void;

  /**
   * Removes all data of the user here and, if `next` is named, tabs' conversations of everybody else. The library keeps
   * a user's conversations, unless they have signed out: then they are `leaving`, an empty string if no user was known.
   */
  protected abstract forget(next: string, leaving?: string): Promise<void>;

  /** Whether the conversation is hidden because its user is not known yet. */
  get isHidden(): boolean {
    return this.#asksUser && !this.isKnown;
  }

  /** The reason why the server accepts no messages from this page, if any. */
  get refusal(): Refusal | undefined {
    const { phase } = this;
    if (phase === "connecting" || phase === "ready" || phase === "unreachable") return undefined;
    return { code: phase, retryable: phase === "user_unknown" };
  }

  /** Follows the changes that other pages make to the user, including those made before. */
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
   * Asks about the agent and the user, if necessary, until the server answers or refuses the page. After a refusal the
   * next call asks again: the site's owner may have fixed it.
   */
  ask(): Promise<void> {
    if (!this.isSettled && !this.#loading) {
      this.#loading = new AbortController();
      this.#attempt = this.#tryOnce(this.#loading.signal);
    }
    return this.#attempt;
  }

  /** Asks about the agent once more; the conversation continues. */
  async refresh(): Promise<AgentInfo | undefined> {
    const info = await fetchAgentInfo(this.server, new AbortController().signal).catch(() => this.info);
    if (this.info) this.info = info;
    this.#options.onChange();
    return info;
  }

  /**
   * Sets the user from now on. A function that replaces a function, as frameworks do with each render, is called with
   * the next message; while no user is known, it is called soon, at most once a second. The same applies to a token
   * that is set again while the chat says that one must sign in.
   */
  setUserToken(token: UserToken | null | undefined): void {
    const before = this.userToken;
    this.userToken = token || undefined;
    const isSame = before === this.userToken;
    if (isSame && !this.refusal) return;
    this.#asksUser = true;
    if (!this.isOpen) this.isSettled = false;
    else if (isSame || (typeof before === "function" && typeof this.userToken === "function")) {
      if (!this.#loading && (!this.user || this.refusal)) void this.#checkSoon();
    } else if (this.userToken) void this.#recheck();
    else void this.#reload();
  }

  /** Sets the metadata sent with each message from now on. */
  setMetadata(metadata: unknown): void {
    if (!metadata) this.metadata = undefined;
    this.#unchecked = metadata;
    void this.#checkMetadata();
  }

  /** Validates the metadata. The code for that is loaded first. */
  async #checkMetadata(): Promise<void> {
    const it = this.#unchecked ? await this.#withIdentity() : undefined;
    if (!it || !this.#unchecked) return;
    this.metadata = it.metadata(this.#unchecked, (text) => this.hint(text));
    this.#unchecked = undefined;
  }

  /** Asks who the user is. Resolves with the reason why no message can be sent, if any. */
  async admit(): Promise<Refusal | undefined> {
    await this.#checkMetadata();
    // No message is sent without the metadata.
    if (this.#unchecked) return { code: "unreachable", retryable: true };
    this.#wasRenewed = false;
    const { user } = this;
    if (this.#asksUser) {
      await this.#check();
      // Another message, or the page, may have asked again in the meantime.
      await this.#attempt;
      // The user who wrote it has signed out.
      if (user && !this.user) return { code: "login_required", retryable: false };
      if (!this.isSettled && !this.refusal) return { code: "unreachable", retryable: true };
    } else if (this.refusal) void this.ask();
    return this.refusal;
  }

  /**
   * To be called when the server has refused a message of this user. Asks once per message who the user is now: the
   * token, or a session of the site, may have changed.
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
    // Until the server has named the user, the browser still knows who they were.
    const leaving = (this.user || recall(this.#userName) || "").replace("cookie:", "");
    await Promise.all([this.forget(NOBODY, leaving), this.#withIdentity()]);
    this.#identity?.signOut();
    this.disconnect();
    await this.#reload();
  }

  /** `undefined` if its code cannot be loaded: its hints are for the site's owner, on the console. */
  protected async diagnose(): Promise<SiteDiagnosis | undefined> {
    const module = await diagnosis.load().catch(() => undefined);
    if (module) this.#diagnosis ??= new module.SiteDiagnosis(this.endpoint);
    return this.#diagnosis;
  }

  /** Tells the site's owner what to do, once, on the console. */
  protected hint(text: string): void {
    void this.diagnose().then((it) => it?.hint(text));
  }

  /** Asks about the user as if none was known. */
  #reload(): Promise<void> {
    this.isKnown = false;
    return this.#recheck();
  }

  /** Asks about the user once more. A known one stays known and shown until the server has named another one. */
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
      // The diagnosis has asked without the user's token.
      return typeof why === "object" && this.#asksUser ? "unreachable" : why;
    });
    // The element has left the page, or has another server or user by now.
    if (signal.aborted) return;
    if (typeof info !== "object") this.phase = info;
    else if (info.auth_required && !this.key.isOfSite && this.#options.asksPeople === false) {
      // The site's owner has forgotten the key.
      this.phase = "unauthorized";
      void this.diagnose().then((it) => it?.lacksKey());
    } else if (info.user_pending && !this.isKnown) {
      // The server cannot name the user at the moment.
      this.phase = "unreachable";
    } else {
      this.#loading = undefined;
      this.#begin(info.user_pending ? { ...info, user: this.user } : info);
      // The page has set another function in the meantime, which was not called.
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
    // Without a user, now or before, none can have left: no code is loaded for that.
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

  /** Another tab has signed the user out, or has another user; or (`hasExpired`) the session of the site has ended. */
  #userLeft(isSignedOut: boolean, hasExpired?: boolean): void {
    const { user } = this;
    if (isSignedOut) this.userToken = undefined;
    // If another user has come, their tab removes what is stored.
    void this.forget(isSignedOut ? NOBODY : "");
    if (hasExpired) {
      // The message is still theirs: another user does not see it.
      this.user = user;
      this.returnUnsent();
    }
    if (this.isOpen) void this.#reload();
  }

  /** `undefined` if its code cannot be loaded. */
  async #withIdentity(): Promise<Identity | undefined> {
    const module = await identity.load().catch(() => undefined);
    if (module && !this.#identity) {
      this.#identity = new module.Identity({
        server: this.server,
        userName: this.#userName,
        userToken: () => this.userToken,
        onLeave: (isSignedOut, hasExpired) => this.#userLeft(isSignedOut, hasExpired),
      });
      if (this.isOpen) this.listen();
    }
    return this.#identity;
  }
}
