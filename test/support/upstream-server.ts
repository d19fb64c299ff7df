/** A model API on a real socket that sends scripted bytes and records its requests. */

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { within } from "./deadline.ts";

/** The response to one request. */
export interface UpstreamReply {
  /** 200 by default. */
  status?: number;
  /** Added to `content-type: text/event-stream`, which they can override. */
  headers?: Record<string, string>;
  /**
   * The body's pieces, each written and flushed separately. A promise delays the rest until it settles; so does a
   * function, which is called once all before it has reached the client.
   */
  body?: readonly (string | Uint8Array | Promise<unknown> | (() => unknown))[];
  /** `close` (default) ends the response, `cut` resets the connection, `stall` leaves it open without sending. */
  end?: "close" | "cut" | "stall";
  /** Omits even the head: with `stall`, nothing is sent at all; with `cut`, the socket just closes. */
  headless?: boolean;
}

/** A request as received. */
export interface UpstreamCall {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  /** The raw body. */
  body: string;
  /** The body as JSON; the tests know its shape. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads into it and fails where it is wrong.
  json: any;
  /** The client's port, which is the same for requests over one connection. */
  port: number | undefined;
  /** Resolves when the response's connection ends: "complete", or "aborted" by the client. */
  readonly closed: Promise<"complete" | "aborted">;
}

export interface UpstreamServer extends AsyncDisposable {
  /** A base URL, which ends in `/v1`. */
  readonly url: string;
  /** All requests so far, in order. */
  readonly calls: readonly UpstreamCall[];
  /** Scripts the responses to the next requests, in order. A request without one gets a 500. */
  reply(...replies: UpstreamReply[]): void;
  /** The next request that is not in `calls` yet. */
  nextCall(): Promise<UpstreamCall>;
  /** Closes all connections, like a server after its keep-alive time. Resolves when the client has closed them, too. */
  endConnections(): Promise<void>;
  close(): Promise<void>;
}

/** Starts an upstream on a free loopback port. */
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

/** An event stream with these JSON objects or `[DONE]` as its data. */
export function eventStream(...events: readonly (object | string)[]): string {
  return events.map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`).join("");
}

/** A JSON response with a status, such as an API's error. */
export function jsonReply(status: number, body: unknown, headers = {}): UpstreamReply {
  return { status, headers: { "content-type": "application/json", ...headers }, body: [JSON.stringify(body)] };
}
