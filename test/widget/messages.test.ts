import assert from "node:assert/strict";
import { test } from "node:test";

import {
  type AssistantMessage,
  answerText,
  applyEvent,
  emptyAnswer,
  failAnswer,
  joinedBlocks,
  reopenAnswer,
  stopAnswer,
  type ToolBlock,
} from "../../widget/conversations/messages.ts";
import { parseEvent } from "../../widget/transport/parse-event.ts";
import type { RunEvent } from "../../widget/transport/transport.ts";

const fold = (...events: RunEvent[]) =>
  events.reduce((answer, event, index) => applyEvent(answer, event, index * 100), emptyAnswer("m1"));

const call = (id: string, tool = "look"): RunEvent => ({
  type: "tool_call",
  data: { id, tool, arguments: `{"of":"${id}"}`, status: "running" },
});

const result = (id: string, output: string): RunEvent => ({
  type: "tool_result",
  data: { id, tool: "look", output, status: "completed", duration_ms: 7 },
});

const done = (data: string): RunEvent => ({
  type: "done",
  data,
  state: {},
  finish_reason: "stop",
});

const token = (data: string): RunEvent => ({ type: "token", data });

const thinking = (data: string): RunEvent => ({ type: "thinking", data });

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

test("steps stand in their call, in it again as they were where it runs once more, and end with it", () => {
  const step = (id: string, parent: string): RunEvent => {
    const { data } = call(id) as Extract<RunEvent, { type: "tool_call" }>;
    return { type: "tool_call", data: { ...data, parent } };
  };
  const progress: RunEvent = { type: "tool_progress", data: { id: "s2", text: "Page 1" } };
  const answer = fold(call("1"), step("s1", "1"), step("s2", "s1"), progress, result("s2", "b"), step("s1", "1"));
  const [outer] = answer.blocks as readonly ToolBlock[];
  assert.deepEqual(
    outer?.steps?.map(({ callId, status, steps }) => [callId, status, steps]),
    [["s1", "running", undefined]],
  );
  const [stopped] = stopAnswer(answer, 9).blocks as readonly ToolBlock[];
  assert.deepEqual([stopped?.status, stopped?.steps?.[0]?.status], ["stopped", "stopped"]);
});

test("a call has 200 steps and three levels of them at most, whatever the server sends", () => {
  const step = (id: string, parent: string): RunEvent => {
    const { data } = call(id) as Extract<RunEvent, { type: "tool_call" }>;
    return { type: "tool_call", data: { ...data, parent } };
  };
  const ended = (id: string, parent: string): RunEvent => {
    const { data } = result(id, "") as Extract<RunEvent, { type: "tool_result" }>;
    return { type: "tool_result", data: { ...data, parent } };
  };
  const deep = fold(call("0"), ...[1, 2, 3, 4, 5].map((level) => step(`${level}`, `${level - 1}`)), ended("4", "3"));
  const levels: string[] = [];
  for (let it = deep.blocks[0] as ToolBlock | undefined; it; it = it.steps?.[0]) levels.push(it.callId);
  assert.deepEqual([levels, deep.blocks.length], [["0", "1", "2", "3"], 1]);
  const many = fold(
    call("0"),
    step("a", "0"),
    ...Array.from({ length: 300 }, (_, index) => step(`s${index}`, index % 2 ? "a" : "0")),
    ended("s299", "a"),
  );
  const [outer] = many.blocks as readonly ToolBlock[];
  const count = ({ steps = [] }: ToolBlock): number => steps.reduce((sum, it) => sum + 1 + count(it), 0);
  assert.deepEqual([outer && count(outer), many.blocks.length], [200, 1]);
});

const unusable = [
  { type: "thinking", data: 7 },
  { type: "tool_call", data: { id: "2", tool: "look", arguments: {} } },
  { type: "tool_progress", data: { id: "1", text: 7 } },
  { type: "tool_progress", data: null },
  { type: "tool_result", data: { id: "1", tool: "look", output: { a: 1 }, status: "completed" } },
  { type: "source", data: "https://a.example" },
];

for (const event of unusable) {
  test(`an answer goes on without what it can do without: ${JSON.stringify(event)}`, () => {
    assert.equal(parseEvent(JSON.stringify({ id: 3, ...event })), undefined);
  });
}

test("what an answer consists of, asks and ends with must be readable", () => {
  const broken = [
    { type: "token", data: 7 },
    { type: "tool_approval", data: { id: "1", tool: "look", arguments: "{}", text: 7, expires_at: "" } },
    { type: "done", data: "", state: "none" },
  ];
  for (const event of broken) assert.throws(() => parseEvent(JSON.stringify(event)), { code: "unreadable" });
});

test("a failure is said in its own words, or by its code, whatever stands beside it", () => {
  const failed = (fields: object) => parseEvent(JSON.stringify({ type: "error", code: "overloaded", ...fields }));
  const error = { type: "error", code: "overloaded", retryable: false };
  assert.deepEqual(failed({ data: { message: "no" } }), { ...error, data: "" });
  assert.deepEqual(failed({ data: "Busy.", state: null }), { ...error, data: "Busy." });
  const problem = { pointer: "/sum", message: "Too much." };
  const param = "/approvals/0/arguments";
  const problems = [7, { pointer: "/sum" }, problem];
  assert.deepEqual(failed({ data: "", param, problems }), { ...error, data: "", param, problems });
});

test("what does not fit in changed arguments is known of their call alone", () => {
  const asks = (id: string): RunEvent => {
    const data = { id, tool: "pay", arguments: '{"sum":1}', text: "Pay?", expires_at: "2030-01-01T00:00:00Z" };
    const schema = { type: "object", properties: { sum: { maximum: 9 } } };
    const event = parseEvent(JSON.stringify({ type: "tool_approval", data: { ...data, editable: true, schema } }));
    assert.deepEqual(event?.type === "tool_approval" && event.data.schema, schema);
    return event as RunEvent;
  };
  const approvals = ["1", "2"].map((id) => ({ id, approved: true, arguments: '{"sum":10}' }));
  const sent = reopenAnswer(fold(asks("1"), asks("2")), { approvals }, 5);
  const problems = [{ pointer: "/sum", message: "10 is greater than 9." }];
  const fields = { code: "invalid_request", retryable: false, param: "/approvals/1/arguments", problems } as const;
  const refused = applyEvent(sent, { type: "error", data: "", ...fields }, 6);
  const known = (answer: AssistantMessage) => (answer.blocks as readonly ToolBlock[]).map((it) => it.problems);
  assert.deepEqual(known(refused), [undefined, problems]);
  assert.equal((refused.blocks[1] as ToolBlock).refused, '{"sum":10}');
});

test("an id that a model uses again is that of its last call", () => {
  const again = fold(call("1"), result("1", "first"), call("1"), result("1", "second"));
  assert.deepEqual(
    (again.blocks as readonly ToolBlock[]).map(({ output }) => output),
    ["first", "second"],
  );
});

test("what is no picture of a result is left out, and its number is none", () => {
  const images = [
    null,
    { mime_type: "image/png", data: "<none>" },
    { mime_type: "image/png", data: 7 },
    { mime_type: "javascript:alert(1)", data: "AAAA" },
    { mime_type: "image/png", data: "AAAA" },
  ];
  const data = {
    id: "1",
    tool: "look",
    output: "",
    status: "completed",
    duration_ms: 1,
    images,
    images_omitted: "<b>5",
  };
  const event = parseEvent(JSON.stringify({ type: "tool_result", data })) as RunEvent;
  const [block] = fold(call("1"), event).blocks as readonly ToolBlock[];
  assert.equal(block?.images?.length, 1);
  assert.equal(block?.imagesOmitted, undefined);
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
