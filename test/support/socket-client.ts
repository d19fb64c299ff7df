/** A WebSocket client that hands over what the server says, one event at a time. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientOptions, WebSocket } from "ws";
import type { SocketEvent } from "../../server/protocol/events.ts";
import { within } from "./deadline.ts";
import { holdEvent } from "./described.ts";
import { type Cleanup, type ServerOptions, startServer } from "./start-server.ts";

export interface SocketEnd {
  code: number;
  reason: string;
}

export class SocketClient {
  readonly socket: WebSocket;

  readonly #closed: Promise<SocketEnd>;
  readonly #arrived: SocketEvent[] = [];
  /** How many of each type have come. */
  readonly #seen = new Map<string, number>();
  #wake: (() => void) | undefined;
  #end: SocketEnd | undefined;

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data, isBinary) => {
      assert.equal(isBinary, false, "the server sends text frames only");
      holdEvent(String(data), this.#seen);
      this.#arrived.push(JSON.parse(String(data)));
      this.#wake?.();
    });
    this.#closed = new Promise((resolve) => {
      socket.once("close", (code, reason) => {
        this.#end = { code, reason: String(reason) };
        resolve(this.#end);
        this.#wake?.();
      });
    });
  }

  /** Settles when the connection is closed, whoever closed it. */
  get closed(): Promise<SocketEnd> {
    return within(this.#closed, "the end of the socket");
  }

  send(message: unknown): void {
    this.socket.send(JSON.stringify(message));
  }

  /** The next event; fails when the connection closes before there is one. */
  async next(): Promise<SocketEvent> {
    while (this.#arrived.length === 0) {
      assert.equal(this.#end, undefined, `closed: ${JSON.stringify(this.#end)}`);
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      await within(woken, "the next socket event");
    }
    const event = this.#arrived.shift();
    assert.ok(event);
    return event;
  }

  /** Every event up to and with the first of these types. */
  async until(...types: SocketEvent["type"][]): Promise<SocketEvent[]> {
    const events: SocketEvent[] = [];
    for (;;) {
      const event = await this.next();
      events.push(event);
      if (types.includes(event.type)) return events;
    }
  }

  /** Sends a message and gathers its whole run. */
  async run(message: unknown): Promise<SocketEvent[]> {
    this.send(message);
    return this.until("done", "error");
  }

  /** Takes the events that are here already. */
  takeArrived(): SocketEvent[] {
    return this.#arrived.splice(0);
  }

  /** Events that are here already and that nobody has taken. */
  get unread(): readonly SocketEvent[] {
    return this.#arrived;
  }
}

/** Connects, and closes with the test. */
export async function connect(t: Cleanup, url: string, options: ClientOptions = {}): Promise<SocketClient> {
  const socket = new WebSocket(url, options);
  const client = new SocketClient(socket);
  t.after(() => socket.terminate());
  await within(once(socket, "open"), "the socket's opening");
  return client;
}

/** Starts a server, and connects to it. */
export async function startWithClient(t: Cleanup, options: ServerOptions) {
  const server = await startServer(t, options);
  return { server, client: await connect(t, server.socketUrl) };
}
