/** Claude's own API: requests byte for byte, and events from its streams. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryMessage } from "../../server/protocol/chat.ts";
import { textContent } from "../../server/providers/history.ts";
import type { ModelSettings } from "../../server/providers/provider.ts";
import { claude, sentWith, stream, WEATHER } from "../support/anthropic.ts";
import { setEnvironment } from "../support/at-end.ts";
import { serve } from "../support/chat-servers.ts";
import { IMAGE_AND_PDF } from "../support/files.ts";
import { ask, askOnce, failureOf, open, said } from "../support/upstream-conversation.ts";
import { eventStream, jsonReply, startUpstream } from "../support/upstream-server.ts";

const ephemeral = { type: "ephemeral" };

test("anthropic: the request has its limit, visible thinking, tools, and two cache points", async () => {
  const { calls } = await askOnce(claude, stream("text"), { tools: [WEATHER] });
  const [call] = calls;
  assert.equal(call?.path, "/v1/messages");
  assert.deepEqual(call?.json, {
    model: "claude-sonnet-5",
    max_tokens: 64_000,
    thinking: { type: "adaptive", display: "summarized" },
    system: [{ type: "text", text: "Be brief.", cache_control: ephemeral }],
    messages: [{ role: "user", content: [{ type: "text", text: "Hi", cache_control: ephemeral }] }],
    tools: [
      {
        name: "get_weather",
        description: "Weather of a city.",
        input_schema: { type: "object", properties: { city: { type: "string" } } },
      },
    ],
    stream: true,
  });
});

test("anthropic: the key goes as x-api-key alone, whatever the process's environment holds", async (t) => {
  setEnvironment(t, {
    ANTHROPIC_AUTH_TOKEN: "stray-token",
    ANTHROPIC_API_KEY: "stray-key",
    ANTHROPIC_BASE_URL: "http://127.0.0.1:9",
    ANTHROPIC_CUSTOM_HEADERS: "x-stray: 1\nanthropic-version: 1999-01-01\nAuthorization: Bearer x",
  });
  await using upstream = await startUpstream(stream("text"));
  assert.equal(said(await ask(open(await claude(upstream)))), "Hello 👋");
  const headers = upstream.calls[0]?.headers ?? {};
  assert.equal(headers["x-api-key"], "sk-ant-test");
  assert.equal(headers["anthropic-version"], "2026-10-21");
  assert.equal(headers.authorization, undefined);
  assert.deepEqual([headers["content-type"], headers["user-agent"]], ["application/json", "parley-agent"]);
  assert.equal(headers["x-stray"], undefined);
  assert.doesNotMatch(JSON.stringify(headers), /stray/);
});

test("anthropic: no instructions, no system; no tools, no tools field", async () => {
  const { calls } = await askOnce(claude, stream("text"), { instructions: " " });
  const body = calls[0]?.json ?? {};
  assert.deepEqual(["system" in body, "tools" in body], [false, false]);
});

test("anthropic: thinking streams apart from the text, and its signed block is kept", async () => {
  const turn = await askOnce(claude, stream("thinking"));
  assert.equal(said(turn, "thinking"), "Let me think. 27 * 453 = 12231");
  assert.equal(said(turn), "12,231");
  const signature = "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds";
  const thinking = "Let me think. 27 * 453 = 12231";
  assert.deepEqual(turn.state, {
    conversation_history: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "12,231", thinking_blocks: [{ type: "thinking", thinking, signature }] },
    ],
  });
});

test("anthropic: thinking whose text is withheld still goes back with its signature", async () => {
  await using upstream = await startUpstream(stream("omitted-thinking"), stream("text"));
  const provider = await claude(upstream);
  const conversation = open(provider);
  assert.equal(said(await ask(conversation), "thinking"), "");
  await ask(open(provider, { state: conversation.state(), message: "And now?" }));
  assert.deepEqual(upstream.calls[1]?.json.messages[1].content[0], {
    type: "thinking",
    thinking: "",
    signature: "EosnCkYICxIMMb3LzNrMu",
  });
});

test("anthropic: one tool call; its thinking, text and result go back in the tool loop, verbatim", async () => {
  await using upstream = await startUpstream(stream("thinking-and-tool"), stream("text"));
  const conversation = open(await claude(upstream), { tools: [WEATHER] });
  const { events } = await ask(conversation);
  const id = "toolu_01T1x1fJ34qAmk2tNTrN7Up6";
  assert.deepEqual(events.slice(-2), [
    { type: "call", call: { id, name: "get_weather", arguments: '{"city": "San Francisco"}' } },
    { type: "end", finish: "stop", usage: { input_tokens: 472, output_tokens: 89 } },
  ]);
  conversation.answer([{ id, name: "get_weather", content: textContent("mild"), failed: false }]);
  await ask(conversation);
  assert.deepEqual(upstream.calls[1]?.json.messages.slice(1), [
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "The user wants the weather.", signature: "EpACCkYIBRgCKkD" },
        { type: "text", text: "Okay, let me check." },
        { type: "tool_use", id, name: "get_weather", input: { city: "San Francisco" } },
      ],
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "mild", cache_control: ephemeral }] },
  ]);
});

test("anthropic: parallel calls whose inputs arrive by turns come whole; their results are one message", async () => {
  await using upstream = await startUpstream(stream("parallel-tools"), stream("text"));
  const conversation = open(await claude(upstream), { tools: [WEATHER] });
  const { events } = await ask(conversation);
  const calls = events.flatMap((event) => (event.type === "call" ? [event.call] : []));
  assert.deepEqual(calls, [
    { id: "toolu_01", name: "get_weather", arguments: '{"city": "Lima"}' },
    { id: "toolu_02", name: "get_time", arguments: '{"zone": "UTC"}' },
    { id: "toolu_03", name: "list_rooms", arguments: "{}" },
  ]);
  conversation.answer([
    { id: "toolu_02", name: "get_time", content: textContent("clock broken"), failed: true },
    { id: "toolu_01", name: "get_weather", content: textContent("mild"), failed: false },
    { id: "toolu_03", name: "list_rooms", content: textContent(""), failed: false },
  ]);
  await ask(conversation);
  const [, assistant, results, ...more] = upstream.calls[1]?.json.messages ?? [];
  assert.deepEqual(assistant.content, [
    { type: "redacted_thinking", data: "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIw" },
    { type: "tool_use", id: "toolu_01", name: "get_weather", input: { city: "Lima" } },
    { type: "tool_use", id: "toolu_02", name: "get_time", input: { zone: "UTC" } },
    { type: "tool_use", id: "toolu_03", name: "list_rooms", input: {} },
  ]);
  assert.deepEqual(results.content, [
    { type: "tool_result", tool_use_id: "toolu_02", content: "clock broken", is_error: true },
    { type: "tool_result", tool_use_id: "toolu_01", content: "mild" },
    { type: "tool_result", tool_use_id: "toolu_03", cache_control: ephemeral },
  ]);
  assert.deepEqual(more, []);
});

test("anthropic: blocks that interleave go back in the order in which they came", async () => {
  await using upstream = await startUpstream(stream("interleaved-thinking"), stream("text"));
  const conversation = open(await claude(upstream), { tools: [WEATHER] });
  const turn = await ask(conversation);
  assert.equal(said(turn), "Let me look.\n\nBoth, in fact.");
  assert.equal(said(turn, "thinking"), "First Lima.\n\nThen Oslo.");
  conversation.answer([
    { id: "toolu_11", name: "get_weather", content: textContent("mild"), failed: false },
    { id: "toolu_12", name: "get_weather", content: textContent("cold"), failed: false },
  ]);
  await ask(conversation);
  assert.deepEqual(upstream.calls[1]?.json.messages[1].content, [
    { type: "thinking", thinking: "First Lima.", signature: "c2lnMQ==" },
    { type: "text", text: "Let me look." },
    { type: "thinking", thinking: "Then Oslo.", signature: "c2lnMg==" },
    { type: "text", text: "Both, in fact." },
    { type: "tool_use", id: "toolu_11", name: "get_weather", input: { city: "Lima" } },
    { type: "tool_use", id: "toolu_12", name: "get_weather", input: { city: "Oslo" } },
  ]);
});

test("anthropic: an image and a PDF go as base64 blocks before the question, the PDF with its name", async () => {
  const { calls } = await askOnce(claude, stream("text"), { message: "What is this?", attachments: IMAGE_AND_PDF });
  assert.deepEqual(calls[0]?.json.messages[0].content, [
    { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0=" } },
    { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" }, title: "b.pdf" },
    { type: "text", text: "What is this?", cache_control: ephemeral },
  ]);
});

test("anthropic: what was read from the cache or written to it counts as input", async () => {
  const { events } = await askOnce(claude, stream("cached"));
  const usage = { input_tokens: 2003, output_tokens: 6, cached_input_tokens: 1800, cache_write_tokens: 200 };
  assert.deepEqual(events.at(-1), { type: "end", finish: "stop", usage });
});

// How Claude's answers end, and how gateways change them.

for (const [reason, finish] of [
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["pause_turn", "length"],
] as const) {
  test(`anthropic: stop_reason ${reason} is ${finish}`, async () => {
    const body = eventStream(
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "So " } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "far" } },
      { type: "message_delta", delta: { stop_reason: reason }, usage: { output_tokens: 2 } },
      { type: "message_stop" },
    );
    const turn = await askOnce(claude, { body: [body] });
    assert.equal(said(turn), "So far");
    assert.deepEqual(turn.events.at(-1), { type: "end", finish });
  });
}

test("anthropic: a refused answer ends as content_filter, and its calls are not made", async () => {
  const { events } = await askOnce(claude, stream("refusal"), { tools: [WEATHER] });
  assert.deepEqual(events, [
    { type: "text", delta: "Take " },
    { type: "end", finish: "content_filter", usage: { input_tokens: 25, output_tokens: 4 } },
  ]);
});

test("anthropic: a call that the token limit has cut is not made, those before it are", async () => {
  const { events } = await askOnce(claude, stream("max-tokens-in-tool"), { tools: [WEATHER] });
  const calls = events.flatMap((event) => (event.type === "call" ? [event.call.id] : []));
  assert.deepEqual(calls, ["toolu_31"]);
});

test("anthropic: a gateway's whole input, missing id and unknown events do not disturb it", async () => {
  const body = eventStream(
    { type: "message_start" },
    { type: "shiny_new_event", index: 0 },
    {
      type: "content_block_start",
      index: 0,
      content_block: { type: "tool_use", name: "get_weather", input: { city: "Lima" } },
    },
    { type: "content_block_start", index: 1, content_block: { type: "server_tool_use", id: "s" } },
    { type: "content_block_delta", index: 1, delta: { type: "input_json_delta" } },
    { type: "message_delta", delta: { stop_reason: "tool_use" } },
  );
  const { events } = await askOnce(claude, { body: [body] }, { tools: [WEATHER] });
  const [call, end] = events;
  assert.ok(call?.type === "call" && call.call.id !== "");
  assert.equal(call.call.arguments, '{"city":"Lima"}');
  assert.deepEqual(end, { type: "end", finish: "stop" });
});

// Claude's thinking is sent back unchanged, and the conversation continues where that is impossible.

const SIGNED = { type: "thinking", thinking: "Hm.", signature: "c2ln" };

test("anthropic: only thinking blocks that the API can take go back, without what LiteLLM adds to them", async () => {
  const { messages } = await sentWith([
    { role: "user", content: "Hi" },
    {
      role: "assistant",
      content: "Hello",
      thinking_blocks: [
        { ...SIGNED, cache_control: null },
        { type: "thinking", thinking: "Unsigned.", signature: null },
        { type: "redacted_thinking", data: "ZGF0YQ==" },
        { type: "redacted_thinking" },
        "nonsense",
      ],
    },
  ]);
  assert.deepEqual(messages[1].content, [
    SIGNED,
    { type: "redacted_thinking", data: "ZGF0YQ==" },
    { type: "text", text: "Hello" },
  ]);
});

const [THOUGHT, CALL] = [{ type: "reasoning" }, { type: "call" }];
const span = (start: number, end: number) => ({ type: "text", span: [start, end] });
const partsOf = (parts: unknown) => ({ answer_parts: { provider: "claude", parts } });

for (const fields of [
  { anthropic_layout: "thinking" },
  { anthropic_layout: [[0, 3], "thinking"] },
  { anthropic_layout: [[0, 5], "thinking", "thinking"] },
  { anthropic_layout: [[3, 5], "thinking", [0, 3]] },
  { anthropic_layout: [[0, 5], "thinking", "tool_use"] },
  { anthropic_layout: [{}, "thinking"] },
  partsOf("reasoning"),
  partsOf([span(0, 3), THOUGHT]),
  partsOf([span(0, 5), THOUGHT, THOUGHT]),
  partsOf([span(3, 5), THOUGHT, span(0, 3)]),
  partsOf([span(0, 5), THOUGHT, CALL]),
  partsOf([{ type: "text", span: {} }, THOUGHT]),
  partsOf([THOUGHT]),
]) {
  test(`anthropic: altered parts lose nothing of a turn: ${JSON.stringify(fields)}`, async () => {
    const { messages } = await sentWith([
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello", thinking_blocks: [SIGNED], ...fields },
    ]);
    assert.deepEqual(messages[1].content, [SIGNED, { type: "text", text: "Hello" }]);
  });
}

test("anthropic: forged parts make no gigabytes of a text", async () => {
  const content = "x".repeat(1_000_000);
  for (const fields of [
    { anthropic_layout: ["thinking", ...Array(1000).fill([0, content.length])] },
    partsOf([THOUGHT, ...Array(1000).fill(span(0, content.length))]),
  ]) {
    const { messages } = await sentWith([
      { role: "user", content: "Hi" },
      { role: "assistant", content, thinking_blocks: [SIGNED], ...fields },
    ]);
    assert.deepEqual(messages[1].content, [SIGNED, { type: "text", text: content }]);
  }
});

test("anthropic: a request that cannot think takes no thinking along", async () => {
  const history: HistoryMessage[] = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Hello", thinking_blocks: [SIGNED] },
  ];
  for (const [model, settings, count] of [
    ["claude-sonnet-4-5", {}, 1],
    ["claude-sonnet-4-5", { reasoningEffort: "low" }, 2],
    ["claude-sonnet-5", { reasoningEffort: "none" }, 1],
    ["claude-sonnet-5", { extraBody: { thinking: { type: "disabled" } } }, 1],
    ["claude-sonnet-5-5", { reasoningEffort: "none" }, 2],
    ["a-gateways-own-name", {}, 2],
  ] as const) {
    const { messages } = await sentWith(history, { model, settings });
    assert.equal(messages[1].content.length, count, `${model} ${JSON.stringify(settings)}`);
  }
});

const BOUND = {
  type: "error",
  error: {
    type: "invalid_request_error",
    message:
      "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.",
  },
};

test("anthropic: thinking that no longer fits the conversation is left out, for the rest of the run too", async () => {
  await using upstream = await startUpstream(jsonReply(400, BOUND), stream("thinking-and-tool"), stream("text"));
  const conversation = open(await claude(upstream), {
    tools: [WEATHER],
    state: {
      conversation_history: [
        { role: "user", content: "Hi" },
        { role: "assistant", content: "Hello", thinking_blocks: [SIGNED] },
      ],
    },
  });
  const { events } = await ask(conversation);
  const made = events.flatMap((event) => (event.type === "call" ? [event.call] : []));
  conversation.answer(made.map(({ id, name }) => ({ id, name, content: textContent("ok"), failed: false })));
  assert.equal(said(await ask(conversation)), "Hello 👋");
  const kinds = upstream.calls.map(({ json }) =>
    json.messages
      .filter(({ role }: { role: string }) => role === "assistant")
      .map(({ content }: { content: { type: string }[] }) => content[0]?.type),
  );
  assert.deepEqual(kinds, [["thinking"], ["text"], ["text", "thinking"]]);
});

test("anthropic: a refusal of thinking where none was sent is told, not tried again", async () => {
  await using upstream = await startUpstream(jsonReply(400, BOUND));
  assert.equal(failureOf(await ask(open(await claude(upstream)))).code, "invalid_request");
  assert.equal(upstream.calls.length, 1);
});

test("anthropic: a turn of another model without its thinking is answered without thinking", async () => {
  const message = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.";
  const error = { type: "invalid_request_error", message };
  await using upstream = await startUpstream(jsonReply(400, { error }), stream("text"));
  const settings = { reasoningEffort: "high" } as const;
  const { error: failure } = await ask(
    open(await claude(upstream, { model: "claude-haiku-4-5", settings }), { tools: [WEATHER] }),
  );
  assert.equal(failure, undefined);
  assert.deepEqual(
    upstream.calls.map(({ json }) => json.thinking?.type),
    ["enabled", undefined],
  );
});

// Requests of each Claude generation for an agent's settings, after Anthropic's pages on thinking and effort.

const VISIBLE = { type: "adaptive", display: "summarized" };

async function sent(model: string, settings: ModelSettings) {
  const { error, calls } = await askOnce((upstream) => claude(upstream, { model, settings }), stream("text"));
  assert.equal(error, undefined);
  const { json, headers } = calls[0] ?? assert.fail("nothing was sent");
  return { ...json, version: headers["anthropic-version"] };
}

/** `[model, effort, thinking, output_config.effort]` */
const THINKING = [
  ["claude-opus-5-5", undefined, VISIBLE, undefined],
  ["claude-opus-5-5", "xhigh", VISIBLE, "xhigh"],
  ["claude-fable-5-1", "minimal", VISIBLE, "low"],
  ["claude-mythos-preview", undefined, VISIBLE, undefined],
  ["claude-sonnet-5-5", "none", { type: "between_tools" }, undefined],
  ["claude-sonnet-5", "none", { type: "disabled" }, undefined],
  ["claude-haiku-5-5", "none", { type: "disabled" }, undefined],
  ["claude-opus-4-7", undefined, undefined, undefined],
  ["claude-opus-4-7", "high", VISIBLE, "high"],
  ["claude-sonnet-4-6", undefined, undefined, undefined],
  ["claude-sonnet-4-6", "medium", VISIBLE, "medium"],
  ["claude-sonnet-4-6", "none", undefined, undefined],
  ["claude-opus-4-5-20251101", "high", { type: "enabled", budget_tokens: 8192 }, undefined],
  ["claude-sonnet-4-20250514", "minimal", { type: "enabled", budget_tokens: 1024 }, undefined],
  // Versions are two numbers: 4.10 is newer than 4.9.
  ["claude-opus-4-10", "xhigh", VISIBLE, "xhigh"],
  ["claude-opus-4-10-20270101", undefined, undefined, undefined],
  ["claude-3-7-sonnet-20250219", "xhigh", { type: "enabled", budget_tokens: 12_288 }, undefined],
  ["claude-haiku-4-5", undefined, undefined, undefined],
  ["claude-haiku-4-5", "none", undefined, undefined],
  ["claude-3-5-haiku-latest", "none", undefined, undefined],
  ["a-gateways-own-name", undefined, undefined, undefined],
  ["a-gateways-own-name", "high", VISIBLE, "high"],
] as const;

for (const [model, effort, thinking, sentEffort] of THINKING) {
  test(`anthropic/${model} with reasoningEffort ${effort} thinks as its generation can`, async () => {
    const body = await sent(model, effort === undefined ? {} : { reasoningEffort: effort });
    assert.deepEqual(body.thinking, thinking);
    assert.equal(body.output_config?.effort, sentEffort);
    assert.equal("temperature" in body, false);
  });
}

for (const [model, limit] of [
  ["claude-opus-5-5", 64_000],
  ["claude-sonnet-4-6", 64_000],
  ["claude-haiku-4-5-20251001", 32_000],
  ["claude-opus-4-10", 64_000],
  ["claude-opus-4-1", 16_384],
  ["claude-3-7-sonnet-20250219", 16_384],
  ["claude-3-5-sonnet-20241022", 8192],
  ["claude-3-haiku-20240307", 4096],
  ["a-gateways-own-name", 16_384],
] as const) {
  test(`anthropic/${model} writes at most ${limit} tokens unless told otherwise`, async () => {
    assert.equal((await sent(model, {})).max_tokens, limit);
    assert.equal((await sent(model, { maxOutputTokens: 300 })).max_tokens, 300);
  });
}

test("anthropic: a small limit leaves thinking its smallest budget and the answer the rest", async () => {
  const settings = { reasoningEffort: "high", maxOutputTokens: 1200 } as const;
  const { thinking, max_tokens } = await sent("claude-sonnet-4-5", settings);
  assert.deepEqual([thinking.budget_tokens, max_tokens], [1024, 1200]);
});

test("anthropic: temperature goes by the API version that still takes it, all else by the new one", async () => {
  const body = await sent("claude-sonnet-4-6", { temperature: 0.5 });
  assert.deepEqual([body.temperature, body.version], [0.5, "2023-06-01"]);
  assert.equal((await sent("claude-sonnet-4-6", {})).version, "2026-10-21");
  const extraBody = { top_k: 5 };
  assert.equal((await sent("claude-sonnet-4-6", { extraBody })).version, "2023-06-01");
});

test("anthropic: extraBody is merged last", async () => {
  const extraBody = { thinking: VISIBLE, metadata: { user_id: "u" }, max_tokens: 7 };
  const { thinking, metadata, max_tokens } = await sent("claude-sonnet-4-6", { extraBody });
  assert.deepEqual({ thinking, metadata, max_tokens }, extraBody);
});

for (const [model, settings, sentence] of [
  ["claude-opus-5-5", { reasoningEffort: "none" }, /always thinks.*"low"/],
  ["claude-fable-5", { reasoningEffort: "none" }, /always thinks/],
  ["claude-opus-4-6", { reasoningEffort: "xhigh" }, /takes no reasoningEffort "xhigh"/],
  ["claude-3-5-haiku-latest", { reasoningEffort: "low" }, /cannot think: remove reasoningEffort/],
  ["claude-sonnet-4-5", { reasoningEffort: "low", maxOutputTokens: 1024 }, /maxOutputTokens must/],
  ["claude-opus-4-7", { temperature: 1 }, /takes no temperature/],
  ["claude-opus-4-10", { temperature: 1 }, /takes no temperature/],
  ["claude-sonnet-4-5", { temperature: 1.5 }, /temperature must be a number from 0 to 1/],
  ["claude-sonnet-4-5", { temperature: 1, reasoningEffort: "low" }, /while it thinks/],
] as const) {
  test(`anthropic/${model} is not started with ${JSON.stringify(settings)}`, async () => {
    const env = { ANTHROPIC_API_KEY: "sk" };
    await assert.rejects(serve(`anthropic/${model}`, env, settings), { name: "ConfigError", message: sentence });
  });
}

test("anthropic: the row takes key and base URL from its variables", async () => {
  await using upstream = await startUpstream(stream("text"));
  const env = { ANTHROPIC_API_KEY: "sk-row", ANTHROPIC_BASE_URL: upstream.url.replace(/v1$/, "") };
  const provider = await serve("anthropic/claude-sonnet-4-5", env);
  assert.equal(provider.id, "anthropic");
  assert.equal(provider.stateKind, "conversation_history");
  assert.ok(provider.mediaTypes.includes("application/pdf"));
  await ask(open(provider));
  assert.equal(upstream.calls[0]?.headers["x-api-key"], "sk-row");
  assert.equal(upstream.calls[0]?.path, "/v1/messages");
});

// A history must always be valid for Claude, whatever happened in it and whichever model answered.

function call(id: string, name: string, written: string, more: object = {}) {
  return { ...more, id, type: "function" as const, function: { name, arguments: written } };
}

const next = { type: "text", text: "Next" };

test("anthropic: messages of one role are one turn, and blank texts and empty turns stay behind", async () => {
  const { messages } = await sentWith([
    { role: "user", content: "One" },
    { role: "user", content: " \n" },
    { role: "assistant", content: "" },
    { role: "user", content: [{ type: "text", text: "Two" }] },
    { role: "assistant", content: "A" },
    { role: "assistant", content: "B" },
  ]);
  assert.deepEqual(messages, [
    {
      role: "user",
      content: [
        { type: "text", text: "One" },
        { type: "text", text: "(no text)" },
        { type: "text", text: "Two" },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "text", text: "A" },
        { type: "text", text: "B" },
      ],
    },
    { role: "user", content: [next] },
  ]);
});

test("anthropic: after a cancelled call the result is an error, and the next message follows it", async () => {
  await using upstream = await startUpstream(stream("thinking-and-tool"), stream("text"));
  const provider = await claude(upstream);
  const conversation = open(provider, { tools: [WEATHER] });
  await ask(conversation);
  conversation.interrupt("");
  const state = conversation.state();
  await ask(open(provider, { tools: [WEATHER], state, message: "Next" }));
  const [, , results] = upstream.calls[1]?.json.messages ?? [];
  assert.equal(results.content[0].is_error, true);
  assert.match(results.content[0].content, /^Cancelled/);
  assert.equal(results.content[1].text, "Next");
});

test("anthropic: a result is an error by its flag, never by its text", async () => {
  const call = (id: string) => ({
    id,
    type: "function" as const,
    function: { name: "get_weather", arguments: "{}" },
  });
  const result = (id: string, content: string) => ({ role: "tool" as const, tool_call_id: id, content });
  const { messages } = await sentWith([
    { role: "user", content: "Hi" },
    { role: "assistant", content: null, tool_calls: [call("a"), call("b"), call("c")] },
    result("a", "Error: 0 lines in the log"),
    { ...result("b", "closed"), is_error: true },
    { ...result("c", " "), is_error: true },
  ]);
  assert.deepEqual(messages[2].content.slice(0, 3), [
    { type: "tool_result", tool_use_id: "a", content: "Error: 0 lines in the log" },
    { type: "tool_result", tool_use_id: "b", content: "closed", is_error: true },
    { type: "tool_result", tool_use_id: "c" },
  ]);
});

test("anthropic: another provider's fields, ids, names and broken arguments do not break the request", async () => {
  const { messages } = await sentWith([
    { role: "user", content: "Hi" },
    {
      role: "assistant",
      content: null,
      reasoning_content: "Hm.",
      extra_content: { google: { thought_signature: "x" } },
      tool_calls: [
        call("functions.get:0", "get.weather", "{broken", { thought_signature: "y" }),
        call("b", "get_weather", "[1]"),
      ],
    },
    { role: "tool", tool_call_id: "b", content: "two" },
    { role: "tool", tool_call_id: "functions.get:0", content: "one" },
    { role: "assistant", content: "Done.", tool_calls: [call("b", "get_weather", "{}")] },
    { role: "tool", tool_call_id: "b", content: "again" },
  ]);
  assert.deepEqual(messages.slice(1), [
    {
      role: "assistant",
      content: [
        { type: "tool_use", id: "call00000", name: "get_weather", input: { unparsed_arguments: "{broken" } },
        { type: "tool_use", id: "b", name: "get_weather", input: { unparsed_arguments: "[1]" } },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "b", content: "two" },
        { type: "tool_result", tool_use_id: "call00000", content: "one" },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "text", text: "Done." },
        { type: "tool_use", id: "call00002", name: "get_weather", input: {} },
      ],
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "call00002", content: "again" }, next] },
  ]);
});

test("anthropic: calls of tools that the agent no longer has are declared, and none may be called", async () => {
  const body = await sentWith(
    [
      { role: "user", content: "Hi" },
      { role: "assistant", content: null, tool_calls: [call("a", "old.tool", "{}")] },
      { role: "tool", tool_call_id: "a", content: "ok" },
    ],
    { tools: [] },
  );
  assert.deepEqual(body.tools, [
    { name: "old_tool", description: "No longer available: do not call it.", input_schema: { type: "object" } },
  ]);
  assert.deepEqual(body.tool_choice, { type: "none" });
});

test("anthropic: a history that begins with the assistant is sent", async () => {
  const { messages } = await sentWith([{ role: "assistant", content: "Welcome" }]);
  assert.deepEqual(messages[0], { role: "user", content: [{ type: "text", text: "(no text)" }] });
});
