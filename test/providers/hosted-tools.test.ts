/** Tools that OpenAI runs itself: requests for them, and what clients see. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { LLMock } from "@copilotkit/aimock";
import { checkAgent } from "../../server/agent/define.ts";
import { textContent } from "../../server/providers/history.ts";
import type { HostedTool, ModelEvent, ToolAnswer, ToolCall } from "../../server/providers/provider.ts";
import { serve } from "../support/chat-servers.ts";
import { send, typesOf } from "../support/chat-transports.ts";
import { gate } from "../support/deadline.ts";
import { hang, type Step, say } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { startServer } from "../support/start-server.ts";
import { ask, askOnce, open, responsesProvider, said } from "../support/upstream-conversation.ts";
import { eventStream, fixture, startUpstream } from "../support/upstream-server.ts";

const HOSTED: HostedTool[] = [
  { type: "web_search" },
  { type: "code_interpreter", container: { type: "auto" } },
  { type: "file_search", vector_store_ids: ["vs_1"] },
];

const reply = (name: string) => ({ body: [fixture(`responses/${name}`)] });
const settings = { hostedTools: HOSTED };

/** A turn's events of hosted tools, without durations. */
function shown(events: readonly ModelEvent[]): (ToolCall | ToolAnswer)[] {
  return events.flatMap((event): (ToolCall | ToolAnswer)[] => {
    if (event.type === "hosted_call") return [event.call];
    return event.type === "hosted_result" ? [event.answer] : [];
  });
}

test("hosted tools are asked for after the agent's own, with what came of them", async () => {
  await using upstream = await startUpstream(reply("text"));
  const own = { name: "own", description: "Own.", parameters: { type: "object" } };
  await ask(open(responsesProvider(upstream, { settings }), { tools: [own] }));
  const { tools, include } = upstream.calls[0]?.json ?? {};
  assert.deepEqual(tools, [{ type: "function", ...own, strict: false }, ...HOSTED]);
  assert.deepEqual(include, [
    "web_search_call.action.sources",
    "code_interpreter_call.outputs",
    "file_search_call.results",
  ]);
});

test("a web search shows its query and its sources, an opened page its address", async () => {
  const { events } = await askOnce((upstream) => responsesProvider(upstream, { settings }), reply("web-search"));
  assert.deepEqual(shown(events), [
    {
      id: "ws_1",
      name: "web_search",
      arguments: '{"type":"search","query":"Lima news today","queries":["Lima news today"]}',
    },
    {
      id: "ws_1",
      name: "web_search",
      content: textContent("https://example.com/lima\nhttps://example.org/weather"),
      failed: false,
    },
    {
      id: "ws_2",
      name: "web_search",
      arguments: '{"type":"open_page","url":"https://example.com/lima"}',
    },
    { id: "ws_2", name: "web_search", content: textContent("The tool reported no output."), failed: false },
  ]);
});

test("a tool of an MCP server that OpenAI asks shows its own name, and of a failure no words", async () => {
  const call = { type: "mcp_call", server_label: "shop", name: "find_order", arguments: '{"order":"4711"}' };
  const items = [
    { ...call, id: "mcp_1", output: "on its way", error: null },
    { ...call, id: "mcp_2", output: null, error: "secret at /srv" },
  ];
  const message = { type: "message", id: "msg_1", content: [{ type: "output_text", text: "Soon." }] };
  const events = [
    { type: "response.output_item.added", item: { ...call, id: "mcp_1", arguments: "" } },
    ...[...items, message].map((item) => ({ type: "response.output_item.done", item })),
    { type: "response.completed", response: { id: "r", status: "completed", output: [...items, message] } },
  ];
  const { events: got } = await askOnce((upstream) => responsesProvider(upstream), {
    body: events.map((event) => eventStream(event)),
  });
  const row = { name: "find_order", arguments: '{"order":"4711"}' };
  assert.deepEqual(shown(got), [
    { id: "mcp_1", ...row },
    { id: "mcp_1", name: "find_order", content: textContent("on its way"), failed: false },
    { id: "mcp_2", ...row },
    { id: "mcp_2", name: "find_order", content: textContent("The tool failed."), failed: true },
  ]);
});

test("what was found is no part of the text: sources say what it rests on", async () => {
  await using upstream = await startUpstream(reply("web-search"), reply("file-search"));
  const provider = responsesProvider(upstream, { settings });
  assert.equal(said(await ask(open(provider))), "Lima is calm. ([example.com](https://example.com/lima))");
  assert.equal(said(await ask(open(provider))), "30 days.");
});

test("a file search shows its queries and what it found", async () => {
  const { events } = await askOnce((upstream) => responsesProvider(upstream, { settings }), reply("file-search"));
  assert.deepEqual(shown(events), [
    { id: "fs_1", name: "file_search", arguments: '{"queries":["refund period","returns"]}' },
    {
      id: "fs_1",
      name: "file_search",
      content: textContent("terms.pdf (score 0.9312)\nRefunds within 30 days.\n\nfaq.pdf (score 0.41)\nAsk us."),
      failed: false,
    },
  ]);
});

test("code is shown while it still runs, and then what it printed", async () => {
  const whole = fixture("responses/code-interpreter");
  const at = whole.indexOf("event: response.code_interpreter_call.completed");
  const held = gate();
  await using upstream = await startUpstream({ body: [whole.slice(0, at), held.opened, whole.slice(at)] });
  const conversation = open(responsesProvider(upstream, { settings }));
  const { events } = await ask(conversation, undefined, ({ type }) => {
    if (type === "hosted_call") held.open();
  });
  assert.deepEqual(shown(events), [
    { id: "ci_1", name: "code_interpreter", arguments: '{"code":"print(6 * 7)"}' },
    {
      id: "ci_1",
      name: "code_interpreter",
      content: textContent("42\n\n[an image, which is not shown]"),
      failed: false,
    },
  ]);
  assert.equal(
    events.findIndex(({ type }) => type === "hosted_call"),
    0,
  );
});

test("a hosted call that failed is a failed result", async () => {
  const item = { type: "web_search_call", id: "ws_1", status: "failed" };
  const { events } = await askOnce((upstream) => responsesProvider(upstream, { settings }), {
    body: [
      eventStream(
        { type: "response.output_item.done", output_index: 0, item },
        { type: "response.completed", response: { id: "resp_1", status: "completed" } },
      ),
    ],
  });
  assert.deepEqual(shown(events), [
    { id: "ws_1", name: "web_search", arguments: "{}" },
    { id: "ws_1", name: "web_search", content: textContent("The tool failed."), failed: true },
  ]);
});

test("with store: false hosted calls go back, but not their pictures and lists of sources", async () => {
  await using upstream = await startUpstream(
    reply("web-search"),
    reply("code-interpreter"),
    reply("file-search"),
    reply("text"),
  );
  const provider = responsesProvider(upstream, { model: "gpt-5.2", settings: { ...settings, store: false } });
  let state = {};
  for (const message of ["search", "calculate", "look up", "thanks"]) {
    const conversation = open(provider, { message, state });
    assert.equal((await ask(conversation)).error, undefined);
    state = conversation.state();
  }
  const input: { type?: string; content?: unknown }[] = upstream.calls[3]?.json.input;
  assert.deepEqual(
    input.filter(({ type }) => type !== undefined),
    [
      {
        type: "web_search_call",
        id: "ws_1",
        status: "completed",
        action: { type: "search", query: "Lima news today", queries: ["Lima news today"] },
      },
      {
        type: "web_search_call",
        id: "ws_2",
        status: "completed",
        action: { type: "open_page", url: "https://example.com/lima" },
      },
      {
        type: "code_interpreter_call",
        id: "ci_1",
        status: "completed",
        code: "print(6 * 7)",
        container_id: "cntr_1",
        outputs: [{ type: "logs", logs: "42\n" }],
      },
      {
        type: "file_search_call",
        id: "fs_1",
        status: "completed",
        queries: ["refund period", "returns"],
        results: [
          { attributes: {}, file_id: "file-1", filename: "terms.pdf", score: 0.9312, text: "Refunds within 30 days." },
          { attributes: {}, file_id: "file-2", filename: "faq.pdf", score: 0.41, text: "Ask us." },
        ],
      },
    ],
  );
  // The list of sources is ours: the model gets back only its own text.
  assert.ok(input.some(({ content }) => content === "30 days."));
});

// Hosted tools, from the agent's definition to the client.

const serverWith = (t: Parameters<typeof startServer>[0], url: string, agent = {}) =>
  startServer(t, {
    agent: { model: "openai/gpt-5.2", hostedTools: ["web_search", "code_interpreter"], ...agent },
    env: { OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: url },
  });

test("clients see a hosted tool as they see every tool, in order and with its duration", async (t) => {
  await using upstream = await startUpstream(reply("code-interpreter"));
  const server = await serverWith(t, upstream.url);
  const { events, last } = await send.sse(t, server, { message: "6 * 7?" });
  const call = { id: "ci_1", tool: "code_interpreter" };
  assert.deepEqual(events.slice(0, 2), [
    { type: "tool_call", data: { ...call, arguments: '{"code":"print(6 * 7)"}', status: "running" } },
    {
      type: "tool_result",
      data: {
        ...call,
        output: "42\n\n[an image, which is not shown]",
        status: "completed",
        duration_ms: events[1]?.type === "tool_result" ? events[1].data.duration_ms : "no tool_result",
      },
    },
  ]);
  assert.ok(events[1]?.type === "tool_result" && events[1].data.duration_ms >= 0);
  assert.equal(last.type === "done" && last.data, "It is 42.");
});

test("a hosted call that a cut stream leaves open gets a failed result before the error", async (t) => {
  const whole = fixture("responses/code-interpreter");
  const body = whole.slice(0, whole.indexOf("event: response.code_interpreter_call.completed"));
  await using upstream = await startUpstream({ body: [body] });
  const server = await serverWith(t, upstream.url);
  const { events, last } = await send.sse(t, server, { message: "6 * 7?" });
  assert.deepEqual(typesOf(events), ["tool_call", "tool_result", "error"]);
  assert.equal(events[1]?.type === "tool_result" && events[1].data.status, "failed");
  assert.equal(last.type === "error" && last.code, "provider_truncated");
});

test("a run that is stopped while a hosted tool works ends the call, too", async (t) => {
  const began: Step = { type: "hosted_call", call: { id: "ws_1", name: "web_search", arguments: "{}" } };
  const server = await startServer(t, { turns: [[say("Let me search."), began, hang]] });
  const socket = await connect(t, server.socketUrl);
  socket.send({ message: "Hi" });
  const types: string[] = [];
  for (let type = ""; type !== "done"; ) {
    const event = await socket.next();
    type = event.type;
    types.push(event.type === "tool_result" ? event.data.status : type);
    if (type === "tool_call") socket.send({ type: "stop" });
  }
  assert.deepEqual(types, ["token", "tool_call", "failed", "done"]);
});

test("with aimock, a search is shown and the answer follows, stored or not", async () => {
  const mock = new LLMock({ port: 0 });
  mock.onMessage("mayor", { content: "Somebody.", webSearches: ["mayor of Lima"] });
  await mock.start();
  try {
    for (const store of [true, false]) {
      const env = { OPENAI_API_KEY: "mock", OPENAI_BASE_URL: `${mock.url}/v1` };
      const provider = await serve("openai/gpt-5.2", env, { hostedTools: [{ type: "web_search" }], store });
      const first = open(provider, { message: "Who is mayor?" });
      const turn = await ask(first);
      assert.equal(said(turn), "Somebody.");
      const call = turn.events.find(({ type }) => type === "hosted_call");
      assert.ok(call?.type === "hosted_call" && call.call.name === "web_search");
      const again = await ask(open(provider, { message: "mayor again", state: first.state() }));
      assert.equal(said(again), "Somebody.");
    }
  } finally {
    await mock.stop();
  }
});

test("an agent may name hosted tools by a word or with their fields", () => {
  const hostedTools = [
    "web_search",
    { type: "code_interpreter", container: "cntr_1" },
    { type: "file_search", vector_store_ids: ["vs_1"], max_num_results: 5 },
  ];
  assert.deepEqual(checkAgent({ name: "A", model: "gpt-5.2", hostedTools }).settings.hostedTools, [
    { type: "web_search" },
    { type: "code_interpreter", container: "cntr_1" },
    { type: "file_search", vector_store_ids: ["vs_1"], max_num_results: 5 },
  ]);
  const short = checkAgent({ name: "A", model: "gpt-5.2", hostedTools: ["code_interpreter"] });
  assert.deepEqual(short.settings.hostedTools, [{ type: "code_interpreter", container: { type: "auto" } }]);
});

for (const [hostedTools, sentence] of [
  ["web_search", /^hostedTools must be an array\.$/],
  [["websearch"], /^hostedTools\[0\] must be one of web_search, file_search, code_interpreter/],
  [[{ vector_store_ids: ["vs_1"] }], /^hostedTools\[0\] must be one of/],
  [["web_search", "file_search"], /^hostedTools\[1\] must name what to search: .*vector_store_ids/],
  [[{ type: "file_search", vector_store_ids: [] }], /vector_store_ids/],
  [["web_search", { type: "web_search" }], /^hostedTools names web_search twice\.$/],
] as const) {
  test(`hostedTools ${JSON.stringify(hostedTools)} is refused with what would be right`, () => {
    assert.throws(() => checkAgent({ name: "A", model: "gpt-5.2", hostedTools }), {
      name: "ConfigError",
      message: sentence,
    });
  });
}
