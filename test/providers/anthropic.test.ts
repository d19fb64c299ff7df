/** Claude's own API: what goes up, byte for byte, and what comes out of its streams. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { claude, stream, WEATHER } from "../support/anthropic.ts";
import { IMAGE_AND_PDF } from "../support/files.ts";
import { ask, open, said } from "../support/upstream-conversation.ts";
import { startUpstream } from "../support/upstream-server.ts";

const ephemeral = { type: "ephemeral" };

test("anthropic: a text answer streams, brings its usage, and makes a history", async () => {
  await using upstream = await startUpstream(stream("text"));
  const conversation = open(claude(upstream));
  const { events } = await ask(conversation);
  assert.deepEqual(events, [
    { type: "text", delta: "Hel" },
    { type: "text", delta: "lo 👋" },
    { type: "end", finish: "stop", usage: { input_tokens: 25, output_tokens: 15 } },
  ]);
  assert.deepEqual(conversation.state(), {
    conversation_history: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello 👋" },
    ],
  });
});

test("anthropic: the request has its limit, visible thinking, tools without $schema, and two cache points", async () => {
  await using upstream = await startUpstream(stream("text"));
  await ask(open(claude(upstream), { tools: [WEATHER] }));
  const [call] = upstream.calls;
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
  const names = {
    ANTHROPIC_AUTH_TOKEN: "stray-token",
    ANTHROPIC_API_KEY: "stray-key",
    ANTHROPIC_BASE_URL: "http://127.0.0.1:9",
    ANTHROPIC_CUSTOM_HEADERS: "x-stray: 1\nanthropic-version: 1999-01-01\nAuthorization: Bearer x",
  };
  for (const [name, value] of Object.entries(names)) {
    const before = process.env[name];
    process.env[name] = value;
    t.after(() => {
      if (before === undefined) delete process.env[name];
      else process.env[name] = before;
    });
  }
  await using upstream = await startUpstream(stream("text"));
  assert.equal(said(await ask(open(claude(upstream)))), "Hello 👋");
  const headers = upstream.calls[0]?.headers ?? {};
  assert.equal(headers["x-api-key"], "sk-ant-test");
  assert.equal(headers["anthropic-version"], "2026-10-21");
  assert.equal(headers.authorization, undefined);
  assert.equal(headers["x-stray"], undefined);
  assert.doesNotMatch(JSON.stringify(headers), /stray/);
});

test("anthropic: no instructions, no system; no tools, no tools field", async () => {
  await using upstream = await startUpstream(stream("text"));
  await ask(open(claude(upstream), { instructions: " " }));
  const body = upstream.calls[0]?.json ?? {};
  assert.deepEqual(["system" in body, "tools" in body], [false, false]);
});

test("anthropic: thinking streams apart from the text, and its signed block is kept", async () => {
  await using upstream = await startUpstream(stream("thinking"));
  const conversation = open(claude(upstream));
  const turn = await ask(conversation);
  assert.equal(said(turn, "thinking"), "Let me think. 27 * 453 = 12231");
  assert.equal(said(turn), "12,231");
  const signature = "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds";
  const thinking = "Let me think. 27 * 453 = 12231";
  assert.deepEqual(conversation.state(), {
    conversation_history: [
      { role: "user", content: "Hi" },
      {
        role: "assistant",
        content: "12,231",
        thinking_blocks: [{ type: "thinking", thinking, signature }],
      },
    ],
  });
});

test("anthropic: thinking whose text is withheld still goes back with its signature", async () => {
  await using upstream = await startUpstream(stream("omitted-thinking"), stream("text"));
  const provider = claude(upstream);
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
  const conversation = open(claude(upstream), { tools: [WEATHER] });
  const { events } = await ask(conversation);
  const id = "toolu_01T1x1fJ34qAmk2tNTrN7Up6";
  assert.deepEqual(events.slice(-2), [
    { type: "call", call: { id, name: "get_weather", arguments: '{"city": "San Francisco"}' } },
    { type: "end", finish: "stop", usage: { input_tokens: 472, output_tokens: 89 } },
  ]);
  conversation.answer([{ id, name: "get_weather", output: "mild", failed: false }]);
  await ask(conversation);
  assert.deepEqual(upstream.calls[1]?.json.messages.slice(1), [
    {
      role: "assistant",
      content: [
        {
          type: "thinking",
          thinking: "The user wants the weather.",
          signature: "EpACCkYIBRgCKkD",
        },
        { type: "text", text: "Okay, let me check." },
        { type: "tool_use", id, name: "get_weather", input: { city: "San Francisco" } },
      ],
    },
    {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: id, content: "mild", cache_control: ephemeral }],
    },
  ]);
});

test("anthropic: parallel calls whose inputs arrive by turns come whole; their results are one message", async () => {
  await using upstream = await startUpstream(stream("parallel-tools"), stream("text"));
  const conversation = open(claude(upstream), { tools: [WEATHER] });
  const { events } = await ask(conversation);
  const calls = events.flatMap((event) => (event.type === "call" ? [event.call] : []));
  assert.deepEqual(calls, [
    { id: "toolu_01", name: "get_weather", arguments: '{"city": "Lima"}' },
    { id: "toolu_02", name: "get_time", arguments: '{"zone": "UTC"}' },
    { id: "toolu_03", name: "list_rooms", arguments: "{}" },
  ]);
  conversation.answer([
    { id: "toolu_02", name: "get_time", output: "clock broken", failed: true },
    { id: "toolu_01", name: "get_weather", output: "mild", failed: false },
    { id: "toolu_03", name: "list_rooms", output: "", failed: false },
  ]);
  await ask(conversation);
  const [, assistant, results, ...more] = upstream.calls[1]?.json.messages ?? [];
  assert.deepEqual(assistant.content, [
    {
      type: "redacted_thinking",
      data: "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIw",
    },
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
  const conversation = open(claude(upstream), { tools: [WEATHER] });
  const turn = await ask(conversation);
  assert.equal(said(turn), "Let me look.\n\nBoth, in fact.");
  assert.equal(said(turn, "thinking"), "First Lima.\n\nThen Oslo.");
  conversation.answer([
    { id: "toolu_11", name: "get_weather", output: "mild", failed: false },
    { id: "toolu_12", name: "get_weather", output: "cold", failed: false },
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
  await using upstream = await startUpstream(stream("text"));
  await ask(
    open(claude(upstream), {
      message: "What is this?",
      attachments: IMAGE_AND_PDF,
    }),
  );
  assert.deepEqual(upstream.calls[0]?.json.messages[0].content, [
    { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0=" } },
    {
      type: "document",
      source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
      title: "b.pdf",
    },
    { type: "text", text: "What is this?", cache_control: ephemeral },
  ]);
});

test("anthropic: what was read from the cache or written to it counts as input", async () => {
  await using upstream = await startUpstream(stream("cached"));
  const { events } = await ask(open(claude(upstream)));
  const usage = { input_tokens: 2003, output_tokens: 6 };
  assert.deepEqual(events.at(-1), { type: "end", finish: "stop", usage });
});
