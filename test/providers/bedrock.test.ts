import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReceivedFile } from "../../server/protocol/attachments.ts";
import type { AssistantMessage, HistoryMessage } from "../../server/protocol/chat.ts";
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

// Unusual reasoning on Bedrock: in tags, after an interruption, and where it is rejected.

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

/** The block kinds of each message of a request. */
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

// The frames of Bedrock's stream: cut off, broken, or invalid.

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
    // In two pieces, because a length may be split anywhere.
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

// Any history, with its files, in the form of the Converse API.

const PDF = "JVBERi0=";
const pdf = (name: string): ReceivedFile => ({
  type: "file",
  name,
  mime_type: "application/pdf",
  url: `data:application/pdf;base64,${PDF}`,
});

/** The request for this conversation. */
async function sent(start: Parameters<typeof open>[1], model?: string) {
  const { error, calls } = await askOnce(
    (upstream) => bedrock(upstream, model ? { model } : {}),
    stream("text"),
    start,
  );
  assert.equal(error, undefined);
  return calls[0]?.json;
}

const after = (...conversation_history: HistoryMessage[]) => ({ state: { conversation_history } });

test("images and a PDF travel as bytes, each with its format", async () => {
  const image = (mime_type: "image/png" | "image/jpeg" | "image/gif" | "image/webp") =>
    ({ type: "image", name: "a", mime_type, url: `data:${mime_type};base64,iVBORw0=` }) as const;
  const { messages } = await sent({
    message: "What is this?",
    attachments: [
      image("image/png"),
      image("image/jpeg"),
      image("image/gif"),
      image("image/webp"),
      pdf("Angebot für Müller_(v2).pdf"),
    ],
  });
  const block = (format: string) => ({ image: { format, source: { bytes: "iVBORw0=" } } });
  assert.deepEqual(messages[0].content, [
    { text: "What is this?" },
    block("png"),
    block("jpeg"),
    block("gif"),
    block("webp"),
    { document: { format: "pdf", name: "Angebot fur Muller (v2)", source: { bytes: PDF } } },
  ]);
});

test("document names are ones that the API takes, and no two are the same", async () => {
  const files = ["a.pdf", "a.PDF", "分기보고서.pdf", "John's  report,\t2026.pdf", `${"x".repeat(300)}.pdf`];
  const { messages } = await sent({ message: "Compare", attachments: files.map(pdf) });
  const names = messages[0].content.slice(1).map((block: { document: { name: string } }) => block.document.name);
  assert.deepEqual(names, ["a", "a (2)", "document", "John s report 2026", "x".repeat(190)]);
});

test("a PDF without a word beside it gets a text, which the API demands; an image needs none", async () => {
  const { messages } = await sent({ message: "", attachments: [pdf("a.pdf")] });
  assert.deepEqual(messages[0].content[0], { text: "(no text)" });
  const url = "data:image/png;base64,iVBORw0=";
  const image: ReceivedFile = { type: "image", name: "a", mime_type: "image/png", url };
  const other = await sent({ message: "", attachments: [image] });
  assert.deepEqual(Object.keys(other.messages[0].content[0]), ["image"]);
});

test("a sixth PDF in one message is refused in words, before the call", async () => {
  await using upstream = await startUpstream();
  const attachments = ["1", "2", "3", "4", "5", "6"].map(pdf);
  const failure = failureOf(await ask(open(await bedrock(upstream), { attachments })));
  assert.equal(failure.message, "The assistant takes at most 5 PDF files in one message.");
  assert.equal(failure.code, "invalid_request");
  assert.equal(upstream.calls.length, 0);
});

test("of the PDFs of a whole conversation the newest five go, and the others are named", async () => {
  const file = (filename: string) =>
    ({ type: "file", file: { filename, file_data: `data:application/pdf;base64,${PDF}` } }) as const;
  const { messages } = await sent({
    ...after(
      { role: "user", content: [{ type: "text", text: "Read" }, file("1.pdf"), file("2.pdf")] },
      { role: "assistant", content: "Done" },
    ),
    attachments: ["3", "4", "5", "6"].map(pdf),
  });
  assert.deepEqual(messages[0].content.slice(1), [
    { text: "[1.pdf (PDF) was attached here earlier and is no longer included]" },
    { document: { format: "pdf", name: "2", source: { bytes: PDF } } },
  ]);
  assert.equal(messages[2].content.length, 5);
});

test("messages of one side are joined, and blank ones are left out", async () => {
  const { messages } = await sent({
    ...after(
      { role: "assistant", content: "Welcome" },
      { role: "user", content: "One" },
      { role: "assistant", content: " " },
      { role: "assistant", content: null },
      { role: "user", content: [{ type: "text", text: "Two" }] },
      { role: "user", content: [] },
    ),
    message: "  ",
  });
  assert.deepEqual(messages, [
    { role: "user", content: [{ text: "(no text)" }] },
    { role: "assistant", content: [{ text: "Welcome" }] },
    { role: "user", content: [{ text: "One" }, { text: "Two" }, { text: "(no text)" }, { text: "(no text)" }] },
  ]);
});

const call = (id: string, name = "get_weather", written = "{}") => ({
  id,
  type: "function" as const,
  function: { name, arguments: written },
});
const CALLED: AssistantMessage = { role: "assistant", content: null, tool_calls: [call("a")] };

test("reasoning of earlier messages goes to Claude alone: other models would refuse another's signature", async () => {
  const extra = {
    thinking_blocks: [
      { type: "thinking", thinking: "Hm", signature: "of Gemini" },
      { type: "redacted_thinking", data: "AAAA" },
    ],
    reasoning_content: "Hm",
    anthropic_layout: ["thinking", "tool_use"],
  };
  const history = after(
    { role: "user", content: "Weather?" },
    { ...CALLED, ...extra, tool_calls: [{ ...call("a"), extra_content: { google: {} } }] },
    { role: "tool", tool_call_id: "a", content: "mild" },
    { role: "assistant", content: "Mild.", ...extra },
  );
  const thoughts = [
    { reasoningContent: { reasoningText: { text: "Hm", signature: "of Gemini" } } },
    { reasoningContent: { redactedContent: "AAAA" } },
  ];
  for (const [model, reasoning] of [
    ["us.amazon.nova-2-lite-v1:0", []],
    ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", thoughts],
  ] as const) {
    const { messages } = await sent(history, model);
    const toolUse = { toolUseId: "a", name: "get_weather", input: {} };
    assert.deepEqual(messages[1].content, [...reasoning, { toolUse }]);
    assert.deepEqual(messages[3].content, [...reasoning, { text: "Mild." }]);
  }
});

test("ids, names and arguments of other providers' calls become ones that the API takes", async () => {
  const long = "call_".padEnd(90, "x");
  const { messages } = await sent(
    after(
      { role: "user", content: "Go" },
      {
        role: "assistant",
        content: null,
        tool_calls: [call(long, "dotted.name", "[1]"), call("0", "", '{"cut'), call("b c")],
      },
      { role: "tool", tool_call_id: "b c", content: "third" },
      { role: "tool", tool_call_id: long, content: "first" },
      { role: "tool", tool_call_id: "0", content: "second" },
      { role: "assistant", content: null, tool_calls: [call("0")] },
      { role: "tool", tool_call_id: "0", content: "fourth" },
    ),
  );
  const uses = messages
    .flatMap((message: { content: { toolUse?: unknown }[] }) => message.content)
    .flatMap((block: { toolUse?: unknown }) => block.toolUse ?? []);
  assert.deepEqual(uses, [
    { toolUseId: "call00000", name: "dotted_name", input: { unparsed_arguments: "[1]" } },
    { toolUseId: "0", name: "_", input: { unparsed_arguments: '{"cut' } },
    { toolUseId: "call00002", name: "get_weather", input: {} },
    { toolUseId: "call00003", name: "get_weather", input: {} },
  ]);
  const answers = [...messages[2].content, ...messages[4].content]
    .flatMap((block) => block.toolResult ?? [])
    .map((result) => [result.toolUseId, result.content[0].text]);
  assert.deepEqual(answers, [
    ["call00002", "third"],
    ["call00000", "first"],
    ["0", "second"],
    ["call00003", "fourth"],
  ]);
});

for (const [model, id] of [
  ["mistral.mistral-large-2407-v1:0", "call00000"],
  ["moonshot.kimi-k2-thinking", "functions.get_weather:1"],
  ["us.amazon.nova-2-lite-v1:0", "call00000"],
] as const) {
  test(`${model} is sent the id functions.get_weather:1 as ${id}`, async () => {
    const { messages } = await sent(
      after(
        { role: "user", content: "Go" },
        { ...CALLED, tool_calls: [call("functions.get_weather:1")] },
        { role: "tool", tool_call_id: "functions.get_weather:1", content: "closed", is_error: true },
      ),
      model,
    );
    assert.equal(messages[1].content[0].toolUse.toolUseId, id);
    const { toolUseId, status, content } = messages[2].content[0].toolResult;
    assert.equal(toolUseId, id);
    // Only Claude and Nova support the field.
    const knowsStatus = model.includes("nova");
    assert.equal(status, knowsStatus ? "error" : undefined);
    assert.deepEqual(content, [{ text: knowsStatus ? "closed" : "Error: closed" }]);
  });
}

test("a good result that begins with the word Error is no failure to the model", async () => {
  const { messages } = await sent(
    after({ role: "user", content: "Go" }, CALLED, { role: "tool", tool_call_id: "a", content: "Error: a play" }),
  );
  const { toolResult } = messages[2].content[0];
  assert.deepEqual(toolResult, { toolUseId: "a", content: [{ text: "Error: a play" }] });
});

test("an agent without tools still declares those of the history, which are refused otherwise", async () => {
  const { toolConfig } = await sent(
    after({ role: "user", content: "Go" }, CALLED, {
      role: "tool",
      tool_call_id: "a",
      content: "Cancelled: the run ended before this call was finished.",
    }),
  );
  assert.deepEqual(
    toolConfig.tools.map(({ toolSpec }: { toolSpec: { name: string } }) => toolSpec.name),
    ["get_weather"],
  );
});
