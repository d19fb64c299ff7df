/** Answers that end in the middle of a tool call: what is not whole was never asked for. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, WEATHER } from "../support/chat-servers.ts";
import { ask, chatProvider, open, responsesProvider, type Turn } from "../support/upstream-conversation.ts";
import { eventStream, startUpstream, type UpstreamReply } from "../support/upstream-server.ts";

const WHOLE = { id: "a", name: "get_weather", arguments: '{"city":"Lima"}' };

/** What a turn came to: the arguments of its calls, and its finish. */
function outcome({ events, error }: Turn) {
  assert.equal(error, undefined);
  const calls = events.flatMap((event) => (event.type === "call" ? [event.call.arguments] : []));
  const end = events.at(-1);
  return [...calls, end?.type === "end" ? end.finish : end?.type];
}

function chat(finish: string, ...calls: { id: string; name: string; arguments: string }[]) {
  const pieces = calls.map(({ id, ...fn }, index) => ({
    index,
    id,
    type: "function",
    function: fn,
  }));
  const delta = { content: "Let me look.", tool_calls: pieces };
  return {
    body: [eventStream({ choices: [{ index: 0, delta, finish_reason: finish }] }, "[DONE]")],
  };
}

for (const [what, reply, expected] of [
  ["in its arguments", chat("length", { ...WHOLE, arguments: '{"ci' }), ["length"]],
  ["before its arguments", chat("length", { ...WHOLE, arguments: "" }), ["length"]],
  ["after a whole one", chat("length", WHOLE, { ...WHOLE, id: "b", arguments: "{" }), [WHOLE.arguments, "length"]],
  ["not at all", chat("length", WHOLE), [WHOLE.arguments, "length"]],
  ["by a filter", chat("content_filter", WHOLE), ["content_filter"]],
] as const) {
  test(`Chat Completions: a call that the end of the answer cuts ${what}`, async () => {
    await using upstream = await startUpstream(reply);
    const conversation = open(chatProvider(upstream), { tools: [WEATHER] });
    assert.deepEqual(outcome(await ask(conversation)), expected);
  });
}

test("Chat Completions: text after a call without arguments does not cut the call", async () => {
  const call = { index: 0, id: "a", function: { name: "get_weather", arguments: "" } };
  const deltas = [{ tool_calls: [call] }, { content: "One moment." }];
  const chunks = deltas.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] }));
  const end = { choices: [{ index: 0, delta: {}, finish_reason: "length" }] };
  await using upstream = await startUpstream({ body: [eventStream(...chunks, end)] });
  const conversation = open(chatProvider(upstream), { tools: [WEATHER] });
  assert.deepEqual(outcome(await ask(conversation)), ["{}", "length"]);
});

/** A response of these calls that the token limit ended. */
function incomplete(...items: object[]): UpstreamReply {
  const response = {
    id: "resp_cut",
    status: "incomplete",
    incomplete_details: { reason: "max_output_tokens" },
    output: items,
  };
  const done = items.map((item, output_index) => ({
    type: "response.output_item.done",
    output_index,
    item,
  }));
  return { body: [eventStream(...done, { type: "response.incomplete", response })] };
}

const item = (call_id: string, args: string, status: string) => ({
  type: "function_call",
  id: `fc_${call_id}`,
  call_id,
  name: "get_weather",
  arguments: args,
  status,
});

test("OpenAI: a call that was cut is not made, and the id of its response does not leave", async () => {
  await using upstream = await startUpstream(incomplete(item("a", "", "incomplete")));
  const state = { previous_response_id: "resp_before" };
  const conversation = open(responsesProvider(upstream), { state, tools: [WEATHER] });
  assert.deepEqual(outcome(await ask(conversation)), ["length"]);
  assert.deepEqual(conversation.state(), state);
});

test("OpenAI: when another call is made, the one that was cut is answered as cancelled", async () => {
  await using upstream = await startUpstream(
    incomplete(item("a", WHOLE.arguments, "completed"), item("b", '{"ci', "incomplete")),
    { body: [eventStream({ type: "response.completed", response: { id: "resp_2" } })] },
  );
  const conversation = open(responsesProvider(upstream), { tools: [WEATHER] });
  assert.deepEqual(outcome(await ask(conversation)), [WHOLE.arguments, "length"]);
  conversation.answer([{ id: "a", name: "get_weather", output: "mild", failed: false }]);
  await ask(conversation);
  assert.deepEqual(upstream.calls[1]?.json.input, [
    { type: "function_call_output", call_id: "a", output: "mild" },
    {
      type: "function_call_output",
      call_id: "b",
      output: "Cancelled: the run ended before this call was finished.",
    },
  ]);
  assert.deepEqual(conversation.state(), { previous_response_id: "resp_2" });
});

test("OpenAI with store: false: a call that was cut is not part of the history", async () => {
  await using upstream = await startUpstream(incomplete(item("a", "", "incomplete")), ok());
  const provider = responsesProvider(upstream, { settings: { store: false } });
  const conversation = open(provider, { tools: [WEATHER] });
  assert.deepEqual(outcome(await ask(conversation)), ["length"]);
  assert.deepEqual(conversation.state(), {
    conversation_history: [{ role: "user", content: "Hi" }],
  });
});
