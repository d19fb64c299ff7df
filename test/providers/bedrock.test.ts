import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryMessage } from "../../server/protocol/chat.ts";
import { EventStreamParser } from "../../server/providers/bedrock/event-stream.ts";
import { textContent } from "../../server/providers/history.ts";
import {
  bedrock,
  CLAUDE,
  EVENT_STREAM,
  encodeFrame,
  type Frame,
  fixtureFrames,
  frameOf,
  frames,
  refuse,
  stream,
} from "../support/bedrock.ts";
import { historyOf, WEATHER } from "../support/chat-servers.ts";
import { typesOf } from "../support/chat-transports.ts";
import { ask, askOnce, failureOf, open, said } from "../support/upstream-conversation.ts";
import { startUpstream, type UpstreamServer } from "../support/upstream-server.ts";

test("the request: path, region's key, system apart, tools", async () => {
  const { calls } = await askOnce(bedrock, stream("text"), { tools: [WEATHER] });
  const call = calls[0];
  assert.equal(call?.path, `/model/${encodeURIComponent(CLAUDE)}/converse-stream`);
  assert.equal(call?.headers.authorization, "Bearer bedrock-api-key-test");
  const { name, description, parameters } = WEATHER;
  assert.deepEqual(call?.json, {
    messages: [{ role: "user", content: [{ text: "Hi" }] }],
    system: [{ text: "Be brief." }],
    toolConfig: { tools: [{ toolSpec: { name, description, inputSchema: { json: parameters } } }] },
  });
});

test("no instructions, no system; no tools, no toolConfig", async () => {
  const { sent } = await askOnce(bedrock, stream("text"), { instructions: "" });
  assert.deepEqual(Object.keys(sent), ["messages"]);
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
      call: { id: "tooluse_bpe71yCfRu2b5i-nKGDr5g", name: "get_weather", arguments: '{"city": "Lima"}' },
    },
    { type: "end", finish: "stop", usage: { input_tokens: 67, output_tokens: 70 } },
  ]);
  conversation.answer([
    { id: "tooluse_bpe71yCfRu2b5i-nKGDr5g", name: "get_weather", content: textContent("mild"), failed: false },
  ]);
  await ask(conversation);
  assert.deepEqual(upstream.calls[1]?.json.messages, [
    { role: "user", content: [{ text: "Hi" }] },
    {
      role: "assistant",
      content: [
        { reasoningContent: { reasoningText: { text: "Lima, then. I ask the tool.", signature: "EqQBCgIYAhIkMzQ=" } } },
        { reasoningContent: { redactedContent: "cnNuX3JlZGFjdGVk" } },
        { text: "Let me see." },
        { toolUse: { toolUseId: "tooluse_bpe71yCfRu2b5i-nKGDr5g", name: "get_weather", input: { city: "Lima" } } },
      ],
    },
    {
      role: "user",
      content: [{ toolResult: { toolUseId: "tooluse_bpe71yCfRu2b5i-nKGDr5g", content: [{ text: "mild" }] } }],
    },
  ]);
  const [, assistant] = historyOf(conversation.state());
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
    { id: "tooluse_b", name: "get_time", content: textContent("clock broken"), failed: true },
    { id: "tooluse_a", name: "get_weather", content: textContent(" "), failed: false },
    { id: "tooluse_c", name: "get_date", content: textContent("Monday"), failed: false },
  ]);
  await ask(conversation);
  const [, assistant, results] = upstream.calls[1]?.json.messages ?? [];
  assert.deepEqual(assistant.content[2].toolUse.input, {});
  assert.deepEqual(results.content, [
    { toolResult: { toolUseId: "tooluse_b", content: [{ text: "clock broken" }], status: "error" } },
    { toolResult: { toolUseId: "tooluse_a", content: [{ text: "(no output)" }] } },
    { toolResult: { toolUseId: "tooluse_c", content: [{ text: "Monday" }] } },
  ]);
});

test("a tool that Bedrock runs by itself is no call of ours", async () => {
  const { events } = await askOnce(bedrock, stream("server-tool"));
  assert.deepEqual(typesOf(events), ["text", "end"]);
});

test("reasoning without a signature is shown and not kept", async () => {
  const [start, ...rest] = fixtureFrames("text");
  const thought = { contentBlockIndex: 0, delta: { reasoningContent: { text: "Hm." } } };
  const answer = frames(start ?? {}, { contentBlockDelta: thought }, ...rest);
  await using upstream = await startUpstream(answer);
  const conversation = open(await bedrock(upstream, { model: "openai.gpt-oss-120b-1:0" }));
  assert.equal(said(await ask(conversation), "thinking"), "Hm.");
  const [, assistant] = historyOf(conversation.state());
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
    const { events } = await askOnce(bedrock, frames(...answer));
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
  conversation.answer([{ id: "tooluse_a", name: "get_weather", content: textContent("ok"), failed: false }]);
  await ask(conversation);
  const thought = (text: string, signature: string) => ({ reasoningContent: { reasoningText: { text, signature } } });
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
  const { events } = await askOnce(bedrock, frames(...cut.slice(0, 5), stop));
  const calls = events.flatMap((event) => (event.type === "call" ? [event.call.name] : []));
  assert.deepEqual(calls, ["get_weather"]);
  assert.deepEqual(events.at(-1), { type: "end", finish: "length" });
});

test("no call of an answer that a guardrail withheld is made", async () => {
  const answer = fixtureFrames("two-parallel-calls").map((frame) =>
    "messageStop" in frame ? { messageStop: { stopReason: "guardrail_intervened" } } : frame,
  );
  const { events } = await askOnce(bedrock, frames(...answer));
  assert.deepEqual(typesOf(events), ["end"]);
});

// Reasoning on Bedrock beside the usual way: in tags, after an interruption, and where it is refused.

const text = (contentBlockIndex: number, ...pieces: string[]): Frame[] => [
  ...pieces.map((piece) => ({ contentBlockDelta: { contentBlockIndex, delta: { text: piece } } })),
  { contentBlockStop: { contentBlockIndex } },
];
const use = (contentBlockIndex: number, toolUseId: string): Frame[] => [
  { contentBlockStart: { contentBlockIndex, start: { toolUse: { toolUseId, name: "get_weather" } } } },
  { contentBlockDelta: { contentBlockIndex, delta: { toolUse: { input: "{}" } } } },
  { contentBlockStop: { contentBlockIndex } },
];
const stop = (stopReason: string): Frame[] => [{ messageStop: { stopReason } }];

test("Nova thinks in tags before each call: that is thinking, and no part of the history's text", async () => {
  const answer = frames(
    ...text(0, "<thin", "king> Lima", " first. </thinking", ">\n", "\nLet me look."),
    ...use(1, "a"),
    ...text(2, "<thinking>Then Oslo.</thinking>\n"),
    ...use(3, "b"),
    ...stop("tool_use"),
  );
  await using upstream = await startUpstream(answer);
  const model = "us.amazon.nova-pro-v1:0";
  const conversation = open(await bedrock(upstream, { model }), { tools: [WEATHER] });
  const turn = await ask(conversation);
  assert.equal(said(turn, "thinking"), " Lima first. \n\nThen Oslo.");
  assert.equal(said(turn), "Let me look.");
  conversation.interrupt("");
  const [, kept] = historyOf(conversation.state());
  assert.equal(kept?.content, "Let me look.");
});

test("an answer that is about tags, or ends in the beginning of one, stays whole", async () => {
  await using upstream = await startUpstream(
    frames(...text(0, "Use <thinking>", " tags."), ...stop("end_turn")),
    frames(...text(0, "<thin"), ...stop("end_turn")),
    frames(...text(0, "<thin").slice(0, 1), ...stop("end_turn")),
  );
  const provider = await bedrock(upstream, { model: "moonshot.kimi-k2-thinking" });
  const answers = [];
  for (let run = 0; run < 3; run++) answers.push(said(await ask(open(provider))));
  assert.deepEqual(answers, ["Use <thinking> tags.", "<thin", "<thin"]);
});

test("what the user says after an interrupted call, whose result is an error, is still of its work: its reasoning goes back", async () => {
  await using upstream = await startUpstream(stream("claude-thinking-and-call"), stream("text"));
  const provider = await bedrock(upstream);
  const conversation = open(provider);
  await ask(conversation);
  conversation.interrupt("");
  await ask(open(provider, { state: conversation.state(), message: "Go on" }));
  assert.deepEqual(kinds(upstream, 1), [
    ["text"],
    ["reasoningContent", "reasoningContent", "text", "toolUse"],
    ["toolResult", "text"],
  ]);
  const [result, text] = upstream.calls[1]?.json.messages[2].content ?? [];
  assert.deepEqual([result.toolResult.status, text], ["error", { text: "Go on" }]);
});

/** The kinds of block of each message of a request. */
function kinds(upstream: UpstreamServer, request: number): string[][] {
  const { messages } = upstream.calls[request]?.json ?? {};
  return messages.map(({ content }: { content: object[] }) => content.map((block) => Object.keys(block)[0]));
}

const THOUGHT = { type: "thinking", thinking: "Hm", signature: "of another model" };
const OPEN_WORK: HistoryMessage[] = [
  { role: "user", content: "Weather?" },
  {
    role: "assistant",
    content: null,
    thinking_blocks: [THOUGHT],
    tool_calls: [{ id: "a", type: "function", function: { name: "get_weather", arguments: "{}" } }],
  },
  { role: "tool", tool_call_id: "a", content: "mild" },
];
const STATE = { conversation_history: OPEN_WORK };
const foreign = (problem: string) =>
  refuse(400, "ValidationException", `The model returned the following errors: messages.1.content.0: ${problem}`);
const MISSING = refuse(
  400,
  "ValidationException",
  "The model returned the following errors: messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
);

for (const problem of ["Invalid `signature` in `thinking` block", "Invalid `data` in `redacted_thinking` block"]) {
  test(`reasoning that the model refuses to take back (${problem}) is left out, and thinking too where it is then missed`, async () => {
    await using upstream = await startUpstream(foreign(problem), MISSING, stream("text"));
    const provider = await bedrock(upstream, { settings: { reasoningEffort: "low" } });
    const conversation = open(provider, { state: STATE, tools: [WEATHER] });
    assert.equal(said(await ask(conversation)), "Hello 👋");
    const thought = upstream.calls.map(({ json }, request) => [
      kinds(upstream, request)[1]?.[0],
      json.additionalModelRequestFields?.thinking?.type,
    ]);
    assert.deepEqual(thought, [
      ["reasoningContent", "enabled"],
      ["toolUse", "enabled"],
      ["toolUse", undefined],
    ]);
    assert.deepEqual(historyOf(conversation.state())[1], OPEN_WORK[1]);
  });
}

// The frames of Bedrock's stream: cut, broken, or no frames at all.

const START: Frame = { messageStart: { role: "assistant" } };
const HALF: Frame = { contentBlockDelta: { contentBlockIndex: 0, delta: { text: "Half" } } };
const bytes = Buffer.concat([encodeFrame(START), encodeFrame(HALF)]);

const broken = Buffer.from(encodeFrame(HALF));
broken[broken.length - 6] = 0;
for (const [what, garbage] of [
  ["a frame whose checksum is wrong", broken],
  ["a page of HTML", Buffer.from("<html><body>Bad gateway</body></html>")],
  ["an event that is not JSON", frameOf({ ":message-type": "event", ":event-type": "metadata" }, "{")],
] as const) {
  test(`${what} is not believed, and what came before it in the same packet is said`, async () => {
    const body = [Buffer.concat([bytes, garbage])];
    const turn = await askOnce(bedrock, { headers: EVENT_STREAM, body });
    assert.equal(said(turn), "Half");
    assert.equal(failureOf(turn).code, "provider_error");
    assert.match(failureOf(turn).detail ?? "", /could not be read/);
  });
}

for (const length of [0, 15, 16 * 1024 * 1024 + 1, 2 ** 32 - 1]) {
  test(`a frame that announces ${length} bytes is not waited for, and no memory is taken for it`, async () => {
    const announced = Buffer.alloc(4);
    announced.writeUInt32BE(length);
    // In two pieces: a length may be cut anywhere.
    const body = [bytes, announced.subarray(0, 1), announced.subarray(1)];
    await using upstream = await startUpstream({ headers: EVENT_STREAM, body, end: "stall" });
    const before = process.memoryUsage().arrayBuffers;
    const turn = await ask(open(await bedrock(upstream)));
    assert.match(failureOf(turn).detail ?? "", /could not be read/);
    assert.equal(said(turn), "Half", "what came before it was said");
    assert.ok(process.memoryUsage().arrayBuffers - before < 16 * 1024 * 1024);
    assert.equal(await upstream.calls[0]?.closed, "aborted");
  });
}

test("headers that are longer than their frame, or than its headers, are no frame", () => {
  const tooLong = Buffer.from(encodeFrame(START));
  tooLong.writeUInt32BE(tooLong.length, 4);
  const cutHeader = frameOf({}, "{}", Buffer.from([9, 58]));
  for (const frame of [tooLong, cutHeader]) {
    assert.throws(() => [...new EventStreamParser().push(frame)], { name: "UpstreamGarbage" });
  }
});

test("headers of every type are read over, and an error without an exception is one, too", () => {
  const name = Buffer.from([1, 120]);
  const values = [[0], [1], [2, 7], [3, 0, 1], [4, 0, 0, 0, 1], [5, ...Array(8).fill(1)], [6, 0, 2, 1, 1]];
  const others = [...values, [8, ...Array(8).fill(1)], [9, ...Array(16).fill(1)]];
  const before = Buffer.concat(others.flatMap((value) => [name, Buffer.from(value)]));
  const frames = [
    frameOf({ ":message-type": "event", ":event-type": "metadata" }, "{}", before),
    frameOf({ ":message-type": "error", ":error-code": "throttled", ":error-message": "slow" }, ""),
    frameOf({ ":message-type": "exception", ":exception-type": "throttlingException" }, "no JSON"),
  ];
  assert.deepEqual(
    [...new EventStreamParser().push(Buffer.concat(frames))],
    [
      { event: "metadata", data: "{}" },
      { event: "error", data: '{"type":"throttled","message":"slow"}' },
      { event: "error", data: '{"type":"throttlingException","message":"no JSON"}' },
    ],
  );
});
