/** A WebSocket client that returns the server's events one at a time. */

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
  /** Number of received events per type. */
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

  /** Resolves when either side has closed the connection. */
  get closed(): Promise<SocketEnd> {
    return within(this.#closed, "the end of the socket");
  }

  send(message: unknown): void {
    this.socket.send(JSON.stringify(message));
  }

  /** The next event; fails if the connection closes before. */
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

  /** All events up to and including the first of these types. */
  async until(...types: SocketEvent["type"][]): Promise<SocketEvent[]> {
    const events: SocketEvent[] = [];
    for (;;) {
      const event = await this.next();
      events.push(event);
      if (types.includes(event.type)) return events;
    }
  }

  /** Sends a message and collects all events of its run. */
  async run(message: unknown): Promise<SocketEvent[]> {
    this.send(message);
    return this.until("done", "error");
  }

  /** Takes the events received so far. */
  takeArrived(): SocketEvent[] {
    return this.#arrived.splice(0);
  }

  /** Received events that the test has not taken yet. */
  get unread(): readonly SocketEvent[] {
    return this.#arrived;
  }
}

/** Connects; closes the connection at the end of the test. */
export async function connect(t: Cleanup, url: string, options: ClientOptions = {}): Promise<SocketClient> {
  const socket = new WebSocket(url, options);
  const client = new SocketClient(socket);
  t.after(() => socket.terminate());
  await within(once(socket, "open"), "the socket's opening");
  return client;
}

/** Starts a server and connects to it. */
export async function startWithClient(t: Cleanup, options: ServerOptions) {
  const server = await startServer(t, options);
  return { server, client: await connect(t, server.socketUrl) };
}
