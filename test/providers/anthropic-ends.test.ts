/** How Claude's answers end, and what gateways make of them. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { claude, stream, WEATHER } from "../support/anthropic.ts";
import { ask, open, said } from "../support/upstream-conversation.ts";
import { eventStream, startUpstream } from "../support/upstream-server.ts";

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
    await using upstream = await startUpstream({ body: [body] });
    const turn = await ask(open(claude(upstream)));
    assert.equal(said(turn), "So far");
    assert.deepEqual(turn.events.at(-1), { type: "end", finish });
  });
}

test("anthropic: a refused answer ends as content_filter, and its calls are not made", async () => {
  await using upstream = await startUpstream(stream("refusal"));
  const { events } = await ask(open(claude(upstream), { tools: [WEATHER] }));
  assert.deepEqual(events, [
    { type: "text", delta: "Take " },
    { type: "end", finish: "content_filter", usage: { input_tokens: 25, output_tokens: 4 } },
  ]);
});

test("anthropic: a call that the token limit has cut is not made, those before it are", async () => {
  await using upstream = await startUpstream(stream("max-tokens-in-tool"));
  const { events } = await ask(open(claude(upstream), { tools: [WEATHER] }));
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
  await using upstream = await startUpstream({ body: [body] });
  const { events } = await ask(open(claude(upstream), { tools: [WEATHER] }));
  const [call, end] = events;
  assert.ok(call?.type === "call" && call.call.id !== "");
  assert.equal(call.call.arguments, '{"city":"Lima"}');
  assert.deepEqual(end, { type: "end", finish: "stop" });
});
