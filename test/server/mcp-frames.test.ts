/**
 * What the MCP door has said to the official client, kept in test/fixtures/doors: it says the same today, and a client that is newer
 * understands it. Written by: FRAMES=write node --import tsx --test test/server/mcp-frames.test.ts
 */

import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import {
  type Exchange,
  type FramesOptions,
  framesOf,
  keepFrames,
  playFrames,
  recordFrames,
} from "../support/golden-frames.ts";
import { ask, connectMcp, ERAS, MCP_ENV, type McpClientOptions } from "../support/mcp-client.ts";
import { call, say } from "../support/scripted-provider.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";
import { define, echo } from "../support/test-tools.ts";

/** What says only that the answer is coming, which depends on the time. */
const QUIET = /event: message\ndata: \{[^\n]*"params":\{"progressToken":\d+,"progress":\d+\}\}\n\n/g;

/** What differs each time, or with each version of Parley. */
const steady = (answer: string) =>
  answer
    .replace(QUIET, "")
    .replace(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, "ID")
    .replace(/("version":")[^"]*/g, "$1VERSION");

/** Methods of HTTP, and of JSON-RPC. */
const nameOf = ({ method }: IncomingMessage, body: string) =>
  `${method} ${body === "" ? "" : (JSON.parse(body).method ?? "")}`.trim();

const FRAMES: FramesOptions = { nameOf, steady, handedOn: ["mcp-session-id"] };

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
    const { said, url } = await recordFrames(t, port, FRAMES);
    assert.deepEqual(await converse(t, url, { mode }), HEARD);
    keepFrames(`mcp-${era}`, said);
    assert.deepEqual(inOrder(said), inOrder(framesOf(`mcp-${era}`)));
  });

  test(`${era}: the client understands what the door has said before`, async (t) => {
    assert.deepEqual(await converse(t, await playFrames(t, `mcp-${era}`, FRAMES), { mode }), HEARD);
  });
}

/** A client of 2025 asks whether there is something to listen to while it goes on. */
const inOrder = (exchanges: Exchange[]) => [...exchanges].sort((a, b) => a.asked.localeCompare(b.asked));
