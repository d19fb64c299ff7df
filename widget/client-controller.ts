/** The client of an element: another one for another server, and open while the element is in a page. */

import type { ReactiveController, ReactiveControllerHost } from "lit";
import { AgentChatReadyEvent, AgentChatTokenEvent } from "./agent-chat.events.ts";
import { ChatClient } from "./chat-client.ts";
import type { ChatScreen } from "./chat-screen.ts";
import type { Language } from "./language.ts";
import type { ReplyWatcher } from "./reply-watcher.ts";
import { parseServer } from "./server-url.ts";

/** An open line would keep browsers from showing a page again as it was left. */
const NETWORK = ["online", "offline", "pagehide"];

/** The element: what of it a client is made with. */
export interface ClientHost extends ReactiveControllerHost, HTMLElement {
  readonly server: string;
  readonly apiKey: string;
  readonly persist: "session" | "none";
  readonly language: Language;
}

export class ClientController implements ReactiveController {
  /** Absent until the element is in a page. */
  client: ChatClient | undefined;
  readonly #host: ClientHost;
  readonly #screen: ChatScreen;
  readonly #watcher: ReplyWatcher;

  /** `screen` and `watcher` follow the client. */
  constructor(host: ClientHost, screen: ChatScreen, watcher: ReplyWatcher) {
    this.#host = host;
    this.#screen = screen;
    this.#watcher = watcher;
    host.addController(this);
  }

  hostConnected(): void {
    for (const type of NETWORK) window.addEventListener(type, this.#network);
    this.client?.open(this.#persists);
  }

  hostDisconnected(): void {
    for (const type of NETWORK) window.removeEventListener(type, this.#network);
    // An element that is only moved is connected again by then.
    queueMicrotask(() => {
      if (!this.#host.isConnected) this.client?.close();
    });
  }

  /** Leaves the server, and begins with the one that the element names. */
  connect(): void {
    const host = this.#host;
    if (this.client) {
      this.client.close();
      // What is open, changed or told of there.
      this.#watcher.watch([]);
      this.#screen.clear();
    }
    const client = new ChatClient({
      server: parseServer(host.server),
      id: host.id,
      givenKey: host.apiKey,
      onChange: () => {
        host.language.use();
        host.requestUpdate();
        if (this.client !== client) return;
        this.#watcher.watch(client.session.messages);
        this.#screen.watch(client.connection);
      },
      onDraft: (draft) => {
        this.#screen.draft = draft;
      },
      onReady: (info) => host.dispatchEvent(new AgentChatReadyEvent(info)),
      onToken: (text, id) => host.dispatchEvent(new AgentChatTokenEvent(text, id)),
    });
    this.client = client;
    client.open(this.#persists);
  }

  /** To be called when the element says otherwise whether the conversation outlives a reload. */
  persist(): void {
    if (this.client) this.client.keeper.isOn = this.#persists;
  }

  get #persists(): boolean {
    return this.#host.persist !== "none";
  }

  readonly #network = ({ type }: Event) => {
    const isIdle = !this.client?.session.busy;
    if (type === "online" || (type === "pagehide" && isIdle)) this.client?.redial();
    this.#host.requestUpdate();
  };
}
