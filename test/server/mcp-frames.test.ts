/**
 * What the MCP door has said to the official client, kept in test/fixtures/doors: it says the same today, and a client that is newer
 * understands it. Written by: FRAMES=write node --import tsx --test test/server/mcp-frames.test.ts
 */

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { test } from "node:test";
import { REPOSITORY } from "../support/command.ts";
import { listen } from "../support/listen.ts";
import { ask, connectMcp, ERAS, MCP_ENV, type McpClientOptions } from "../support/mcp-client.ts";
import { call, say } from "../support/scripted-provider.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";
import { define, echo } from "../support/test-tools.ts";

/** A request of the client, and the answer. */
interface Exchange {
  /** Method of HTTP, and of JSON-RPC. */
  asked: string;
  status: number;
  type: string;
  answer: string;
}

const FOLDER = join(REPOSITORY, "test/fixtures/doors");
const fileOf = (era: string) => join(FOLDER, `mcp-${era}.json`);

/** What says only that the answer is coming, which depends on the time. */
const QUIET = /event: message\ndata: \{[^\n]*"params":\{"progressToken":\d+,"progress":\d+\}\}\n\n/g;

/** What differs each time, or with each version of Parley. */
const steady = (answer: string) =>
  answer
    .replace(QUIET, "")
    .replace(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, "ID")
    .replace(/("version":")[^"]*/g, "$1VERSION");

const nameOf = ({ method }: IncomingMessage, body: string) =>
  `${method} ${body === "" ? "" : (JSON.parse(body).method ?? "")}`.trim();

/** What the client does: it lists the tool, asks, goes on, and hears of progress, of a failure, and of what waits. */
async function converse(t: Cleanup, url: string, options: McpClientOptions): Promise<unknown[]> {
  const client = await connectMcp(t, { url }, options);
  const { tools } = await client.listTools();
  const heard: unknown[] = [];
  const first = await ask(client, "Echo.", undefined, { onprogress: ({ message }) => heard.push(message) });
  const second = await ask(client, "Pay.", first.conversation);
  const third = await ask(client, "", first.conversation);
  return [tools.map(({ name }) => name), heard, ...[first, second, third].map(({ text, isError }) => [text, isError])];
}

const HEARD = [
  ["ask"],
  ["echo"],
  ["x", false],
  ["Pay 5 euros?\n\nIt was not done: a person has to approve it, which is not possible here.", false],
  ["message must be a text that is not empty.", true],
];

for (const [era, mode] of Object.entries(ERAS)) {
  test(`${era}: the door says what it has said before`, async (t) => {
    const pay = define("pay", () => "", { needsApproval: true, approvalText: () => "Pay 5 euros?" });
    const turns = [[call("a", "echo", { text: "x" })], [say("x")], [call("b", "pay")]];
    const { port } = await startServer(t, { env: MCP_ENV, agent: { tools: [echo, pay] }, turns });
    const said: Exchange[] = [];
    const relay = createServer(async (req, res) => {
      const body = await textOf(req);
      const init = { method: req.method ?? "", headers: withoutHost(req), ...(body === "" ? {} : { body }) };
      const answer = await fetch(`http://127.0.0.1:${port}${req.url}`, init);
      const text = await answer.text();
      const type = answer.headers.get("content-type") ?? "";
      said.push({ asked: nameOf(req, body), status: answer.status, type, answer: steady(text) });
      const session = answer.headers.get("mcp-session-id");
      res.writeHead(answer.status, { "content-type": type, ...(session && { "mcp-session-id": session }) }).end(text);
    });
    assert.deepEqual(await converse(t, await listen(t, relay), { mode }), HEARD);
    if (process.env.FRAMES === "write") {
      mkdirSync(FOLDER, { recursive: true });
      writeFileSync(fileOf(era), `${JSON.stringify(said, null, 2)}\n`);
    }
    assert.deepEqual(inOrder(said), inOrder(JSON.parse(readFileSync(fileOf(era), "utf8"))));
  });

  test(`${era}: the client understands what the door has said before`, async (t) => {
    const left: Exchange[] = JSON.parse(readFileSync(fileOf(era), "utf8"));
    const player = createServer(async (req, res) => {
      const asked = nameOf(req, await textOf(req));
      const index = left.findIndex((one) => one.asked === asked);
      const [exchange] = index < 0 ? [] : left.splice(index, 1);
      res.writeHead(exchange?.status ?? 500, { "content-type": exchange?.type }).end(exchange?.answer);
    });
    assert.deepEqual(await converse(t, await listen(t, player), { mode }), HEARD);
  });
}

/** A client of 2025 asks whether there is something to listen to while it goes on. */
const inOrder = (exchanges: Exchange[]) => [...exchanges].sort((a, b) => a.asked.localeCompare(b.asked));

function withoutHost({ headers }: IncomingMessage): Record<string, string> {
  const {
    host: _host,
    connection: _connection,
    "content-length": _length,
    "transfer-encoding": _coding,
    ...rest
  } = headers;
  return rest as Record<string, string>;
}
