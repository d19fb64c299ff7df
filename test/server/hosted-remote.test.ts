/** Agents behind HTTP: `agUi` and `responses`. */

import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { test } from "node:test";
import type { RunFunction } from "../../server/agent/run-function.ts";
import { agUi, responses } from "../../server/hosted/remote.ts";
import { send, typesOf } from "../support/chat-transports.ts";
import { gate } from "../support/deadline.ts";
import { listen } from "../support/listen.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, type ServerOptions, startServer } from "../support/start-server.ts";

type Answer = (res: ServerResponse, body: Record<string, unknown>, req: IncomingMessage) => void;

interface Remote {
  url: string;
  asked: { body: Record<string, unknown>; req: IncomingMessage }[];
}

async function remoteAgent(t: Cleanup, answer: Answer): Promise<Remote> {
  const asked: Remote["asked"] = [];
  const server = createServer(async (req, res) => {
    let text = "";
    for await (const chunk of req) text += chunk;
    const body = JSON.parse(text);
    asked.push({ body, req });
    answer(res, body, req);
  });
  return { url: `${await listen(t, server)}/agent`, asked };
}

const sse =
  (...events: object[]): Answer =>
  (res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
  };

const serve = (t: Cleanup, run: RunFunction, more: object = {}, rest: Partial<ServerOptions> = {}) =>
  startServer(t, { agent: { model: undefined, run, ...more } as never, ...rest });

const FINISHED = { type: "RUN_FINISHED", threadId: "t", runId: "r" };
const COMPLETED = { type: "response.completed", response: { id: "r1", usage: { input_tokens: 3, output_tokens: 2 } } };

test("an agent that speaks AG-UI gets the conversation and its own state with each message", async (t) => {
  const remote = await remoteAgent(
    t,
    sse(
      { type: "RUN_STARTED", threadId: "t", runId: "r" },
      { type: "STATE_SNAPSHOT", snapshot: { cart: ["a"] } },
      {
        type: "STATE_DELTA",
        delta: [
          { op: "add", path: "/cart/-", value: "b" },
          { op: "add", path: "/n~1m", value: 1 },
        ],
      },
      { type: "TOOL_CALL_START", toolCallId: "c1", toolCallName: "add" },
      { type: "TOOL_CALL_END", toolCallId: "c1" },
      { type: "TOOL_CALL_RESULT", toolCallId: "c1", messageId: "m", content: "added" },
      { type: "TEXT_MESSAGE_CONTENT", messageId: "m1", delta: "It is in." },
      FINISHED,
    ),
  );
  const server = await serve(t, agUi(remote.url, { headers: { authorization: "Bearer key" } }), {
    accepts: ["application/pdf"],
  });
  const first = await send.sse(t, server, { message: "Add it" });
  assert.deepEqual(typesOf(first.events), ["tool_call", "tool_result", "token", "done"]);
  const attachments = [{ type: "file", name: "a.pdf", mime_type: "application/pdf", data: "JVBERi0=" }];
  await send.json(t, server, { message: "And?", state: first.last.state, attachments });
  const [one, two] = remote.asked;
  assert.equal(one?.req.headers.authorization, "Bearer key");
  assert.deepEqual([one?.body.state, one?.body.tools, one?.body.threadId], [{}, [], first.last.state?.conversation]);
  assert.deepEqual(two?.body.state, { cart: ["a", "b"], "n/m": 1 });
  assert.equal(two?.body.threadId, one?.body.threadId);
  const messages = two?.body.messages as { id: string; role: string; content: unknown }[];
  const document = { type: "document", source: { type: "data", value: "JVBERi0=", mimeType: "application/pdf" } };
  assert.deepEqual(
    messages.map(({ role, content }) => [role, content]),
    [
      ["user", "Add it"],
      ["assistant", "It is in."],
      ["user", [{ type: "text", text: "And?" }, document]],
    ],
  );
  assert.equal(new Set(messages.map(({ id }) => id)).size, 3);
});

test("an agent behind the Responses API shows its own tools, and gets the conversation each time", async (t) => {
  const item = (one: object) => ({ type: "response.output_item.done", item: one });
  const remote = await remoteAgent(
    t,
    sse(
      { type: "response.created", response: { id: "r1" } },
      { type: "response.reasoning_summary_text.delta", delta: "Hm." },
      item({ type: "function_call", call_id: "c1", name: "look", arguments: '{"a":1}' }),
      item({ type: "function_call_output", call_id: "c1", output: "found" }),
      item({
        type: "mcp_call",
        id: "m1",
        name: "search",
        server_label: "s",
        arguments: "{}",
        output: "hits",
        error: null,
      }),
      item({ type: "mcp_call", id: "m2", name: "search", arguments: "{}", output: null, error: "secret" }),
      { type: "response.output_text.delta", item_id: "t", delta: "Here it is." },
      COMPLETED,
    ),
  );
  const server = await serve(t, responses(remote.url));
  const first = await send.sse(t, server, { message: "Hi" });
  const rows = first.events.flatMap((event) =>
    event.type === "tool_result" ? [[event.data.tool, event.data.output]] : [],
  );
  assert.deepEqual(rows, [
    ["look", "found"],
    ["search", "hits"],
    ["search", "The tool failed."],
  ]);
  assert.ok(first.last.type === "done");
  assert.deepEqual([first.last.data, first.last.usage], ["Here it is.", { input_tokens: 3, output_tokens: 2 }]);
  await send.json(t, server, { message: "And?", state: first.last.state });
  assert.deepEqual(remote.asked[1]?.body, {
    input: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Here it is." },
      { role: "user", content: "And?" },
    ],
    stream: true,
  });
});

test("an answer that the token limit of a remote model cut says so", async (t) => {
  const cut = { type: "response.incomplete", response: { incomplete_details: { reason: "max_output_tokens" } } };
  const remote = await remoteAgent(t, sse({ type: "response.output_text.delta", delta: "Hel" }, cut));
  const { last } = await send.json(t, await serve(t, responses(remote.url)), { message: "Hi" });
  assert.equal(last.type === "done" && last.finish_reason, "length");
});

const FAULTS: [name: string, answer: Answer, code: string][] = [
  ["refuses", (res) => res.writeHead(500).end("secret"), "provider_error"],
  ["wants a key", (res) => res.writeHead(401).end("secret"), "provider_auth"],
  ["redirects", (res) => res.writeHead(307, { location: "http://127.0.0.1:1/" }).end(), "provider_error"],
  ["answers no stream", (res) => res.end("<html>secret</html>"), "provider_error"],
  [
    "streams no JSON",
    (res) => res.writeHead(200, { "content-type": "text/event-stream" }).end("data: secret\n\n"),
    "provider_error",
  ],
  ["ends before its end", sse({ type: "TEXT_MESSAGE_CONTENT", delta: "Hel" }), "provider_truncated"],
  [
    "breaks off",
    (res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write('data: {"type":"TEXT_MESSAGE_CONTENT","delta":"Hel"}\n\n', () => res.destroy());
    },
    "provider_truncated",
  ],
  ["reports an error", sse({ type: "RUN_ERROR", message: "secret" }), "provider_error"],
  ["says nothing", () => {}, "provider_timeout"],
];

for (const [name, answer, code] of FAULTS) {
  test(`a remote agent that ${name} is asked once, and clients get ${code}`, async (t) => {
    const remote = await remoteAgent(t, answer);
    const env = { PARLEY_FIRST_CHUNK_SECONDS: "1" };
    const server = await serve(t, agUi(remote.url), {}, { env });
    const { events, last } = await send.sse(t, server, { message: "Hi" });
    assert.deepEqual([last.type === "error" && last.code, remote.asked.length], [code, 1]);
    assert.doesNotMatch(JSON.stringify(events), /secret/);
  });
}

test("a remote agent's request is closed when the answer is stopped", async (t) => {
  const closed = gate();
  const remote = await remoteAgent(t, (res) => {
    res.on("close", closed.open);
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write('data: {"type":"TEXT_MESSAGE_CONTENT","delta":"Hel"}\n\n');
  });
  const client = await connect(t, (await serve(t, agUi(remote.url))).socketUrl);
  client.send({ message: "Hi" });
  await client.until("token");
  client.send({ type: "stop" });
  await client.until("done");
  await closed.opened;
});

test("an address that is none stops the start", () => {
  for (const url of ["", "127.0.0.1:9000", "ftp://x"]) {
    assert.throws(() => agUi(url), { name: "ConfigError", message: /^agUi needs the agent's address/ });
    assert.throws(() => responses(url), { message: /^responses needs/ });
  }
});
