import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConversationState, HistoryMessage } from "../../server/protocol/chat.ts";
import { bedrock, CLAUDE, fixtureFrames, frames, stream } from "../support/bedrock.ts";
import { ask, open, said } from "../support/upstream-conversation.ts";
import { startUpstream } from "../support/upstream-server.ts";

const WEATHER = {
  name: "get_weather",
  description: "Weather of a city.",
  parameters: { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object" },
};

function history(state: ConversationState): HistoryMessage[] {
  assert.ok("conversation_history" in state);
  return state.conversation_history as HistoryMessage[];
}

test("a text answer streams, brings its usage with what the cache held, and makes a history", async () => {
  await using upstream = await startUpstream(stream("text"));
  const conversation = open(await bedrock(upstream));
  const { events, error } = await ask(conversation);
  assert.equal(error, undefined);
  assert.deepEqual(events, [
    { type: "text", delta: "Hel" },
    { type: "text", delta: "lo 👋" },
    { type: "end", finish: "stop", usage: { input_tokens: 19, output_tokens: 10 } },
  ]);
  assert.deepEqual(conversation.state(), {
    conversation_history: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello 👋" },
    ],
  });
});

test("an answer whose frames are cut anywhere reads the same", async () => {
  const bytes = Buffer.concat((stream("text").body ?? []) as Uint8Array[]);
  const pieces = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, index) =>
    bytes.subarray(index * 7, index * 7 + 7),
  );
  await using upstream = await startUpstream({ ...stream("text"), body: pieces });
  assert.equal(said(await ask(open(await bedrock(upstream)))), "Hello 👋");
});

test("the request: path, region's key, system apart, tools without $schema", async () => {
  await using upstream = await startUpstream(stream("text"));
  await ask(open(await bedrock(upstream), { tools: [WEATHER] }));
  const call = upstream.calls[0];
  assert.equal(call?.path, `/model/${encodeURIComponent(CLAUDE)}/converse-stream`);
  assert.equal(call?.headers.authorization, "Bearer bedrock-api-key-test");
  const { name, description } = WEATHER;
  assert.deepEqual(call?.json, {
    messages: [{ role: "user", content: [{ text: "Hi" }] }],
    system: [{ text: "Be brief." }],
    toolConfig: {
      tools: [{ toolSpec: { name, description, inputSchema: { json: { type: "object" } } } }],
    },
  });
});

test("no instructions, no system; no tools, no toolConfig", async () => {
  await using upstream = await startUpstream(stream("text"));
  await ask(open(await bedrock(upstream), { instructions: "" }));
  assert.deepEqual(Object.keys(upstream.calls[0]?.json), ["messages"]);
});

test("thinking, its signature and its encrypted part go back with the tool's result", async () => {
  await using upstream = await startUpstream(stream("claude-thinking-and-call"), stream("text"));
  const conversation = open(await bedrock(upstream), { tools: [WEATHER] });
  const { events } = await ask(conversation);
  assert.deepEqual(events, [
    { type: "thinking", delta: "Lima, then. " },
    { type: "thinking", delta: "I ask the tool." },
    { type: "text", delta: "Let me see." },
    {
      type: "call",
      call: {
        id: "tooluse_bpe71yCfRu2b5i-nKGDr5g",
        name: "get_weather",
        arguments: '{"city": "Lima"}',
      },
    },
    { type: "end", finish: "stop", usage: { input_tokens: 67, output_tokens: 70 } },
  ]);
  conversation.answer([{ id: "tooluse_bpe71yCfRu2b5i-nKGDr5g", name: "get_weather", output: "mild", failed: false }]);
  await ask(conversation);
  assert.deepEqual(upstream.calls[1]?.json.messages, [
    { role: "user", content: [{ text: "Hi" }] },
    {
      role: "assistant",
      content: [
        {
          reasoningContent: {
            reasoningText: { text: "Lima, then. I ask the tool.", signature: "EqQBCgIYAhIkMzQ=" },
          },
        },
        { reasoningContent: { redactedContent: "cnNuX3JlZGFjdGVk" } },
        { text: "Let me see." },
        {
          toolUse: {
            toolUseId: "tooluse_bpe71yCfRu2b5i-nKGDr5g",
            name: "get_weather",
            input: { city: "Lima" },
          },
        },
      ],
    },
    {
      role: "user",
      content: [
        {
          toolResult: {
            toolUseId: "tooluse_bpe71yCfRu2b5i-nKGDr5g",
            content: [{ text: "mild" }],
          },
        },
      ],
    },
  ]);
  const [, assistant] = history(conversation.state());
  assert.ok(assistant?.role === "assistant");
  assert.deepEqual(assistant.thinking_blocks, [
    { type: "thinking", thinking: "Lima, then. I ask the tool.", signature: "EqQBCgIYAhIkMzQ=" },
    { type: "redacted_thinking", data: "cnNuX3JlZGFjdGVk" },
  ]);
});

test("parallel calls are told apart by their index, and all results go in one message", async () => {
  await using upstream = await startUpstream(stream("two-parallel-calls"), stream("text"));
  const conversation = open(await bedrock(upstream), { tools: [WEATHER] });
  const { events } = await ask(conversation);
  assert.deepEqual(
    events.flatMap((event) => (event.type === "call" ? [event.call] : [])),
    [
      { id: "tooluse_a", name: "get_weather", arguments: '{"city":"Lima"}' },
      { id: "tooluse_b", name: "get_time", arguments: '{"city":"Oslo"}' },
      { id: "tooluse_c", name: "get_date", arguments: "{}" },
    ],
  );
  conversation.answer([
    { id: "tooluse_b", name: "get_time", output: "clock broken", failed: true },
    { id: "tooluse_a", name: "get_weather", output: " ", failed: false },
    { id: "tooluse_c", name: "get_date", output: "Monday", failed: false },
  ]);
  await ask(conversation);
  const [, assistant, results] = upstream.calls[1]?.json.messages ?? [];
  assert.deepEqual(assistant.content[2].toolUse.input, {});
  assert.deepEqual(results.content, [
    {
      toolResult: {
        toolUseId: "tooluse_b",
        content: [{ text: "clock broken" }],
        status: "error",
      },
    },
    { toolResult: { toolUseId: "tooluse_a", content: [{ text: "(no output)" }] } },
    { toolResult: { toolUseId: "tooluse_c", content: [{ text: "Monday" }] } },
  ]);
});

test("a tool that Bedrock runs by itself is no call of ours", async () => {
  await using upstream = await startUpstream(stream("server-tool"));
  const { events } = await ask(open(await bedrock(upstream)));
  assert.deepEqual(
    events.map(({ type }) => type),
    ["text", "end"],
  );
});

test("reasoning without a signature is shown and not kept", async () => {
  const [start, ...rest] = fixtureFrames("text");
  const thought = { contentBlockIndex: 0, delta: { reasoningContent: { text: "Hm." } } };
  const answer = frames(start ?? {}, { contentBlockDelta: thought }, ...rest);
  await using upstream = await startUpstream(answer);
  const conversation = open(await bedrock(upstream, { model: "openai.gpt-oss-120b-1:0" }));
  assert.equal(said(await ask(conversation), "thinking"), "Hm.");
  const [, assistant] = history(conversation.state());
  assert.deepEqual(assistant, { role: "assistant", content: "Hello 👋" });
});

for (const [stopReason, finish] of [
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["guardrail_intervened", "content_filter"],
  ["content_filtered", "content_filter"],
  ["some_future_reason", "stop"],
] as const) {
  test(`the stop reason ${stopReason} ends the turn with ${finish}`, async () => {
    const answer = fixtureFrames("text").map((frame) =>
      "messageStop" in frame ? { messageStop: { stopReason } } : frame,
    );
    await using upstream = await startUpstream(frames(...answer));
    const { events } = await ask(open(await bedrock(upstream)));
    const end = events.at(-1);
    assert.ok(end?.type === "end");
    assert.equal(end.finish, finish);
  });
}

test("reasoning between texts goes back where it was, and texts apart read as paragraphs", async () => {
  const answer = stream("claude-interleaved-thinking");
  await using upstream = await startUpstream(answer, stream("text"));
  const conversation = open(await bedrock(upstream), { tools: [WEATHER] });
  const turn = await ask(conversation);
  assert.equal(said(turn), "First.\n\nSecond.");
  assert.equal(said(turn, "thinking"), "One.\n\nTwo.");
  conversation.answer([{ id: "tooluse_a", name: "get_weather", output: "ok", failed: false }]);
  await ask(conversation);
  const thought = (text: string, signature: string) => ({
    reasoningContent: { reasoningText: { text, signature } },
  });
  assert.deepEqual(upstream.calls[1]?.json.messages[1].content, [
    thought("One.", "sig1"),
    { text: "First." },
    thought("Two.", "sig2"),
    { text: "Second." },
    { toolUse: { toolUseId: "tooluse_a", name: "get_weather", input: {} } },
  ]);
});

test("a call that the token limit cut is not made, whole ones are", async () => {
  const cut = fixtureFrames("two-parallel-calls").slice(0, 6);
  const stop = { messageStop: { stopReason: "max_tokens" } };
  await using upstream = await startUpstream(frames(...cut.slice(0, 5), stop));
  const { events } = await ask(open(await bedrock(upstream)));
  const calls = events.flatMap((event) => (event.type === "call" ? [event.call.name] : []));
  assert.deepEqual(calls, ["get_weather"]);
  assert.deepEqual(events.at(-1), { type: "end", finish: "length" });
});

test("no call of an answer that a guardrail withheld is made", async () => {
  const answer = fixtureFrames("two-parallel-calls").map((frame) =>
    "messageStop" in frame ? { messageStop: { stopReason: "guardrail_intervened" } } : frame,
  );
  await using upstream = await startUpstream(frames(...answer));
  const { events } = await ask(open(await bedrock(upstream)));
  assert.deepEqual(
    events.map(({ type }) => type),
    ["end"],
  );
});
