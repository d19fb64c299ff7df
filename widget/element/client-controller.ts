import type { ReactiveController, ReactiveControllerHost } from "lit";
import type { AgentInfo } from "../../server/protocol/chat.ts";
import type { OutgoingMessage } from "../conversations/conversation.ts";
import { type AssistantMessage, answerText } from "../conversations/messages.ts";
import { explain } from "../i18n/load-strings.ts";
import type { Strings } from "../i18n/strings.ts";
import { MISSING_PARTS } from "../loading/missing.ts";
import { Client, type ClientOptions } from "../session/client.ts";
import { parseServer } from "../session/server.ts";
import { fireEvent } from "./events.ts";
import type { ChatProperties } from "./public-types.ts";

/** The element: what of it a client is made with. */
export interface ClientHost
  extends ReactiveControllerHost,
    HTMLElement,
    Pick<ChatProperties, "server" | "apiKey" | "persist" | "conversations" | "userToken" | "metadata"> {
  readonly own: { readonly conversations?: boolean | undefined } | undefined;
  readonly texts: Strings;
}

export interface ClientListener extends Pick<ClientOptions, "onDraft" | "onSwitch" | "onForget" | "place"> {
  /** The conversation, the connection or what is known of the server has changed. */
  readonly onChange: (client: Client) => void;
  /** A message that was not taken. */
  readonly onUnsent: (message: OutgoingMessage) => void;
  /** A message may come soon. */
  readonly onPrepare: () => void;
}

/** The client of an element: another one for another server, and open while the element is in a page. */
export class ClientController implements ReactiveController {
  /** Absent until the element is in a page, and where its server is no address. */
  client: Client | undefined;
  readonly #host: ClientHost;
  readonly #listener: ClientListener;
  #listeners = new AbortController();

  constructor(host: ClientHost, listener: ClientListener) {
    this.#host = host;
    this.#listener = listener;
    host.addController(this);
  }

  hostConnected(): void {
    this.#listeners = new AbortController();
    const { signal } = this.#listeners;
    window.addEventListener("online", () => this.client?.networkChanged(), { signal });
    // The status is drawn from what the browser says about its network, and from what is known of parts.
    for (const type of ["online", "offline", MISSING_PARTS]) {
      window.addEventListener(type, () => this.#lookAtNetwork(), { signal });
    }
    window.addEventListener("pagehide", () => this.client?.suspend(), { signal });
    window.addEventListener("pageshow", ({ persisted }) => persisted && void this.client?.returned(), { signal });
    this.#host.addEventListener("focusin", () => this.#prepare(), { signal });
    document.addEventListener("visibilitychange", () => this.#visibilityChanged(), { signal });
    this.client?.open(this.#persists);
  }

  #lookAtNetwork(): void {
    if (this.client) this.client.reconnect.isOffline = navigator.onLine === false;
    this.#host.requestUpdate();
  }

  hostDisconnected(): void {
    this.#listeners.abort();
    // An element that is only moved is connected again by then.
    queueMicrotask(() => {
      if (!this.#host.isConnected) this.client?.close();
    });
  }

  /**
   * Leaves the server, and begins with the one at an address. `undefined`, with an error in the console, where it is
   * none.
   */
  connect(address: string, info?: AgentInfo): Client | undefined {
    this.#leave();
    const { apiKey, id, userToken, metadata } = this.#host;
    const server = parseServer(address, document.baseURI);
    if (!server) {
      console.error(
        `<agent-chat> server must be an http or https URL such as "https://chat.example", not "${address}"`,
      );
      return undefined;
    }
    const client: Client = new Client({
      ...this.#listener,
      server,
      id,
      siteKey: apiKey,
      userToken,
      metadata,
      info,
      onChange: () => {
        const changed = () => {
          if (this.client === client) this.#listener.onChange(client);
        };
        // Why the page is refused is drawn once there are words for it.
        if (client.refusal) void explain(client.refusal, this.#host.texts).then(changed);
        else changed();
      },
      asksPeople: server.origin === location.origin,
      onReady: (info) => fireEvent(this.#host, "agent-chat-ready", { info }),
      onLoginRequired: (unsent) => {
        if (unsent) this.#listener.onUnsent(unsent);
        fireEvent(this.#host, "agent-chat-login-required", {});
      },
      keepsAll: () => this.keepsAll,
      onToken: (text, messageId) => fireEvent(this.#host, "agent-chat-token", { text, messageId }),
      onTool: ({ callId, tool, title, status, arguments: args, output, approval, problems }) =>
        fireEvent(this.#host, "agent-chat-tool", {
          ...{ callId, tool, title, status, arguments: args, output, approval, problems },
        }),
      onAnswerEnd: (message) => this.#answerEnded(message),
    });
    this.client = client;
    this.#lookAtNetwork();
    // The element may have left the page before its first drawing.
    if (this.#host.isConnected) client.open(this.#persists);
    return client;
  }

  /** To be called when the element says otherwise whether the conversation outlives a reload. */
  persistChanged(): void {
    const { library } = this.client ?? {};
    if (!this.#persists) void library?.erase();
    else if (this.#host.isConnected) library?.open();
    void library?.look();
    library?.save();
  }

  /** Leaves a server permanently. */
  #leave(): void {
    this.client?.close();
    this.client = undefined;
  }

  /** Whether the browser keeps all conversations, and lists them. */
  get keepsAll(): boolean {
    const { conversations, own } = this.#host;
    return (conversations ?? own?.conversations ?? false) && this.#persists;
  }

  get #persists(): boolean {
    return this.#host.persist !== "none";
  }

  /** The server's page puts the cursor into the field itself, which does not mean that a message comes. */
  #prepare(): void {
    if (navigator.userActivation?.hasBeenActive === false) return;
    this.#listener.onPrepare();
    this.client?.prepare();
  }

  #visibilityChanged(): void {
    if (document.visibilityState === "hidden") this.client?.library.save();
    else {
      this.client?.reconnect.retryNow();
      // Another tab may have begun the first conversation.
      void this.client?.library.look();
    }
  }

  #answerEnded(message: AssistantMessage): void {
    const { failure, finishReason = "stop", suggestions = [] } = message;
    if (failure) {
      const { code, reference } = failure;
      void explain(failure, this.#host.texts).then((message) =>
        fireEvent(this.#host, "agent-chat-error", { code, reference, message }),
      );
    } else fireEvent(this.#host, "agent-chat-done", { text: answerText(message), finishReason, suggestions });
  }
}
