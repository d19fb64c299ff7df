/** A proxy between a browser and the server: forwards everything until the test says otherwise. */

import { randomInt } from "node:crypto";
import { once } from "node:events";
import { type ClientRequest, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { atEnd, type TestEnd } from "./at-end.ts";

type Upgrades = "pass" | "refuse" | "swallow";

export interface ProxyOptions {
  /** Whether WebSockets pass; `swallow`: the handshake is never answered. A function is called for each WebSocket. */
  upgrades?: Upgrades | (() => Upgrades);
  /** Path prefixes under which the proxy serves the server, which it removes. Other paths get 404. */
  below?: readonly string[];
}

export interface TestProxy {
  /** Without a slash at the end. */
  readonly url: string;
  /** Cuts every connection, like a network failure. */
  cut(): void;
  /** Cuts every connection and accepts no new ones. */
  down(): Promise<void>;
  /** Listens again, on the same port. */
  up(): Promise<void>;
}

/** Starts a proxy on a free port in front of a server's port on this machine. */
export async function startProxy(
  t: TestEnd,
  target: number,
  { upgrades = "pass", below = [""] }: ProxyOptions = {},
): Promise<TestProxy> {
  const sockets = new Set<Socket>();
  /** Removes the prefix from the request's path; `false` if there is none. */
  const strip = (req: IncomingMessage) => {
    const path = below.find((one) => req.url?.startsWith(`${one}/`));
    req.url = req.url?.slice(path?.length);
    return path !== undefined;
  };
  const proxy = createServer((req, res) => {
    if (strip(req)) req.pipe(passOn(req, res, `http://127.0.0.1:${target}`));
    else res.writeHead(404).end();
  });
  proxy.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  proxy.on("upgrade", (req: IncomingMessage, socket: Socket, head: Buffer) => {
    const fate = typeof upgrades === "function" ? upgrades() : upgrades;
    if (fate === "swallow") return;
    if (fate === "pass" && strip(req)) passUpgradeOn(req, socket, head, target);
    else socket.end("HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
  });
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const down = async () => {
    if (!proxy.listening) return;
    const closed = once(proxy, "close");
    proxy.close();
    cut();
    await closed;
  };
  const listen = async (port: number) => {
    proxy.listen(port, "127.0.0.1");
    await once(proxy, "listening");
  };
  const port = await listenOnAny(listen);
  atEnd(t, down);
  return { url: `http://127.0.0.1:${port}`, cut, down, up: () => listen(port) };
}

/**
 * Below the range from which systems assign free ports: only another proxy could take the port while this one is down.
 * Browsers block some ports below these, such as 10080.
 */
const PORTS = { from: 11_000, to: 19_999 };

async function listenOnAny(listen: (port: number) => Promise<void>): Promise<number> {
  for (;;) {
    const port = randomInt(PORTS.from, PORTS.to + 1);
    try {
      await listen(port);
      return port;
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EADDRINUSE")) throw error;
    }
  }
}

/** Creates the request to the target and forwards its response; the caller still has to write the body. */
export function passOn(req: IncomingMessage, res: ServerResponse, target: string): ClientRequest {
  const { method, headers, url = "" } = req;
  const onward = request(new URL(url, target), { method, headers, agent: false });
  onward.on("response", (answer) => {
    res.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(res);
    answer.on("error", () => res.destroy());
  });
  onward.on("error", () => res.destroy());
  res.on("close", () => onward.destroy());
  return onward;
}

function passUpgradeOn(req: IncomingMessage, socket: Socket, head: Buffer, port: number): void {
  const lines = req.rawHeaders.reduce(
    (text, part, index) => text + part + (index % 2 === 0 ? ": " : "\r\n"),
    `${req.method} ${req.url} HTTP/1.1\r\n`,
  );
  const onward = connect(port, "127.0.0.1");
  onward.write(`${lines}\r\n`);
  onward.write(head);
  onward.pipe(socket).pipe(onward);
  onward.on("error", () => socket.destroy()).on("close", () => socket.destroy());
  socket.on("error", () => onward.destroy()).on("close", () => onward.destroy());
}
