/** Hosted tools from the agent's definition to what clients see. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { LLMock } from "@copilotkit/aimock";
import { checkAgent } from "../../server/agent/define.ts";
import { readSettings } from "../../server/config/settings.ts";
import { resolveProvider } from "../../server/providers/index.ts";
import { send } from "../support/chat-transports.ts";
import { hang, type Step, say } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { startServer } from "../support/start-server.ts";
import { ask, open, said } from "../support/upstream-conversation.ts";
import { fixture, startUpstream } from "../support/upstream-server.ts";

const reply = (name: string) => ({ body: [fixture(`responses/${name}`)] });

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
    {
      type: "tool_call",
      data: { ...call, arguments: '{"code":"print(6 * 7)"}', status: "running" },
    },
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
  assert.deepEqual(
    events.map(({ type }) => type),
    ["tool_call", "tool_result", "error"],
  );
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
      const provider = await resolveProvider("openai/gpt-5.2", {
        settings: readSettings({ OPENAI_API_KEY: "mock", OPENAI_BASE_URL: `${mock.url}/v1` }),
        modelSettings: { hostedTools: [{ type: "web_search" }], store },
        loadPackage: (name) => import(name),
      });
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
