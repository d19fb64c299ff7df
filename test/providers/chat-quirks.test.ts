/** What servers that copied the Chat Completions API do differently. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConversationState, HistoryMessage } from "../../server/protocol/chat.ts";
import { ask, chatProvider, failureOf, open, said } from "../support/upstream-conversation.ts";
import { eventStream, fixture, startUpstream } from "../support/upstream-server.ts";

const WEATHER = {
  name: "get_weather",
  description: "Weather of a city.",
  parameters: { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object" },
};

const stream = (name: string) => ({ body: [fixture(`chat-completions/${name}`)] });
const text = () => stream("text-and-usage");

/** A stream with these deltas, the finish reason and `[DONE]`. */
function deltas(finish: string | null, ...all: object[]) {
  const chunks = all.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] }));
  const last = { choices: [{ index: 0, delta: {}, finish_reason: finish }] };
  return { body: [eventStream(...chunks, last, "[DONE]")] };
}

function history(state: ConversationState): HistoryMessage[] {
  assert.ok("conversation_history" in state);
  return state.conversation_history as HistoryMessage[];
}

test("LiteLLM with Claude: reasoning is shown once, and the thinking block goes back whole with its signature", async () => {
  await using upstream = await startUpstream(stream("litellm-claude-thinking-and-call"), text());
  const conversation = open(chatProvider(upstream), { tools: [WEATHER] });
  const turn = await ask(conversation);
  assert.equal(said(turn, "thinking"), "The user wants the weather.");
  assert.equal(said(turn), "Let me look.");
  conversation.answer([{ id: "toolu_01", name: "get_weather", output: "mild", failed: false }]);
  await ask(conversation);
  const block = {
    type: "thinking",
    thinking: "The user wants the weather.",
    signature: "EqoBCkgIARAB",
  };
  assert.deepEqual(upstream.calls[1]?.json.messages[2], {
    reasoning_content: "The user wants the weather.",
    thinking_blocks: [block],
    provider_specific_fields: { thinking_blocks: [block] },
    role: "assistant",
    content: "Let me look.",
    tool_calls: [
      {
        id: "toolu_01",
        type: "function",
        function: { name: "get_weather", arguments: '{"city": "Lima"}' },
      },
    ],
  });
});

test("thinking blocks without reasoning_content are shown; a redacted block stays on its own", async () => {
  const thinking = (thinking: string, signature: string | null = null) => ({
    type: "thinking",
    thinking,
    signature,
  });
  const redacted = { type: "redacted_thinking", data: "Eo0F" };
  await using upstream = await startUpstream(
    deltas(
      "stop",
      { thinking_blocks: [thinking("One.")] },
      { thinking_blocks: [thinking("", "sig1")] },
      { thinking_blocks: [redacted] },
      { thinking_blocks: [thinking("Two.", "sig2")] },
      { content: "Ok" },
    ),
  );
  const conversation = open(chatProvider(upstream));
  assert.equal(said(await ask(conversation), "thinking"), "One.Two.");
  assert.deepEqual(history(conversation.state())[1], {
    thinking_blocks: [thinking("One.", "sig1"), redacted, thinking("Two.", "sig2")],
    role: "assistant",
    content: "Ok",
  });
});

test("Gemini: calls without an index stay apart, run although finish_reason is stop, and keep their signature", async () => {
  await using upstream = await startUpstream(stream("gemini-calls-without-index"), text());
  const conversation = open(chatProvider(upstream), { tools: [WEATHER] });
  const { events } = await ask(conversation);
  assert.deepEqual(
    events.map((event) => (event.type === "call" ? event.call.arguments : event.type)),
    ['{"city": "Lima"}', '{"city": "Oslo"}', "end"],
  );
  for (const id of ["function-call-1", "function-call-2"]) {
    conversation.answer([{ id, name: "get_weather", output: "mild", failed: false }]);
  }
  await ask(conversation);
  const [first, second] = upstream.calls[1]?.json.messages[2].tool_calls ?? [];
  assert.deepEqual(first.extra_content, { google: { thought_signature: "CsQBsig" } });
  assert.equal("extra_content" in second, false);
});

test("vLLM: the same reasoning in two fields is shown once", async () => {
  await using upstream = await startUpstream(stream("vllm-reasoning"));
  const turn = await ask(open(chatProvider(upstream)));
  assert.equal(said(turn, "thinking"), "9.8 is larger.");
  assert.equal(said(turn), "9.8");
});

test("CRLF lines and pings are read, and length ends the turn as length", async () => {
  await using upstream = await startUpstream(stream("crlf-lines"));
  const turn = await ask(open(chatProvider(upstream)));
  assert.equal(said(turn), "Zeile für Zeile");
  assert.deepEqual(turn.events.at(-1), { type: "end", finish: "length" });
});

test("choices that are null or empty are passed over", async () => {
  const body = [
    eventStream(
      { choices: null },
      { choices: [] },
      { choices: [{ index: 0, delta: null, finish_reason: null }] },
      { choices: [{ index: 0, delta: { content: "ok" }, finish_reason: "content_filter" }] },
    ),
  ];
  await using upstream = await startUpstream({ body });
  const turn = await ask(open(chatProvider(upstream)));
  assert.deepEqual(turn.events, [
    { type: "text", delta: "ok" },
    { type: "end", finish: "content_filter" },
  ]);
});

test("a call id that the conversation has already is replaced, on the call and on its answer", async () => {
  const call = {
    tool_calls: [{ index: 0, id: "call_0", function: { name: "get_weather", arguments: "{}" } }],
  };
  await using upstream = await startUpstream(deltas("tool_calls", call), deltas("tool_calls", call), text());
  const conversation = open(chatProvider(upstream), { tools: [WEATHER] });
  const ids: string[] = [];
  for (let turn = 0; turn < 2; turn++) {
    for (const event of (await ask(conversation)).events) {
      if (event.type !== "call") continue;
      ids.push(event.call.id);
      conversation.answer([{ id: event.call.id, name: "get_weather", output: "mild", failed: false }]);
    }
  }
  await ask(conversation);
  assert.equal(ids[0], "call_0");
  assert.match(ids[1] ?? "", /^[0-9a-f]{9}$/);
  const sent = upstream.calls[2]?.json.messages.filter((message: HistoryMessage) => message.role === "tool");
  assert.deepEqual(
    sent.map((message: { tool_call_id: string }) => message.tool_call_id),
    ids,
  );
});

test("arguments that are no JSON stay in the state, but go upstream as JSON", async () => {
  const call = {
    tool_calls: [{ index: 0, id: "c", function: { name: "get_weather", arguments: '{"ci' } }],
  };
  await using upstream = await startUpstream(deltas("tool_calls", call), text());
  const conversation = open(chatProvider(upstream), { tools: [WEATHER] });
  await ask(conversation);
  conversation.answer([{ id: "c", name: "get_weather", output: "not JSON", failed: true }]);
  await ask(conversation);
  const sent = upstream.calls[1]?.json.messages[2].tool_calls[0].function.arguments;
  assert.deepEqual(JSON.parse(sent), { unparsed_arguments: '{"ci' });
  const kept = history(conversation.state())[1];
  assert.ok(kept?.role === "assistant");
  assert.equal(kept.tool_calls?.[0]?.function.arguments, '{"ci');
});

test("a call that never gets a name is an answer that could not be read", async () => {
  const call = { tool_calls: [{ index: 0, id: "c", function: { arguments: "{}" } }] };
  await using upstream = await startUpstream(deltas("tool_calls", call));
  assert.equal(failureOf(await ask(open(chatProvider(upstream)))).code, "provider_error");
});

test("a field called __proto__ is data like any other", async () => {
  const body = ['data: {"choices":[{"delta":{"content":"ok","__proto__":{"polluted":1}},"finish_reason":"stop"}]}\n\n'];
  await using upstream = await startUpstream({ body });
  const conversation = open(chatProvider(upstream));
  assert.equal(said(await ask(conversation)), "ok");
  assert.equal("polluted" in {}, false);
  assert.match(JSON.stringify(conversation.state()), /"__proto__":\{"polluted":1\}/);
});

for (const [server, usage, output] of [
  ["OpenAI counts thoughts as output", { completion_tokens: 40, total_tokens: 52 }, 40],
  ["Gemini counts them in the total only", { completion_tokens: 3, total_tokens: 52 }, 40],
  ["some servers have no total", { completion_tokens: 40 }, 40],
] as const) {
  test(`usage: ${server}`, async () => {
    const chunk = {
      choices: [{ index: 0, delta: { content: "ok" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 12, ...usage },
    };
    await using upstream = await startUpstream({ body: [eventStream(chunk)] });
    assert.deepEqual((await ask(open(chatProvider(upstream)))).events.at(-1), {
      type: "end",
      finish: "stop",
      usage: { input_tokens: 12, output_tokens: output },
    });
  });
}

test("a server that gives up in the middle of an answer has not finished it", async () => {
  await using upstream = await startUpstream(
    deltas("insufficient_system_resource", { content: "Half" }),
    deltas("abort", { content: "Half" }),
  );
  for (const _server of ["DeepSeek", "vLLM"]) {
    const turn = await ask(open(chatProvider(upstream)));
    assert.equal(said(turn), "Half");
    assert.equal(failureOf(turn).code, "provider_truncated");
  }
});

test("Mistral: a full context ends the turn as length", async () => {
  await using upstream = await startUpstream(deltas("model_length", { content: "Half" }));
  const turn = await ask(open(chatProvider(upstream)));
  assert.deepEqual(turn.events.at(-1), { type: "end", finish: "length" });
});

test("what Parley keeps for other APIs on a message is not sent to this one", async () => {
  await using upstream = await startUpstream(text());
  const kept = { openai_output: [{ type: "item", item: {} }], anthropic_layout: ["thinking"] };
  const conversation_history: HistoryMessage[] = [
    { role: "user", content: "Hello" },
    { role: "assistant", content: "Hi", ...kept },
  ];
  await ask(open(chatProvider(upstream), { state: { conversation_history } }));
  const sent = upstream.calls[0]?.json.messages[2];
  assert.deepEqual(sent, { role: "assistant", content: "Hi" });
});
