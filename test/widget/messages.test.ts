import assert from "node:assert/strict";
import { test } from "node:test";
import type { StreamEvent } from "../../server/protocol/events.ts";
import {
  answerText,
  applyEvent,
  emptyAnswer,
  failAnswer,
  joinedBlocks,
  stopAnswer,
} from "../../widget/session/messages.ts";

const fold = (...events: StreamEvent[]) =>
  events.reduce((answer, event, index) => applyEvent(answer, event, index * 100), emptyAnswer("m1"));

const call = (id: string, tool = "look"): StreamEvent => ({
  type: "tool_call",
  data: { id, tool, arguments: `{"of":"${id}"}`, status: "running" },
});

const result = (id: string, output: string): StreamEvent => ({
  type: "tool_result",
  data: { id, tool: "look", output, status: "completed", duration_ms: 7 },
});

const done = (data: string): StreamEvent => ({
  type: "done",
  data,
  state: {},
  finish_reason: "stop",
});

const token = (data: string): StreamEvent => ({ type: "token", data });

const thinking = (data: string): StreamEvent => ({ type: "thinking", data });

test("thoughts that were sent as the answer first are shown once, as thinking", () => {
  const { blocks } = fold(token("Plan "), token("it."), { type: "thinking", data: "Plan it." }, token("Answer"));
  assert.deepEqual(
    blocks.map((block) => [block.type, "text" in block && block.text]),
    [
      ["thinking", "Plan it."],
      ["text", "Answer"],
    ],
  );
});

test("tokens grow one text block, and the streamed text is not repeated by done", () => {
  const answer = fold(token("Hel"), token("lo"), done("Hello"));
  assert.deepEqual(
    answer.blocks.map((block) => block.type === "text" && block.text),
    ["Hello"],
  );
  assert.equal(answer.status, "done");
  assert.equal(answer.finishReason, "stop");
});

test("what was said before a tool of which nothing is shown stays where it was", () => {
  const answer = fold(token("Wait."), token("\n\n"), token("Here."), done("Here."));
  assert.equal(answerText(answer), "Wait.\n\nHere.");
});

test("an answer that was not streamed is taken from done", () => {
  assert.equal(answerText(fold(done("All at once"))), "All at once");
});

test("a last turn with thinking between two texts is not repeated by done", () => {
  const answer = fold(token("a"), thinking("hm"), token("b"), done("ab"));
  assert.deepEqual(
    answer.blocks.map(({ type }) => type),
    ["text", "thinking", "text"],
  );
});

test("text before a tool call that is the run's final output stays where it was said", () => {
  const answer = fold(token("Looking"), call("1"), result("1", "x"), done("Looking"));
  assert.deepEqual(
    answer.blocks.map(({ type }) => type),
    ["text", "tool"],
  );
});

test("a final output that differs from what was streamed replaces the text of the last turn only", () => {
  const answer = fold(token("Looking"), call("1"), result("1", "x"), token("draft"), done("final"));
  assert.equal(answerText(answer), "Looking\n\nfinal");
});

test("results find their call by id when parallel tools finish in another order", () => {
  const { blocks } = fold(call("1"), call("2"), result("2", "two"), result("1", "one"));
  const rows = blocks.map((block) => block.type === "tool" && [block.callId, block.output]);
  assert.deepEqual(rows, [
    ["1", "one"],
    ["2", "two"],
  ]);
});

test("thinking lasts from its first piece to the next event of another kind", () => {
  const [block] = fold(thinking("a"), thinking("b"), token("c")).blocks;
  assert.ok(block?.type === "thinking");
  assert.equal(block.text, "ab");
  assert.equal(block.startedAt, 0);
  assert.equal(block.endedAt, 200);
});

test("an error keeps what was said, and stops the tools that still ran", () => {
  const answer = fold(token("Half"), call("1"), {
    type: "error",
    data: "The model broke off.",
    code: "provider_truncated",
    retryable: true,
  });
  assert.equal(answer.status, "failed");
  assert.deepEqual(answer.failure, {
    code: "provider_truncated",
    detail: "The model broke off.",
    retryable: true,
    at: 200,
  });
  assert.equal(answerText(answer), "Half");
  const tool = answer.blocks.at(-1);
  assert.equal(tool?.type === "tool" && tool.status, "stopped");
});

test("stopping and failing from outside end the thinking too", () => {
  const thought = fold(thinking("a"));
  for (const ended of [
    stopAnswer(thought, 500),
    failAnswer(thought, { code: "connection_lost", retryable: true }, 500),
  ]) {
    const [block] = ended.blocks;
    assert.equal(block?.type === "thinking" && block.endedAt, 500);
    assert.notEqual(ended.status, "streaming");
  }
});

test("a fold never changes the message that it was given", () => {
  const before = Object.freeze({
    ...fold(token("a")),
    blocks: Object.freeze([...fold(token("a")).blocks]),
  });
  assert.equal(answerText(applyEvent(before, token("b"), 0)), "ab");
  assert.equal(answerText(before), "a");
});

const continued = [
  { before: "Hel", after: "lo", whole: "Hello" },
  { before: "```js\nlet a =", after: " 1;\n```\nDone.", whole: "```js\nlet a = 1;\n```\nDone." },
  { before: "```js\nlet a =", after: "```js\n 1;\n```", whole: "```js\nlet a = 1;\n```" },
  { before: "```\nlet a =", after: "\n```\n 1;\n```", whole: "```\nlet a = 1;\n```" },
  { before: "```js\nlet a = 1;\n", after: "```\nDone.", whole: "```js\nlet a = 1;\n```\nDone." },
  {
    before: "```js\nlet a = 1;\n```\n",
    after: "```js\nlet b;\n```",
    whole: "```js\nlet a = 1;\n```\n```js\nlet b;\n```",
  },
] as const;

test("a text that goes on is one with what was cut: nothing between them, and a program opened again is not", () => {
  for (const { before, after, whole } of continued) {
    const blocks = [
      { type: "text", text: before },
      { type: "thinking", text: "hm", startedAt: 0, endedAt: 1 },
      { type: "text", text: after, continues: true },
    ] as const;
    const [joined, thought] = joinedBlocks(blocks);
    assert.deepEqual([joined, thought], [{ type: "text", text: whole }, blocks[1]]);
    assert.equal(answerText({ ...emptyAnswer("m1"), blocks }), whole.trim());
  }
});
