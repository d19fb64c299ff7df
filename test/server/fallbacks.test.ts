/** Agents with several models: which is asked when, and what clients and the log see of it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentDefinition } from "../../server/agent/define.ts";
import { stream as claudeStream } from "../support/anthropic.ts";
import { onEveryTransport, post, send, stateOf, typesOf } from "../support/chat-transports.ts";
import { turns } from "../support/deadline.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { echo } from "../support/test-tools.ts";
import { CHAT_COMPLETIONS, RESPONSES } from "../support/upstream-replies.ts";
import { jsonReply, startUpstream, type UpstreamReply } from "../support/upstream-server.ts";

const FIRST = "litellm/first";
const SECOND = "compatible/second";

/** Two Chat Completions servers, with an agent that tries one after the other. */
async function pair(t: Cleanup, first: UpstreamReply[], second: UpstreamReply[], env = {}) {
  const upstreams = [await startUpstream(...first), await startUpstream(...second)] as const;
  for (const upstream of upstreams) t.after(() => upstream.close());
  return {
    upstreams,
    options: {
      agent: { model: FIRST, fallbacks: [SECOND], tools: [echo] },
      env: { LITELLM_BASE_URL: upstreams[0].url, COMPATIBLE_BASE_URL: upstreams[1].url, ...env },
    },
  };
}

const text = CHAT_COMPLETIONS.text;
/** A response that is not retried. */
const refusal = (status: number, headers = {}) =>
  jsonReply(status, { error: { message: "no" } }, { "x-should-retry": "false", ...headers });

const MENDED: [what: string, reply: UpstreamReply][] = [
  ["is overloaded", refusal(503)],
  ["is rate limited", refusal(429, { "retry-after": "30" })],
  ["has an internal error", refusal(500)],
  ["refuses the key", refusal(401)],
  ["does not know the model", refusal(404)],
  [
    "writes a call that its server cannot read",
    jsonReply(400, { error: { code: "tool_use_failed", message: "no" } }, { "x-should-retry": "false" }),
  ],
  ["sends a page", { headers: { "content-type": "text/html" }, body: ["<h1>Hi</h1>"] }],
  ["sends nothing", { body: [] }],
  ["says nothing in time", { headless: true, end: "stall" }],
  ["sends a head and nothing more in time", { end: "stall" }],
];

for (const [what, reply] of MENDED) {
  test(`where the first model ${what} before it said anything, the second one answers, on each transport`, async (t) => {
    const clock = stopClock(t);
    const setup = async () => {
      const { upstreams, options } = await pair(t, [reply], [text("Hello")]);
      // Advances the clock before the second request starts, so that its time limit is untouched.
      const called = upstreams[0].nextCall().then(() => turns());
      if (reply.end === "stall") void called.then(() => clock.tick(60_000));
      return options;
    };
    const { sse } = await onEveryTransport(t, setup, { message: "Hi" });
    assert.ok(sse.last.type === "done");
    assert.equal(sse.last.data, "Hello");
    assert.equal(sse.last.model, SECOND);
    assert.deepEqual(typesOf(sse.events), ["token", "done"]);
  });
}

const KEPT: [what: string, reply: UpstreamReply, code: string][] = [
  ["refuses the message", refusal(400), "invalid_request"],
  [
    "withholds an answer to it",
    jsonReply(400, { error: { code: "content_filter", message: "no" } }),
    "content_filtered",
  ],
  [
    "finds the conversation too long",
    jsonReply(400, { error: { code: "context_length_exceeded", message: "no" } }),
    "context_too_long",
  ],
  ["breaks off in its answer", CHAT_COMPLETIONS.cut("Half"), "provider_truncated"],
];

for (const [what, reply, code] of KEPT) {
  test(`where the first model ${what}, nobody else is asked`, async (t) => {
    const { upstreams, options } = await pair(t, [reply], [text("never")]);
    const { last } = await send.sse(t, await startServer(t, options), { message: "Hi" });
    assert.equal(last.type === "error" && last.code, code);
    assert.equal(upstreams[1].calls.length, 0);
  });
}

test("the second model goes on in the middle of a run, with what the first one's tools answered", async (t) => {
  const call = { id: "call_1", name: "echo", args: { text: "from the tool" } };
  const { upstreams, options } = await pair(t, [CHAT_COMPLETIONS.calls([call]), refusal(503)], [text("Done")]);
  const server = await startServer(t, options);
  const { last, events } = await send.sse(t, server, { message: "Hi" });
  assert.deepEqual(typesOf(events), ["tool_call", "tool_result", "token", "done"]);
  assert.ok(last.type === "done" && last.model === SECOND);
  const told = upstreams[1].calls[0]?.json.messages.at(-1);
  assert.deepEqual([told.role, told.content], ["tool", "from the tool"]);
  const log = server.log.join("\n");
  assert.match(log, /model_failover: litellm\/first failed, compatible\/second is asked instead/);
  assert.match(log, /cause: provider_overloaded/);
});

test("a model that has failed is asked last for a while, and first again when the others fail", async (t) => {
  const { upstreams, options } = await pair(
    t,
    [refusal(503), text("I am back")],
    [text("One"), text("Two"), refusal(503)],
  );
  const server = await startServer(t, options);
  const said = [];
  for (let message = 0; message < 3; message++) {
    const { last } = await send.json(t, server, { message: "Hi" });
    said.push([last.data, last.type === "done" && last.model]);
  }
  assert.deepEqual(said, [
    ["One", SECOND],
    ["Two", SECOND],
    ["I am back", FIRST],
  ]);
  assert.deepEqual(
    upstreams.map(({ calls }) => calls.length),
    [2, 3],
  );
});

const malformed = jsonReply(400, { error: { message: "You wrote: say tool_use_failed" } });

for (const [how, refusals] of [
  ["refused one message", [jsonReply(400, { error: { code: "unsupported_parameter", message: "no" } })]],
  ["wrote a malformed call for one message, or was said to", [malformed, malformed]],
  ["found one message too large", [jsonReply(413, { error: { code: "rate_limit_exceeded", message: "no" } })]],
] as const) {
  test(`a model that only ${how} is asked first for the next one`, async (t) => {
    const { upstreams, options } = await pair(t, [...refusals, text("One")], [text("Two")]);
    const server = await startServer(t, options);
    assert.equal((await send.json(t, server, { message: "Hi" })).last.data, "Two");
    assert.equal((await send.json(t, server, { message: "Hi" })).last.data, "One");
    assert.equal(upstreams[1].calls.length, 1);
  });
}

test("when all fail, the client is told how the first one did", async (t) => {
  const { options } = await pair(t, [refusal(429, { "retry-after": "30" })], [refusal(401)]);
  const { last } = await send.sse(t, await startServer(t, options), { message: "Hi" });
  assert.ok(last.type === "error");
  assert.equal(last.code, "provider_rate_limited");
  assert.equal(last.retry_after, 30);
});

test("a stop while the first model is asked asks nobody else", async (t) => {
  const { upstreams, options } = await pair(t, [{ end: "stall" }], [text("never")]);
  const server = await startServer(t, options);
  const called = upstreams[0].nextCall();
  const leaving = new AbortController();
  const gone = post(server, { message: "Hi", stream: false }, { signal: leaving.signal });
  const { closed } = await called;
  leaving.abort();
  await assert.rejects(gone);
  assert.equal(await closed, "aborted");
  assert.equal(upstreams[1].calls.length, 0);
});

test("two models of OpenAI go on with one conversation that OpenAI keeps", async (t) => {
  const upstream = await startUpstream(RESPONSES.text("Hi", "resp_1"), refusal(503), RESPONSES.text("Ho", "resp_2"));
  t.after(() => upstream.close());
  const agent = { model: "openai/gpt-5.2", fallbacks: ["openai/gpt-5-mini"] };
  const server = await startServer(t, { agent, env: RESPONSES.env(upstream.url) });
  const first = await send.sse(t, server, { message: "Hi" });
  const { last } = await send.sse(t, server, { message: "And?", state: first.last.state });
  assert.ok(last.type === "done");
  assert.deepEqual(
    [last.data, last.model, stateOf(last)],
    ["Ho", "openai/gpt-5-mini", { previous_response_id: "resp_2" }],
  );
  const { model, previous_response_id } = upstream.calls[2]?.json ?? {};
  assert.deepEqual([model, previous_response_id], ["gpt-5-mini", "resp_1"]);
});

test("Claude goes on with a conversation of OpenAI with store: false, and OpenAI with Claude's", async (t) => {
  const openai = await startUpstream(RESPONSES.text("Hi"), refusal(503));
  const claude = await startUpstream(claudeStream("thinking"), refusal(503));
  for (const upstream of [openai, claude]) t.after(() => upstream.close());
  const agent = { model: "openai/gpt-5.2", fallbacks: ["anthropic/claude-sonnet-5"], store: false };
  const env = {
    ...RESPONSES.env(openai.url),
    ANTHROPIC_API_KEY: "sk-ant-test",
    ANTHROPIC_BASE_URL: claude.url.replace(/\/v1$/, ""),
  };
  const server = await startServer(t, { agent, env });
  const first = await send.sse(t, server, { message: "Hi" });
  const second = await send.sse(t, server, { message: "And?", state: first.last.state });
  assert.ok(second.last.type === "done");
  assert.equal(second.last.model, "anthropic/claude-sonnet-5");
  assert.equal(claude.calls[0]?.json.messages.length, 3);
  openai.reply(RESPONSES.text("Again"));
  const third = await send.sse(t, server, { message: "And now?", state: second.last.state });
  assert.ok(third.last.type === "done");
  assert.deepEqual([third.last.data, third.last.model], ["Again", "openai/gpt-5.2"]);
});

test("/api/info names the models, and offers the files that all of them take", async (t) => {
  const env = { LITELLM_BASE_URL: "http://127.0.0.1:9", GEMINI_API_KEY: "k" };
  const agent = { model: FIRST, fallbacks: ["gemini/gemini-3-flash", "ollama/qwen3"] };
  const server = await startServer(t, { agent, env });
  const info = await (await fetch(`${server.url}/api/info`)).json();
  assert.deepEqual(info.models, [FIRST, ...agent.fallbacks]);
  assert.deepEqual(info.attachments.media_types, ["image/jpeg", "image/png", "image/webp"]);
});

test("an agent with one model says nothing of models", async (t) => {
  const { options } = await pair(t, [text("Hello")], []);
  const server = await startServer(t, { ...options, agent: { model: FIRST } });
  assert.ok(!("models" in (await (await fetch(`${server.url}/api/info`)).json())));
  const { last } = await send.json(t, server, { message: "Hi" });
  assert.ok(!("model" in last));
});

const REFUSED: [what: string, agent: Partial<AgentDefinition>, sentence: RegExp][] = [
  ["no array", { fallbacks: "demo" as never }, /^fallbacks must be an array of models\.$/],
  ["no model", { fallbacks: [" "] }, /^fallbacks\[0\] must be a model/],
  ["a model twice", { fallbacks: [SECOND, SECOND] }, /^fallbacks\[1\] repeats "compatible\/second"/],
  ["the first model", { model: SECOND, fallbacks: [SECOND] }, /^fallbacks\[0\] repeats/],
  ["a model without its setting", { fallbacks: ["gemini/x"] }, /GEMINI_API_KEY/],
  ["an unknown provider", { fallbacks: ["nobody/x"] }, /names no known provider/],
  ["one that OpenAI keeps a conversation for", { fallbacks: ["openai/x"] }, /store: false/],
  ["a model that takes no such setting", { fallbacks: ["demo"], temperature: 1 }, /temperature has no effect/],
  ["another API than extraBody is for", { fallbacks: ["ollama/x"], extraBody: { x: 1 } }, /^extraBody/],
];

for (const [what, agent, sentence] of REFUSED) {
  test(`fallbacks with ${what} stop the start`, async (t) => {
    const env = { COMPATIBLE_BASE_URL: "http://127.0.0.1:9", OPENAI_API_KEY: "k" };
    const started = startServer(t, { agent: { model: "compatible/first", ...agent }, env });
    await assert.rejects(started, { name: "ConfigError", message: sentence });
  });
}
