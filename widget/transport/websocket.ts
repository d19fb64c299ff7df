/** Runs over `WS /ws/chat`. Connects on first need, and again after the connection broke. */

import type { ErrorEvent } from "../../server/protocol/events.ts";
import { SocketConnection } from "./socket-connection.ts";
import { type Endpoint, isResume, type RunEvent, type RunRequest, type Transport } from "./transport.ts";

/** Unused for so long, a connection may have died in a sleep of the machine without an event. */
const FRESH_MS = 300_000;

export class WebSocketTransport implements Omit<Transport, "cancel"> {
  readonly #endpoint: Endpoint;
  #connection: Promise<SocketConnection> | undefined;
  /** The connection over which a message was sent last. */
  #sender: SocketConnection | undefined;
  #usedAt = 0;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
  }

  get unsent(): number {
    return this.#sender?.unsent ?? 0;
  }

  /** Resolves with the open connection, or with a new one. Rejects with `unreachable`. */
  connect(): Promise<SocketConnection> {
    this.#connection = this.#reuse(this.#connection);
    return this.#connection;
  }

  async run(request: RunRequest, onEvent: (event: RunEvent) => void, signal: AbortSignal): Promise<void> {
    const connection = await this.connect();
    this.#endpoint.onOpen?.();
    if (signal.aborted) return;
    this.#sender = connection;
    try {
      const body = isResume(request)
        ? { type: "resume" as const, ...request }
        : { ...request, attachments: [...request.attachments] };
      await connection.run(body, onEvent, signal);
    } finally {
      this.#usedAt = Date.now();
    }
  }

  async clear(): Promise<void> {
    this.#sender?.leaveRun();
    // Without a connection there is nothing to forget.
    const connection = await this.#connection?.catch(() => undefined);
    await connection?.clear();
  }

  /** `cleared` is the one answer that needs no run, so it proves that the key was accepted. */
  async check(): Promise<ErrorEvent | undefined> {
    return (await this.connect()).clear();
  }

  close(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    connection?.then((opened) => opened.close()).catch(() => undefined);
  }

  async #reuse(previous: Promise<SocketConnection> | undefined): Promise<SocketConnection> {
    const existing = await previous?.catch(() => undefined);
    if (existing?.isOpen && Date.now() < this.#usedAt + FRESH_MS) return existing;
    existing?.close();
    this.#usedAt = Date.now();
    return SocketConnection.open(this.#url());
  }

  #url(): URL {
    const url = new URL("ws/chat", this.#endpoint.server);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    // [contract] A browser cannot set headers on a socket: the key travels in the query.
    const key = this.#endpoint.key();
    if (key !== undefined) url.searchParams.set("key", key);
    return url;
  }
}
