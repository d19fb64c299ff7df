/** A model API on a real socket that says, byte by byte, what a test has scripted, and records what it is asked. */

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { within } from "./deadline.ts";

/** How one request is answered. */
export interface UpstreamReply {
  /** 200 by default. */
  status?: number;
  /** Added to `content-type: text/event-stream`, which they may replace. */
  headers?: Record<string, string>;
  /**
   * The body's pieces, each written and flushed alone. A promise holds the rest back until it settles; so does a
   * function, which is called when what stands before it has reached the other side.
   */
  body?: readonly (string | Uint8Array | Promise<unknown> | (() => unknown))[];
  /** `close` (default) ends the answer, `cut` resets the connection, `stall` leaves it open and silent. */
  end?: "close" | "cut" | "stall";
  /** Hold even the head back: with `stall`, nothing is sent at all; with `cut`, the socket just closes. */
  headless?: boolean;
}

/** A request as it arrived. */
export interface UpstreamCall {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  /** The raw body. */
  body: string;
  /** The body as JSON; the tests know its shape. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads into it and fails where it is wrong.
  json: any;
  /** The client's port: the same for two requests that came over one connection. */
  port: number | undefined;
  /** Settles when the connection of this answer is over: "complete", or "aborted" by the other side. */
  readonly closed: Promise<"complete" | "aborted">;
}

export interface UpstreamServer extends AsyncDisposable {
  /** As a base URL: ends in `/v1`. */
  readonly url: string;
  /** Every request so far, in order. */
  readonly calls: readonly UpstreamCall[];
  /** Scripts the answers to the next requests, in order. A request without one is answered 500. */
  reply(...replies: UpstreamReply[]): void;
  /** The next request that `calls` does not hold yet. */
  nextCall(): Promise<UpstreamCall>;
  /** Ends all connections as a server does that keeps them no longer. Resolves when the other side has closed them, too. */
  endConnections(): Promise<void>;
  close(): Promise<void>;
}

/** Starts an upstream on a free port of the loopback address. */
export async function startUpstream(...replies: UpstreamReply[]): Promise<UpstreamServer> {
  const script = [...replies];
  const calls: UpstreamCall[] = [];
  const waiting: ((call: UpstreamCall) => void)[] = [];
  const server = createServer(async (req, res) => {
    const body = Buffer.concat(await req.toArray()).toString("utf8");
    const closed = new Promise<"complete" | "aborted">((resolve) => {
      res.once("close", () => resolve(res.writableFinished ? "complete" : "aborted"));
    });
    const call: UpstreamCall = {
      method: req.method ?? "",
      path: req.url ?? "",
      headers: req.headers,
      body,
      json: body.startsWith("{") ? JSON.parse(body) : undefined,
      port: req.socket.remotePort,
      get closed() {
        return within(closed, "the end of the upstream's answer");
      },
    };
    calls.push(call);
    waiting.shift()?.(call);
    await send(res, script.shift() ?? { status: 500, body: ["the test scripted no answer"] });
  });
  const connections = new Set<Socket>();
  server.on("connection", (socket) => {
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return {
    url: `http://127.0.0.1:${port}/v1`,
    calls,
    reply: (...more) => void script.push(...more),
    nextCall: () => within(new Promise((resolve) => waiting.push(resolve)), "the next call of the upstream"),
    endConnections: async () => {
      await Promise.all([...connections].map((socket) => once(socket.end(), "close")));
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function send(res: ServerResponse, reply: UpstreamReply): Promise<void> {
  const { status = 200, headers = {}, body = [], end = "close", headless = false } = reply;
  if (!headless) {
    res.writeHead(status, { "content-type": "text/event-stream; charset=utf-8", ...headers });
    res.flushHeaders();
  }
  for (const piece of body) {
    if (piece instanceof Promise) {
      await piece;
      continue;
    }
    if (typeof piece === "function") {
      for (let turn = 0; turn < 3; turn++) await nextTurn();
      await piece();
      continue;
    }
    await new Promise<void>((resolve) => res.write(piece, () => resolve()));
    await nextTurn();
  }
  if (end === "close") res.end();
  if (end === "cut") res.socket?.resetAndDestroy();
}

/** The bytes of `test/fixtures/providers/<name>.sse`; its first lines are comments that name the source. */
export function fixture(name: string): string {
  return readFileSync(new URL(`../fixtures/providers/${name}.sse`, import.meta.url), "utf8");
}

/** An event stream with these JSON objects (or `[DONE]`) as its data lines. */
export function eventStream(...events: readonly (object | string)[]): string {
  return events.map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`).join("");
}

/** A body of JSON with a status: how APIs refuse. */
export function jsonReply(status: number, body: unknown, headers = {}): UpstreamReply {
  return { status, headers: { "content-type": "application/json", ...headers }, body: [JSON.stringify(body)] };
}
