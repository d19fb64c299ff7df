/** A TCP connection that sends exactly the given bytes, including those that no HTTP client would send. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createConnection, type Socket } from "node:net";
import { within } from "./deadline.ts";
import { type Cleanup, type ServerOptions, startServer, type TestServer } from "./start-server.ts";

export interface RawAnswer {
  status: number;
  headers: Map<string, string>;
  body: string;
}

export class RawConnection {
  readonly socket: Socket;
  readonly #closed: Promise<void>;
  /** Received bytes that the test has not taken yet, one character each. */
  #text = "";
  #wake: (() => void) | undefined;
  #over = false;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding("latin1");
    socket.on("data", (text) => {
      this.#text += text;
      this.#wake?.();
    });
    // Treats a reset like any other end.
    socket.on("error", () => {});
    this.#closed = new Promise((resolve) => {
      socket.once("close", () => {
        this.#over = true;
        this.#wake?.();
        resolve();
      });
    });
  }

  /** Resolves when the connection is closed. */
  get closed(): Promise<void> {
    return within(this.#closed, "the end of the connection");
  }

  /** Joins lines with CRLF; resolves once the system has accepted them. */
  async write(...lines: string[]): Promise<void> {
    const { promise, settle } = written();
    this.socket.write(lines.join("\r\n"), "latin1", settle);
    await promise;
  }

  /** Takes received bytes up to and including the mark. */
  async until(mark: string): Promise<string> {
    for (;;) {
      const at = this.#text.indexOf(mark);
      if (at !== -1) return this.#take(at + mark.length);
      assert.ok(!this.#over, `closed after ${JSON.stringify(this.#text)}`);
      await this.#more(mark);
    }
  }

  /** Takes a whole response with `content-length`, or only the head if there is none. */
  async answer(): Promise<RawAnswer> {
    const head = (await this.until("\r\n\r\n")).trimEnd();
    const [statusLine = "", ...lines] = head.split("\r\n");
    const headers = new Map(
      lines.map((line) => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    const length = Number(headers.get("content-length") ?? 0);
    const body = await this.bytes(length);
    return { status: Number(statusLine.split(" ")[1]), headers, body };
  }

  /** Takes so many bytes, or fewer if the connection ends before. */
  async bytes(length: number): Promise<string> {
    while (this.#text.length < length && !this.#over) await this.#more("the body");
    return this.#take(length);
  }

  /** Received bytes that the test has not taken yet. */
  get rest(): string {
    return this.#text;
  }

  #take(length: number): string {
    const taken = this.#text.slice(0, length);
    this.#text = this.#text.slice(length);
    return taken;
  }

  async #more(what: string): Promise<void> {
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    await within(woken, JSON.stringify(what));
  }
}

/** Starts a server and connects to it. */
export async function startWithRaw(t: Cleanup, options: ServerOptions) {
  const server = await startServer(t, options);
  return { server, raw: await connectRaw(t, server) };
}

/** The first lines of a chat request, without the headers that depend on its body. */
export const CHAT_HEAD = ["POST /api/chat HTTP/1.1", "host: 127.0.0.1", "content-type: application/json"];

/** The lines of a whole chat request. */
export function chatRequest(message: object, ...headers: string[]): string[] {
  const body = JSON.stringify(message);
  return [...CHAT_HEAD, ...headers, `content-length: ${Buffer.byteLength(body)}`, "", body];
}

/** Connects and upgrades to WebSocket. */
export async function connectRawSocket(t: Cleanup, server: Pick<TestServer, "port">): Promise<RawConnection> {
  const raw = await connectRaw(t, server);
  await raw.write(...upgrade());
  await raw.answer();
  return raw;
}

/** The lines of a WebSocket handshake, with the key of RFC 6455 so that `sec-websocket-accept` is known. */
export function upgrade(path = "/ws/chat", ...more: string[]): string[] {
  return [
    `GET ${path} HTTP/1.1`,
    "host: 127.0.0.1",
    "connection: Upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
    ...more,
    "",
    "",
  ];
}

/** Connects; destroys the connection at the end of the test. */
export async function connectRaw(t: Cleanup, { port }: Pick<TestServer, "port">): Promise<RawConnection> {
  const socket = createConnection({ port, host: "127.0.0.1" });
  t.after(() => socket.destroy());
  await within(once(socket, "connect"), "the connection");
  return new RawConnection(socket);
}

function written() {
  let settle = () => {};
  const promise = new Promise<void>((resolve) => {
    settle = () => resolve();
  });
  return { promise, settle };
}
