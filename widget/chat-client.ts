/** One server: who its agent is, the key that opens it, and the conversation with it. */

import type { AgentInfo } from "../server/protocol/chat.ts";
import type { ErrorEvent } from "../server/protocol/events.ts";
import { answers, fetchAgentInfo } from "./agent-info.ts";
import { ApiKey } from "./api-key.ts";
import { ChatSession } from "./chat-session.ts";
import type { StoredConversation } from "./chunks/stored-conversation.ts";
import type { ClientOptions } from "./client-options.ts";
import { Connection } from "./connection.ts";
import { ConversationKeeper } from "./conversation-keeper.ts";
import { filesOf } from "./transcript.ts";
import { FallbackTransport } from "./transport/fallback-transport.ts";

export class ChatClient {
  readonly server: URL;
  readonly session: ChatSession;
  readonly connection: Connection;
  readonly key: ApiKey;
  readonly keeper: ConversationKeeper;
  readonly #options: ClientOptions;
  readonly #transport: FallbackTransport;
  /** Of the conversation that was restored. */
  #agent = "";
  #loading = false;
  #info: AgentInfo | undefined;
  #phase: "connecting" | "ready" | "unreachable" = "connecting";
  #checkingKey = false;
  /** Whether the line was opened with a key that is no longer the one to send. */
  #hasOldLine = false;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.server = options.server;
    this.key = new ApiKey(options.server);
    this.key.give(options.givenKey);
    const endpoint = {
      server: options.server,
      key: () => this.key.value,
      onOpen: () => this.connection.opened(),
    };
    this.#transport = new FallbackTransport(endpoint, () => answers(this.server));
    this.connection = new Connection(options.onChange);
    this.session = new ChatSession({
      transport: this.#transport,
      connection: this.connection,
      onToken: options.onToken,
      onChange: () => {
        this.#hangUp();
        this.keeper.changed();
        options.onChange();
      },
      judgeError: (error) => (this.#asksForKey(error) ? undefined : this.key.inOurWords(error)),
    });
    this.keeper = new ConversationKeeper({
      ...options,
      read: () => ({ ...this.session.stored, agent: this.#info?.agent ?? this.#agent }),
      restore: (stored, isNewer) => this.#restore(stored, isNewer),
      onSettled: options.onChange,
    });
  }

  get info(): AgentInfo | undefined {
    return this.#info;
  }

  get phase(): "connecting" | "ready" | "unreachable" {
    return this.#phase;
  }

  /** Whether the server is about to say what it thinks of a typed key. */
  get checkingKey(): boolean {
    return this.#checkingKey;
  }

  /** Takes up what an earlier page has kept, and asks the server who the agent is. */
  open(persist: boolean): void {
    this.keeper.isOn = persist;
    void this.#load();
  }

  /** Starts a new conversation; resolves when the server has forgotten the old one. */
  async reset(): Promise<void> {
    const files = this.session.messages.flatMap(filesOf);
    for (const { url } of files) if (url !== undefined) URL.revokeObjectURL(url);
    await this.session.reset();
  }

  /** A key that the site brings from now on; the conversation goes on. */
  giveKey(key: string): void {
    this.key.give(key);
    // An answer that is coming belongs to the key that it was asked for with, and ends on its line.
    this.#hasOldLine = true;
    this.#hangUp();
    if (this.key.isGiven) this.#admit();
  }

  /** Tries a key that the person typed; then a waiting message is sent. */
  async submitKey(key: string): Promise<void> {
    if (this.#checkingKey) return;
    this.key.type(key);
    this.#transport.close();
    this.#checkingKey = true;
    this.#options.onChange();
    // A line that fails here says nothing about the key: the next message will tell.
    const refusal = await this.#transport.check().catch(() => undefined);
    this.#checkingKey = false;
    if (refusal) this.#asksForKey(refusal);
    // A refused one is forgotten, and the person may have done so meanwhile.
    if (!this.key.value) {
      this.#options.onChange();
      return;
    }
    this.key.keep();
    this.#admit();
  }

  /** Forgets the typed key here and in the browser's storage. */
  forgetKey(): void {
    this.key.forget();
    this.#transport.close();
    if (this.#info?.auth_required) this.key.prompt = "required";
    this.#options.onChange();
  }

  /** The network is back, or another one: a line from before it may be dead without knowing. */
  redial(): void {
    this.connection.tryNow();
    this.#transport.close();
  }

  /** Ends a run and hangs up; `open` goes on. */
  close(): void {
    this.#loading = false;
    this.session.stop();
    this.connection.tryNow();
    this.#transport.close();
    this.keeper.close();
  }

  /** Asks again and again, until the server answers. */
  async #load(): Promise<void> {
    if (this.#info || this.#loading) return;
    this.#loading = true;
    while (!(await this.#fetchInfo())) {
      await this.connection.wait();
      if (!this.#loading) return;
    }
    this.#loading = false;
  }

  async #fetchInfo(): Promise<boolean> {
    let info: AgentInfo;
    try {
      info = await fetchAgentInfo(this.server);
    } catch {
      // Down, blocked or not a chat server: to the person it is one and the same, with one way out.
      this.#phase = "unreachable";
      this.#options.onChange();
      return false;
    }
    this.connection.succeeded();
    this.#info = info;
    this.#phase = "ready";
    if (this.#isAnother(this.#agent)) void this.session.reset();
    if (info.auth_required && this.key.value === undefined) this.key.prompt = "required";
    this.#options.onChange();
    this.#options.onReady(info);
    await this.keeper.restored;
    if (!this.key.prompt) this.session.unlock();
    return true;
  }

  #restore(stored: StoredConversation, isNewer = false): void {
    this.#options.onDraft(stored.draft);
    // What this element already shows is newer than what another one has left.
    const isOld = this.session.messages.length > 0 && !isNewer;
    if (isOld || this.#isAnother(stored.agent)) return;
    this.#agent = stored.agent;
    this.session.restore(stored, stored.run);
    if (!isNewer) return;
    this.#transport.close();
    this.#options.onChange();
    if (this.#info && !this.key.prompt) this.session.unlock();
  }

  /** Whether it was another agent, at this address, that a conversation was with: this one knows nothing of it. */
  #isAnother(agent: string): boolean {
    return this.#info !== undefined && agent !== "" && agent !== this.#info.agent;
  }

  /** Closes a line that another key has opened, unless an answer comes over it. */
  #hangUp(): void {
    if (!this.#hasOldLine || this.session.status === "running") return;
    this.#hasOldLine = false;
    this.#transport.close();
  }

  #admit(): void {
    this.key.prompt = undefined;
    this.#options.onChange();
    this.session.unlock();
  }

  #asksForKey(error: ErrorEvent): boolean {
    if (!this.key.isAskedForBy(error)) return false;
    this.#transport.close();
    return true;
  }
}
