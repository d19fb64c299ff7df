/** Reasoning on Bedrock beside the usual way: in tags, after an interruption, and where it is refused. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryMessage } from "../../server/protocol/chat.ts";
import { bedrock, type Frame, frames, refuse, stream } from "../support/bedrock.ts";
import { historyOf, WEATHER } from "../support/chat-servers.ts";
import { ask, failureOf, open, said } from "../support/upstream-conversation.ts";
import { startUpstream, type UpstreamServer } from "../support/upstream-server.ts";

const text = (contentBlockIndex: number, ...pieces: string[]): Frame[] => [
  ...pieces.map((piece) => ({ contentBlockDelta: { contentBlockIndex, delta: { text: piece } } })),
  { contentBlockStop: { contentBlockIndex } },
];
const use = (contentBlockIndex: number, toolUseId: string): Frame[] => [
  {
    contentBlockStart: {
      contentBlockIndex,
      start: { toolUse: { toolUseId, name: "get_weather" } },
    },
  },
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

test("what the user says after an interrupted call is still of its work: its reasoning goes back", async () => {
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
const FOREIGN = refuse(
  400,
  "ValidationException",
  "The model returned the following errors: messages.1.content.0: Invalid `signature` in `thinking` block",
);
const MISSING = refuse(
  400,
  "ValidationException",
  "The model returned the following errors: messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
);

test("reasoning that the model refuses to take back is left out, and thinking too where it is then missed", async () => {
  await using upstream = await startUpstream(FOREIGN, MISSING, stream("text"));
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

test("a refusal of reasoning where none was sent is told, not tried again", async () => {
  await using upstream = await startUpstream(FOREIGN);
  assert.equal(failureOf(await ask(open(await bedrock(upstream)))).code, "provider_error");
  assert.equal(upstream.calls.length, 1);
});
