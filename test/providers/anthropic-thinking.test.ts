/** Claude's thinking goes back as it came, and a conversation goes on where it cannot. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryMessage } from "../../server/protocol/chat.ts";
import { claude, sentWith, stream, WEATHER } from "../support/anthropic.ts";
import { ask, failureOf, open, said } from "../support/upstream-conversation.ts";
import { jsonReply, startUpstream } from "../support/upstream-server.ts";

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

for (const layout of [
  "thinking",
  [[0, 3], "thinking"],
  [[0, 5], "thinking", "thinking"],
  [[0, 99], "thinking"],
  [[3, 5], "thinking", [0, 3]],
  [[0, 5], "thinking", "tool_use"],
  [{}, "thinking"],
]) {
  test(`anthropic: an altered layout loses nothing of a turn: ${JSON.stringify(layout)}`, async () => {
    const { messages } = await sentWith([
      { role: "user", content: "Hi" },
      {
        role: "assistant",
        content: "Hello",
        thinking_blocks: [SIGNED],
        anthropic_layout: layout,
      },
    ]);
    assert.deepEqual(messages[1].content, [SIGNED, { type: "text", text: "Hello" }]);
  });
}

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
  const conversation = open(claude(upstream), {
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
  conversation.answer(made.map(({ id, name }) => ({ id, name, output: "ok", failed: false })));
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
  assert.equal(failureOf(await ask(open(claude(upstream)))).code, "invalid_request");
  assert.equal(upstream.calls.length, 1);
});

test("anthropic: a turn of another model without its thinking is answered without thinking", async () => {
  const message = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.";
  const error = { type: "invalid_request_error", message };
  await using upstream = await startUpstream(jsonReply(400, { error }), stream("text"));
  const settings = { reasoningEffort: "high" } as const;
  const { error: failure } = await ask(
    open(claude(upstream, { model: "claude-haiku-4-5", settings }), { tools: [WEATHER] }),
  );
  assert.equal(failure, undefined);
  assert.deepEqual(
    upstream.calls.map(({ json }) => json.thinking?.type),
    ["enabled", undefined],
  );
});
