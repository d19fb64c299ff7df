/** A model API on a bare socket: it says what a test wants byte by byte, also what is no HTTP at all. */

import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { within } from "./deadline.ts";
import type { Cleanup } from "./start-server.ts";

/** What happens to one request, once it is there. */
export type Answer = (socket: Socket) => unknown;

export interface FaultyUpstream {
  /** As a base URL: ends in `/v1`. */
  readonly url: string;
  /** How many requests came. */
  readonly requests: number;
  /** What every request gets from now on. */
  answer(answer: Answer): void;
  /** Settles when no connection is open any more, whichever side closed it. */
  allClosed(): Promise<void>;
  /** Nobody listens any more. */
  stop(): Promise<void>;
}

export async function startFaultyUpstream(t: Cleanup): Promise<FaultyUpstream> {
  const sockets = new Set<Socket>();
  let answer: Answer = (socket) => socket.destroy();
  let requests = 0;
  const server = createServer(async (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    // The other side resets what it has no more use for.
    socket.on("error", () => {});
    await wholeRequest(socket);
    if (socket.destroyed) return;
    requests++;
    answer(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const stop = async () => {
    for (const socket of sockets) socket.destroy();
    if (!server.listening) return;
    server.close();
    await once(server, "close");
  };
  t.after(stop);
  return {
    url: `http://127.0.0.1:${address.port}/v1`,
    get requests() {
      return requests;
    },
    answer(next) {
      answer = next;
    },
    async allClosed() {
      // Not with `once`, which rejects for a reset.
      const open = [...sockets].filter((socket) => !socket.closed);
      const ends = open.map((socket) => new Promise((closed) => socket.once("close", closed)));
      await within(Promise.all(ends), "the end of every connection");
    },
    stop,
  };
}

/** Settles when the head and the body that it announces have been read, or the connection is over. */
async function wholeRequest(socket: Socket): Promise<void> {
  let request = "";
  for (;;) {
    const [, length = "0"] = /\r\ncontent-length: (\d+)\r\n/i.exec(request) ?? [];
    const head = request.indexOf("\r\n\r\n");
    if (head !== -1 && request.length - head - 4 >= Number(length)) return;
    const piece = await new Promise<Buffer | undefined>((resolve) => {
      socket.once("data", resolve);
      socket.once("close", () => resolve(undefined));
    });
    if (piece === undefined) return;
    request += piece.toString("latin1");
  }
}

/** The head of an answer that ends with its connection. */
export function head(status: string, headers: Readonly<Record<string, string>> = {}): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status}\r\nconnection: close\r\n${lines.join("")}\r\n`;
}

/** The head of an answer in chunks, whose end is then seen to be missing. */
export function chunkedHead(status: string, headers: Readonly<Record<string, string>> = {}) {
  return head(status, { ...headers, "transfer-encoding": "chunked" });
}

/** One chunk of such an answer. */
export function chunk(bytes: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
}

/** Writes until nobody takes it any more. */
export function writeForEver(socket: Socket, start: string | Uint8Array, piece: string | Uint8Array): void {
  const more = () => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on("drain", more);
  socket.write(start);
  more();
}
