/** One server: who its agent is, the key that opens it, and the conversation with it. */

import type { AgentInfo } from "../server/protocol/chat.ts";
import type { ErrorEvent } from "../server/protocol/events.ts";
import { fetchAgentInfo } from "./agent-info.ts";
import { ApiKey } from "./api-key.ts";
import { ChatSession } from "./chat-session.ts";
import { strings } from "./strings.ts";
import { FallbackTransport } from "./transport/fallback-transport.ts";
import type { ChatTransport } from "./transport/transport.ts";

/** Why the person is asked for a key. */
export type KeyPrompt = "required" | "refused" | "forbidden";

export interface ClientOptions {
  readonly server: URL;
  /** A key that the site brings, or an empty text. */
  readonly givenKey: string;
  readonly onChange: () => void;
  readonly onReady: (info: AgentInfo) => void;
}

export class ChatClient {
  readonly server: URL;
  readonly session: ChatSession;
  readonly #options: ClientOptions;
  readonly #key: ApiKey;
  readonly #transport: ChatTransport;
  #info: AgentInfo | undefined;
  #phase: "connecting" | "ready" | "unreachable" = "connecting";
  #keyPrompt: KeyPrompt | undefined;
  #checkingKey = false;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.server = options.server;
    this.#key = new ApiKey(options.server);
    this.#key.give(options.givenKey);
    const endpoint = { server: options.server, key: () => this.#key.value };
    this.#transport = new FallbackTransport(endpoint, () => this.#serverAnswers());
    this.session = new ChatSession({
      transport: this.#transport,
      onChange: options.onChange,
      judgeError: (error) => (this.#asksForKey(error) ? undefined : this.#inOurWords(error)),
    });
  }

  get info(): AgentInfo | undefined {
    return this.#info;
  }

  get phase(): "connecting" | "ready" | "unreachable" {
    return this.#phase;
  }

  /** Set while a key has to be entered before the chat can go on. */
  get keyPrompt(): KeyPrompt | undefined {
    return this.#keyPrompt;
  }

  get checkingKey(): boolean {
    return this.#checkingKey;
  }

  /** Whether a key of an earlier visit could be forgotten. */
  get hasTypedKey(): boolean {
    return this.#key.isTyped;
  }

  /** Asks the server who the agent is. */
  async load(): Promise<void> {
    this.#phase = "connecting";
    this.#options.onChange();
    try {
      this.#info = await fetchAgentInfo(this.server);
    } catch {
      // Down, blocked or not a chat server: to the person it is one and the same, with one way out.
      this.#phase = "unreachable";
      this.#options.onChange();
      return;
    }
    this.#phase = "ready";
    if (this.#info.auth_required && this.#key.value === undefined) this.#keyPrompt = "required";
    this.#options.onChange();
    this.#options.onReady(this.#info);
  }

  /** A key that the site brings from now on; the conversation goes on. */
  giveKey(key: string): void {
    this.#key.give(key);
    this.#transport.close();
    if (this.#key.isGiven) this.#admit();
  }

  /** Tries a key that the person typed; then a waiting message is sent. */
  async submitKey(key: string): Promise<void> {
    if (this.#checkingKey) return;
    this.#key.type(key);
    this.#transport.close();
    this.#checkingKey = true;
    this.#options.onChange();
    // A line that fails here says nothing about the key: the next message will tell.
    const refusal = await this.#transport.check().catch(() => undefined);
    this.#checkingKey = false;
    if (refusal && this.#asksForKey(refusal)) {
      this.#options.onChange();
      return;
    }
    this.#key.keep();
    this.#admit();
  }

  /** Forgets the typed key here and in the browser's storage. */
  forgetKey(): void {
    this.#key.forget();
    this.#transport.close();
    if (this.#info?.auth_required) this.#keyPrompt = "required";
    this.#options.onChange();
  }

  /** Ends a run and the line; the next message dials again. */
  hangUp(): void {
    this.session.stop();
    this.#transport.close();
  }

  #admit(): void {
    this.#keyPrompt = undefined;
    this.#options.onChange();
    void this.session.unlock();
  }

  #asksForKey({ code }: ErrorEvent): boolean {
    // Visitors of a site that brought its own key have none to enter.
    if (this.#key.isGiven) return false;
    const typed = this.#key.value !== undefined;
    if (code === "forbidden" && typed) this.#keyPrompt = "forbidden";
    else if (code === "unauthorized") this.#keyPrompt = typed ? "refused" : "required";
    else return false;
    this.#key.forget();
    this.#transport.close();
    return true;
  }

  #inOurWords(error: ErrorEvent): ErrorEvent {
    const siteKeyRefused = error.code === "unauthorized" && this.#key.isGiven;
    return siteKeyRefused ? { ...error, data: strings.siteKeyRefused } : error;
  }

  async #serverAnswers(): Promise<boolean> {
    return fetchAgentInfo(this.server).then(
      () => true,
      () => false,
    );
  }
}
