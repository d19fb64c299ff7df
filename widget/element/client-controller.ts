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

/** The members of the element that a client is made with. */
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
  /** Gives back a message that was not accepted. */
  readonly onUnsent: (message: OutgoingMessage) => void;
  /** The user may send a message soon. */
  readonly onPrepare: () => void;
}

/** The client of an element: one per server, open while the element is in a page. */
export class ClientController implements ReactiveController {
  /** Absent until the element is in a page, and if `server` is not a valid URL. */
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
    // The status line depends on the browser's network state, and on parts that could not be loaded.
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
   * Closes the client of the previous server, and creates one for `address`. Returns `undefined`, and logs an error, if
   * `address` is not a valid URL.
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
        // The reason for a refusal is drawn once its text is loaded.
        if (client.refusal) void explain(client.refusal, this.#host.texts).then(changed);
        else changed();
      },
      asksPeople: server.origin === location.origin,
      onReady: (info) => fireEvent(this.#host, "agent-chat-ready", { info }),
      onUnsent: (message) => this.#listener.onUnsent(message),
      onLoginRequired: () => fireEvent(this.#host, "agent-chat-login-required", {}),
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

  /** To be called when the settings about keeping conversations have changed. */
  persistChanged(): void {
    const { library } = this.client ?? {};
    if (!this.#persists) void library?.erase();
    else if (this.#host.isConnected) library?.open();
    void library?.look();
    library?.save();
  }

  /** Closes the client permanently. */
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

  /** Not before the user has done anything: the server's own page focuses the text field by itself. */
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
