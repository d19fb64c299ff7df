/** A scripted MCP server over HTTP, with sessions, that records its requests. */

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { atEnd } from "../support/at-end.ts";
import { within } from "../support/deadline.ts";
import type { Cleanup } from "../support/start-server.ts";

/** One request. `method` is the protocol's method, or the HTTP method if there is no message. */
export interface Asked {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly params: Params;
  readonly id: unknown;
  readonly body: string;
}

// biome-ignore lint/suspicious/noExplicitAny: what a client may send.
type Params = any;

/** A running tool call. */
export interface Calling extends Asked {
  progress(progress: number, more?: object): void;
  /** Resolves when the client has disconnected. */
  readonly gone: Promise<unknown>;
}

export interface Script {
  tools?: readonly object[] | ((asked: Asked) => readonly object[]);
  call?(calling: Calling): unknown;
  /** Additional fields of the response to `initialize`. */
  about?: object;
  /** May answer in place of the server; returns whether it did. */
  instead?(asked: Asked, res: ServerResponse): boolean | undefined;
  /** Status for unknown sessions. */
  unknown?: 400 | 404;
  /** Port to listen on. */
  port?: number;
}

export const toolNamed = (name: string, more: object = {}) => ({ name, inputSchema: { type: "object" }, ...more });

export const textResult = (text: string) => ({ content: [{ type: "text", text }] });

const NO_SESSION = { 400: "Bad Request: No valid session ID provided", 404: "Session not found" };

export type HttpServer = Awaited<ReturnType<typeof startHttpServer>>;

export async function startHttpServer(t: Cleanup, script: Script = {}) {
  const { unknown = 404 } = script;
  const asked: Asked[] = [];
  const sessions = new Set<string>();
  const send = (res: ServerResponse, status: number, body?: unknown, headers = {}) =>
    res.writeHead(status, { "content-type": "application/json", ...headers }).end(body && JSON.stringify(body));

  const answer = async (one: Asked, res: ServerResponse) => {
    const { method, id, headers } = one;
    const reply = (result: unknown, more = {}) => send(res, 200, { jsonrpc: "2.0", id, result }, more);
    const refuse = (status: number, message: string) =>
      send(res, status, { jsonrpc: "2.0", id: id ?? null, error: { code: -32_000, message } });
    if (method === "initialize") {
      const session = randomUUID();
      sessions.add(session);
      const capabilities = { tools: { listChanged: true } };
      const serverInfo = { name: "scripted", version: "1" };
      const about = { protocolVersion: one.params.protocolVersion, capabilities, serverInfo, ...script.about };
      return reply(about, { "mcp-session-id": session });
    }
    const session = headers["mcp-session-id"];
    if (session === undefined) return refuse(400, "Bad Request: Server not initialized");
    if (!sessions.has(String(session))) return refuse(unknown, NO_SESSION[unknown]);
    if (method === "GET") return res.writeHead(405).end();
    if (id === undefined) return res.writeHead(202).end();
    const { tools = [] } = script;
    if (method === "tools/list") return reply({ tools: typeof tools === "function" ? tools(one) : tools });
    if (method !== "tools/call") return refuse(404, "Method not found");
    res.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    const event = (data: object) => res.write(`data: ${JSON.stringify({ jsonrpc: "2.0", ...data })}\n\n`);
    const progressToken = one.params._meta?.progressToken;
    const progress = (progress: number, more = {}) =>
      event({ method: "notifications/progress", params: { progressToken, progress, ...more } });
    try {
      const result = await script.call?.({ ...one, progress, gone: once(res, "close") });
      event({ id, result: result ?? textResult("Done.") });
    } catch (error) {
      event({ id, error: { code: -32_603, message: String(error) } });
    }
    return res.end();
  };

  const server = createServer(async (req, res) => {
    const one = await readRequest(req);
    asked.push(one);
    if (!script.instead?.(one, res)) await answer(one, res);
  });
  const listen = async (port: number) => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  };
  await listen(script.port ?? 0);
  const { port } = server.address() as AddressInfo;
  /** Stops listening and cuts all connections. */
  const down = async () => {
    if (!server.listening) return;
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
  };
  atEnd(t, down);
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    asked,
    count: (method: string) => asked.filter((one) => one.method === method).length,
    /** Waits until a method was called `count` times. */
    until: async (method: string, count: number) => {
      while (asked.filter((one) => one.method === method).length < count) {
        await within(once(server, "request"), `${count} times ${method}`);
      }
    },
    /** Forgets all sessions. */
    forget: () => sessions.clear(),
    cut: () => server.closeAllConnections(),
    down,
    /** Simulates another process at the same address. */
    restart: async () => {
      await down();
      sessions.clear();
      await listen(port);
    },
  };
}

async function readRequest(req: IncomingMessage): Promise<Asked> {
  let body = "";
  for await (const chunk of req.setEncoding("utf8")) body += chunk;
  const isMessage = req.headers["content-type"] === "application/json";
  const { method = req.method ?? "", params = {}, id } = isMessage ? JSON.parse(body) : {};
  return { method, headers: req.headers, params, id, body };
}
