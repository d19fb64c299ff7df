/**
 * Requests of the programs in docs/chat-apps.md, stored in test/fixtures/doors/requests: written from their source code
 * and documentation, which each file names. The programs themselves are not run.
 */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { ToolContext } from "../../server/agent/tool-definition.ts";
import { REPOSITORY } from "../support/command.ts";
import { DEADLINE_MS } from "../support/deadline.ts";
import { DOOR_ENV, KEY, readChunks } from "../support/doors.ts";
import { RED_PIXEL } from "../support/files.ts";
import { readMarkdown, tableRows } from "../support/markdown-file.ts";
import { call, end, say, think } from "../support/scripted-provider.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";
import { define } from "../support/test-tools.ts";

interface Request {
  source: string;
  headers: Record<string, string>;
  body: { messages?: unknown; stream: boolean };
}

const FOLDER = join(REPOSITORY, "test/fixtures/doors/requests");
const PIXEL = RED_PIXEL.toString("base64");
const requestOf = (name: string): Request =>
  JSON.parse(readFileSync(join(FOLDER, `${name}.json`), "utf8").replace("PICTURE", PIXEL));

const BEFORE = [
  { role: "user", content: "My dog is Rex." },
  { role: "assistant", content: "Noted." },
];

interface Row {
  /** Messages that the model receives before the question. */
  before?: unknown[];
  /** Text that is appended to the agent's own instructions. */
  instructions?: string;
  /** The value of `x-parley-ignored`. */
  ignored?: string;
  /** The value of `ctx.metadata`. */
  metadata?: Record<string, string>;
}

const ROWS: Record<string, Row> = {
  "open-webui": { before: BEFORE, instructions: "Answer in one sentence.", ignored: "temperature, max_tokens" },
  "open-webui-picture": {},
  "open-webui-title": { ignored: "max_completion_tokens" },
  "open-webui-tools": {
    before: BEFORE,
    ignored: "tools, messages.tool_calls, messages.tool_call_id, messages.tool",
  },
  librechat: { before: BEFORE, ignored: "temperature, top_p, presence_penalty, frequency_penalty, user" },
  "librechat-dropped": { before: BEFORE },
  "home-assistant": {
    before: BEFORE,
    instructions: "You are a voice assistant for Home Assistant.\nAnswer in plain text.",
    ignored: "temperature, parallel_tool_calls",
  },
  "home-assistant-tools": {
    before: BEFORE,
    instructions: "You are a voice assistant for Home Assistant.",
    ignored: "temperature, parallel_tool_calls, tools, messages.tool_call_id, messages.tool",
    metadata: { session_id: "01JDYX0000000000000000000" },
  },
  "n8n-chain": {},
  "n8n-agent": { before: BEFORE, instructions: "You are a helpful assistant", ignored: "temperature, tools" },
};

async function replay(t: Cleanup, name: string, path = "/v1/chat/completions") {
  const turns = [
    [think("Hm."), say("Let me look."), call("a", "look")],
    [say("It is cloudy."), end("stop", { input_tokens: 3, output_tokens: 2 })],
  ];
  const heard: ToolContext["metadata"][] = [];
  const look = define("look", (_args, { metadata }: ToolContext) => {
    heard.push(metadata);
    return "cloudy";
  });
  const agent = { id: "agent", tools: [look], accepts: ["image/png" as const] };
  const server = await startServer(t, { env: DOOR_ENV, agent, turns });
  const { headers, body } = requestOf(name);
  const answer = await fetch(server.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(DEADLINE_MS),
  });
  return { asked: server.model.asked, heard, answer, body, text: await answer.text() };
}

for (const [name, { before = [], instructions = "", ignored = null, metadata = {} }] of Object.entries(ROWS)) {
  test(`${name}: the agent is asked what the person has written, and answers`, async (t) => {
    const { asked, heard, answer, text, body } = await replay(t, name);
    assert.equal(answer.status, 200, text);
    assert.equal(answer.headers.get("x-parley-ignored"), ignored);
    const [first] = asked as unknown as { sent: { content: unknown }[]; start: { instructions: string } }[];
    assert.ok(first);
    assert.deepEqual(first.sent.slice(0, -1), before);
    assert.match(JSON.stringify(first.sent.at(-1)), /What is the weather in Paris\?/);
    assert.equal(JSON.stringify(first.sent).includes(PIXEL), JSON.stringify(body).includes(PIXEL));
    assert.equal(first.start.instructions, instructions);
    assert.deepEqual(heard, [metadata]);
    const chunks = body.stream ? readChunks(text) : [JSON.parse(text)];
    const said = chunks.flatMap(({ choices }) => choices).map(({ delta, message = delta }) => message?.content ?? "");
    assert.equal(said.join(""), "Let me look.\n\nIt is cloudy.");
    assert.doesNotMatch(text, /tool_calls/);
  });
}

test("n8n, where it was left to the Responses API, is told that there is no such address", async (t) => {
  const { answer, text, asked } = await replay(t, "n8n-responses", "/v1/responses");
  assert.equal(answer.status, 404);
  assert.equal(JSON.parse(text).error.code, "not_found");
  assert.equal(asked.length, 0);
});

test("every request is replayed, and docs/chat-apps.md says what of each is left out", () => {
  const names = readdirSync(FOLDER).map((name) => name.replace(".json", ""));
  assert.deepEqual(names.sort(), [...Object.keys(ROWS), "n8n-responses"].sort());
  const told = tableRows(readMarkdown("docs/chat-apps.md"), "program");
  for (const [program = "", , leftOut = ""] of told) {
    const start = program.toLowerCase().replaceAll(" ", "-");
    const rows = Object.entries(ROWS).filter(([name]) => name.startsWith(start));
    assert.ok(rows.length > 0, program);
    const fields = rows.flatMap(([, { ignored = "" }]) => ignored.split(", ")).filter((name) => name !== "");
    const missing = [...new Set(fields)].filter((name) => !leftOut.includes(name));
    assert.deepEqual(missing, [], program);
  }
});
