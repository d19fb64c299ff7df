/**
 * The MCP door's recorded responses to the official client (test/fixtures/doors): they are the same today, and newer
 * clients understand them. Recorded by: FRAMES=write node --import tsx --test test/server/mcp-frames.test.ts
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

/** Progress events without a message, whose number depends on the time. */
const QUIET = /event: message\ndata: \{[^\n]*"params":\{"progressToken":\d+,"progress":\d+\}\}\n\n/g;

/** Replaces values that differ on each run or with each version of Parley. */
const steady = (answer: string) =>
  answer
    .replace(QUIET, "")
    .replace(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, "ID")
    .replace(/("version":")[^"]*/g, "$1VERSION");

/** The HTTP method and the JSON-RPC method. */
const nameOf = ({ method }: IncomingMessage, body: string) =>
  `${method} ${body === "" ? "" : (JSON.parse(body).method ?? "")}`.trim();

const FRAMES: FramesOptions = { nameOf, steady, handedOn: ["mcp-session-id"] };

/** Lists the tool, calls it with progress, continues with a call that needs approval, and causes an error. */
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

/** A client of 2025 opens its GET stream at an unpredictable moment. */
const inOrder = (exchanges: Exchange[]) => [...exchanges].sort((a, b) => a.asked.localeCompare(b.asked));
