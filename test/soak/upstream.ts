/** A Chat Completions server for the soak test: each message determines its answer, and what must arrive. */

import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { CHAT_COMPLETIONS } from "../support/upstream-replies.ts";

export const KINDS = [
  "text",
  "tools",
  "busy-once",
  "cut",
  "reset",
  "page",
  "busy",
  "limited",
  "silent",
  "garbage",
] as const;
export type Kind = (typeof KINDS)[number];

/** The answer that a message asks for. */
export interface Order {
  id: number;
  kind: Kind;
  words: number;
}

export const messageOf = ({ id, kind, words }: Order): string => `order ${id} ${kind} ${words}`;

/** The text of a whole answer. Each word is unique, so that a lost or duplicated one is noticed. */
export const answerTo = ({ id, words }: Order): string =>
  Array.from({ length: words }, (_, at) => `${id}.${at} `).join("");

/** Starts the server; resolves with its base URL. */
export async function startUpstream(): Promise<{ url: string; close(): void }> {
  const refused = new Set<number>();
  const server = createServer(async (req, res) => {
    const body = Buffer.concat(await req.toArray()).toString();
    res.on("error", () => {});
    const last = /order (\d+) ([a-z-]+) (\d+)(?!.*order \d)/s.exec(body);
    if (last === null) return void res.writeHead(400).end();
    const [, id, kind, words] = last;
    const order = { id: Number(id), kind: kind as Kind, words: Number(words) };
    const hasResults = /"role":"tool"[^{}]*\}\]?[^[\]]*$/.test(body.slice(last.index));
    await reply(res, order, hasResults, refused);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    close: () => void server.close().closeAllConnections(),
  };
}

async function reply(res: ServerResponse, order: Order, hasResults: boolean, refused: Set<number>) {
  const { id, kind } = order;
  const refuse = (status: number, headers = {}) => {
    res.writeHead(status, { "content-type": "application/json", "x-should-retry": "false", ...headers });
    res.end('{"error":{"message":"refused"}}');
  };
  switch (kind) {
    case "busy-once":
      if (refused.delete(id)) return sayAll(res, order);
      refused.add(id);
      return void res.writeHead(503, { "content-type": "application/json" }).end("{}");
    case "busy":
      return refuse(503);
    case "limited":
      return refuse(429, { "retry-after": "30" });
    case "page":
      return void res.writeHead(200, { "content-type": "text/html" }).end("<h1>Hi</h1>");
    case "tools":
      if (hasResults) return sayAll(res, order);
      res.writeHead(200, { "content-type": "text/event-stream" });
      return void res.end(callsOf(id));
    case "text":
      return sayAll(res, order);
    default:
      await say(res, answerTo({ ...order, words: Math.ceil(order.words / 2) }));
      if (kind === "cut") res.end();
      if (kind === "reset") res.socket?.resetAndDestroy();
      if (kind === "garbage") res.end("data: {never\n\n");
  }
}

/** One tool that works, one that throws, one that hangs, one that returns a megabyte, one that does not exist. */
export const CALLED = ["echo", "boom", "hang", "huge", "nowhere"] as const;

function callsOf(id: number): string {
  const calls = CALLED.map((name, index) => ({
    id: `c${id}_${index}`,
    name,
    args: { text: `${id}` },
  }));
  return String(CHAT_COMPLETIONS.calls(calls).body?.[0]);
}

async function sayAll(res: ServerResponse, order: Order): Promise<void> {
  await say(res, answerTo(order));
  res.end('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n');
}

/** Ten words at a time, with pauses in which clients connect and disconnect. */
async function say(res: ServerResponse, text: string): Promise<void> {
  res.writeHead(200, { "content-type": "text/event-stream" });
  const words = text.split(/(?<= )/);
  for (let at = 0; at < words.length && !res.destroyed; at += 10) {
    const pieces = words.slice(at, at + 10).map((content) => {
      const chunk = { choices: [{ index: 0, delta: { content }, finish_reason: null }] };
      return `data: ${JSON.stringify(chunk)}\n\n`;
    });
    res.write(pieces.join(""));
    await delay(2);
  }
}
