/** The user as the page names them, and as other tabs know them. Loaded where the page or the server knows of users. */

import type { AgentInfo } from "../../server/protocol/chat.ts";
import { isRecord } from "../../server/protocol/json.ts";
import { forget, recall, remember } from "../storage/storage.ts";
import { fetchAgentInfo } from "./server.ts";

/** How long the page may take to give the token. */
const TOKEN_WITHIN_MS = 10_000;

/** Minimum time between questions to a page that sets a new function with each render. */
const ASK_EVERY_MS = 1_000;

/** Tokens that a header can carry and the server accepts. */
const TOKEN = /^[\x21-\x7e](?:[\x20-\x7e]{0,16382}[\x21-\x7e])?$/;

const MAX_METADATA = 16;
const METADATA_NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const MAX_METADATA_CHARS = 512;

/** Proves to the server who the user is. A function is asked before each message. */
export type UserToken = string | (() => string | Promise<string>);

/** The page's fields about messages, by name. */
export type Metadata = Readonly<Record<string, string>>;

export interface IdentityOptions {
  readonly server: URL;
  /** Key in `localStorage` of this browser's user, as `/api/info` names them (without a token: `cookie:` and that). */
  readonly userName: string;
  /** What the page has set last. */
  readonly userToken: () => UserToken | undefined;
  /** Another tab has signed the user out, or has another user; or (`hasExpired`) the session of the site has ended. */
  readonly onLeave: (isSignedOut: boolean, hasExpired?: boolean) => void;
}

/** One for each element in this page: the event `storage` reaches only other pages. */
const present = new Set<Identity>();

export class Identity {
  /** The token that the page has given last. */
  token: string | undefined;
  readonly #options: IdentityOptions;
  #known: string | undefined;
  /** Whether another tab has another user, and this one had to ask who its own is. */
  #isFollower = false;
  /** Whether the server still has to be asked about the token. */
  #isNew = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** When the page was asked last. */
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(options: IdentityOptions) {
    this.#options = options;
    this.#known = recall(options.userName);
  }

  /** Also to be called when the page is shown again: in the meantime it received no events of other pages. */
  open(): void {
    present.add(this);
    addEventListener("storage", this);
    this.#userChanged(recall(this.#options.userName));
  }

  /** For the event `storage`. */
  handleEvent({ key, newValue }: StorageEvent): void {
    if (key === null || key === this.#options.userName) this.#userChanged(newValue ?? undefined);
  }

  close(): void {
    removeEventListener("storage", this);
    present.delete(this);
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Asks the page for the token and the server about it. Twice, if the first token is refused. */
  async ask(signal: AbortSignal): Promise<AgentInfo | "user_unknown"> {
    for (let isLast = false; ; isLast = true) {
      if (!this.#isNew && !(await this.#askPage())) return "user_unknown";
      this.#isNew = false;
      const info = await fetchAgentInfo(this.#options.server, signal, this.token);
      if (isLast || !info.login_required || typeof this.#options.userToken() !== "function") return info;
    }
  }

  /**
   * Asks the page for the token, before a message. `due`: the server is to be asked about it, because it is new or
   * `isDue` says so, and the page is not asked again for that.
   */
  async check(isDue: () => boolean): Promise<"user_unknown" | "due" | undefined> {
    const { token } = this;
    if (!(await this.#askPage())) return "user_unknown";
    this.#isNew = isDue() || token !== this.token;
    return this.#isNew ? "due" : undefined;
  }

  /** Calls back, at least `ASK_EVERY_MS` after the page was last asked: it may set a function with each render. */
  callSoon(call: () => void): void {
    const wait = Math.max(0, this.#askedAt + ASK_EVERY_MS - performance.now());
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      call();
    }, wait);
  }

  /** To be called with the user as the server names them, or with an empty string if it knows none. */
  userNamed(user: string): void {
    const { userName, onLeave } = this.#options;
    const byCookie = this.token === undefined ? "cookie:" : "";
    if (user !== "") {
      this.#known = byCookie + user;
      if (!this.#isFollower) this.#tell(this.#known);
    } else if (byCookie && recall(userName)?.startsWith(byCookie)) {
      // The page has no token, and none of its users is known any more: the session of its site has ended.
      this.signOut();
      onLeave(true, true);
    }
  }

  signOut(): void {
    this.token = undefined;
    this.#isNew = false;
    this.#isFollower = false;
    this.#known = undefined;
    this.#tell(undefined);
  }

  /** The metadata that may be sent; a field that the server would refuse is named in a warning and left out. */
  metadata(given: unknown, warn: (text: string) => void): Metadata | undefined {
    if (!isRecord(given) || Array.isArray(given)) {
      warn("metadata must be an object of strings.");
      return undefined;
    }
    const entries = Object.entries(given).filter(([name, value]) => {
      const isName = METADATA_NAME.test(name);
      const isValue = typeof value === "string" && value.length <= MAX_METADATA_CHARS;
      if (!isName) warn(`metadata: the name ${JSON.stringify(name)} must be 1 to 64 of A-Z a-z 0-9 _ . -`);
      else if (!isValue) warn(`metadata.${name} must be a string of at most ${MAX_METADATA_CHARS} characters.`);
      return isName && isValue;
    });
    for (const [name] of entries.slice(MAX_METADATA)) {
      warn(`metadata.${name} is left out: a message takes at most ${MAX_METADATA} fields.`);
    }
    return Object.fromEntries(entries.slice(0, MAX_METADATA)) as Metadata;
  }

  /** Asks the page for its token, which may be none. Resolves with whether that succeeded. */
  async #askPage(): Promise<boolean> {
    const userToken = this.#options.userToken();
    this.#askedAt = performance.now();
    try {
      const given = typeof userToken === "function" ? await inTime(userToken) : userToken;
      const token = given || undefined;
      if (token !== undefined && !(typeof token === "string" && TOKEN.test(token))) {
        const is =
          typeof token === "string"
            ? "this text has other characters, or is longer"
            : `this is of the type ${typeof token}`;
        throw new TypeError(`a token is one line of ASCII of at most 16 KiB, such as a JWT, but ${is}.`);
      }
      // A text that the page has set in the meantime starts a request of its own; a function in place of a function does not.
      if (typeof userToken === typeof this.#options.userToken()) this.token = token;
      return true;
    } catch (error) {
      console.warn("<agent-chat> userToken has failed:", error);
      return false;
    }
  }

  #userChanged(now: string | undefined): void {
    if (now === this.#known) return;
    const hadUser = this.#known !== undefined;
    this.#known = now;
    this.#isFollower = now !== undefined;
    if (hadUser) this.#options.onLeave(now === undefined);
  }

  /** Informs other tabs, and other elements of this page. */
  #tell(user: string | undefined): void {
    const { userName } = this.#options;
    if (user === undefined) forget(userName);
    else if (recall(userName) !== user) remember(userName, user);
    for (const other of present) if (other !== this && other.#options.userName === userName) other.#userChanged(user);
  }
}

async function inTime(ask: () => unknown): Promise<unknown> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `it has taken longer than ${TOKEN_WITHIN_MS / 1000} seconds.`;
    timer = setTimeout(() => reject(new Error(message)), TOKEN_WITHIN_MS);
  });
  return Promise.race([ask(), late]).finally(() => clearTimeout(timer));
}
