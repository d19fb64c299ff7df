/**
 * Parley's command and a real LiteLLM proxy before streams written as the providers' documentation has them:
 * what aimock does not send. Its Gemini and Bedrock sign no thinking, its Ollama names thinking otherwise.
 */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fixtureFrames, frames } from "../support/bedrock.ts";
import { askOnce, seen, startLiteLlmUpstream, weatherProject } from "../support/litellm-agent.ts";
import type { LiteLlm } from "../support/litellm-proxy.ts";
import { openLifetime, pythonVersion } from "../support/litellm-proxy.ts";
import type { Cleanup } from "../support/start-server.ts";
import { eventStream, fixture, type UpstreamReply, type UpstreamServer } from "../support/upstream-server.ts";

const version = await pythonVersion();
const skip = version === undefined && "LiteLLM needs python3, and there is none on this machine";

const lifetime = openLifetime();
let litellm: LiteLlm;
let upstream: UpstreamServer;

before(async () => {
  if (version === undefined) return;
  ({ litellm, upstream } = await startLiteLlmUpstream(lifetime, version));
});

after(() => lifetime.end());

/** https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse */
function gemini(...answers: readonly (readonly object[])[]): UpstreamReply {
  const chunks = answers.map((parts) => ({ candidates: [{ content: { parts, role: "model" } }] }));
  const end = {
    candidates: [{ content: { parts: [{ text: "" }], role: "model" }, finishReason: "STOP" }],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 7, totalTokenCount: 17 },
  };
  return { body: [eventStream(...chunks, end)] };
}

/** https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion */
function ollama(...messages: readonly object[]): UpstreamReply {
  const line = (message: object, rest: object) =>
    `${JSON.stringify({ model: "qwen3-vl", created_at: "2025-10-26T17:15:24.097767Z", message: { role: "assistant", content: "", ...message }, ...rest })}\n`;
  const counts = { done: true, done_reason: "stop", prompt_eval_count: 10, eval_count: 7 };
  return {
    headers: { "content-type": "application/x-ndjson" },
    body: [...messages.map((message) => line(message, { done: false })), line({}, counts)],
  };
}

/** The requests that reached the provider since the given number of them. */
const bodies = (from: number) => upstream.calls.slice(from).map(({ json }) => json);

/** One message with a call, one that continues it after a restart; returns what both showed and used. */
async function converse(project: string) {
  const first = await askOnce(project, litellm, "sse", { message: "Weather in Lima?" });
  assert.ok(first.last.type === "done", first.last.data);
  const { state, usage } = first.last;
  const second = await askOnce(project, litellm, "socket", { message: "Thanks", state });
  return { seen: [seen(first), seen(second)], usage };
}

const CALL = ["tool_call", "get_weather", { city: "Lima" }];
const RESULT = ["tool_result", "It is mild in Lima.", "completed"];
const ended = (text: string) => [
  ["token", text],
  ["done", text],
];

for (const name of ["gemini", "vertex"]) {
  test(
    `${name}: the signature of a call and of an answer come back in their places, also after a restart`,
    { skip },
    (t) => signaturesComeBack(t, name),
  );
}

async function signaturesComeBack(t: Cleanup, name: string): Promise<void> {
  const args = { city: "Lima" };
  upstream.reply(
    gemini(
      [{ text: "I look.", thought: true }],
      [{ functionCall: { name: "get_weather", args }, thoughtSignature: "Q0FMTA==" }],
    ),
    gemini([{ text: "Mild." }], [{ text: "", thoughtSignature: "VEVYVA==" }]),
    gemini([{ text: "Welcome." }]),
  );
  const from = upstream.calls.length;
  const { seen: shown, usage } = await converse(weatherProject(t, name));
  assert.deepEqual(shown, [[["thinking", "I look."], CALL, RESULT, ...ended("Mild.")], ended("Welcome.")]);
  assert.deepEqual(usage, { input_tokens: 20, output_tokens: 14 });
  const [, loop, next] = bodies(from);
  const called = loop.contents[1];
  assert.equal(called.role, "model");
  const call = called.parts.find((part: object) => "function_call" in part);
  assert.equal(call.thoughtSignature, "Q0FMTA==");
  assert.deepEqual(next.contents[1], called);
  assert.deepEqual(next.contents[3].parts, [{ text: "Mild.", thoughtSignature: "VEVYVA==" }]);
}

/** LiteLLM streams no reasoning items, so that none can come back: OpenAI then reasons anew. */
test("gpt-responses: summaries are asked for and shown, and calls come back without their reasoning", {
  skip,
}, async (t) => {
  upstream.reply(
    { body: [fixture("responses/reasoning-and-two-calls")] },
    { body: [fixture("responses/text")] },
    { body: [fixture("responses/text")] },
  );
  const from = upstream.calls.length;
  const { seen: shown, usage } = await converse(weatherProject(t, "gpt-responses"));
  assert.deepEqual(shown, [
    [
      ["thinking", "**Planning**\n\nTwo cities.**Calling**"],
      CALL,
      ["tool_call", "get_weather", { city: "Oslo" }],
      RESULT,
      ["tool_result", "It is cold in Oslo.", "completed"],
      ...ended("Grüß Gott 👋!"),
    ],
    ended("Grüß Gott 👋!"),
  ]);
  assert.deepEqual(usage, { input_tokens: 117, output_tokens: 53 });
  const [first, loop, next] = bodies(from);
  assert.deepEqual(first.reasoning, { effort: "low", summary: "detailed" });
  const types = ["message", "function_call", "function_call"];
  const results = ["function_call_output", "function_call_output"];
  const typesOf = ({ input }: { input: { type: string }[] }) => input.map(({ type }) => type);
  assert.deepEqual(typesOf(loop), [...types, ...results]);
  assert.deepEqual(next.input.slice(0, loop.input.length), loop.input);
});

test("bedrock: signed thinking comes back verbatim, also after a restart", { skip }, async (t) => {
  // LiteLLM has no field for redacted thinking on the way to Converse and leaves it out.
  const turn = fixtureFrames("claude-thinking-and-call");
  upstream.reply(frames(...turn), frames(...fixtureFrames("text")), frames(...fixtureFrames("text")));
  const from = upstream.calls.length;
  const { seen: shown } = await converse(weatherProject(t, "bedrock"));
  const thought = "Lima, then. I ask the tool.";
  assert.deepEqual(shown, [
    [["thinking", thought], ["token", "Let me see."], CALL, RESULT, ...ended("Hello 👋")],
    ended("Hello 👋"),
  ]);
  const [, loop, next] = bodies(from);
  const reasoningText = { text: thought, signature: "EqQBCgIYAhIkMzQ=" };
  assert.deepEqual(loop.messages[1].content[0], { reasoningContent: { reasoningText } });
  assert.deepEqual(next.messages[1], loop.messages[1]);
});

test("ollama: thinking is shown, counted and comes back with its calls", { skip }, async (t) => {
  const call = { function: { index: 0, name: "get_weather", arguments: { city: "Lima" } } };
  upstream.reply(
    ollama({ thinking: "I " }, { thinking: "look." }, { tool_calls: [{ id: "call_1", ...call }] }),
    ollama({ content: "Mild." }),
    ollama({ content: "Welcome." }),
  );
  const from = upstream.calls.length;
  const { seen: shown, usage } = await converse(weatherProject(t, "ollama"));
  assert.deepEqual(shown, [[["thinking", "I look."], CALL, RESULT, ...ended("Mild.")], ended("Welcome.")]);
  assert.deepEqual(usage, { input_tokens: 20, output_tokens: 14 });
  const [, loop, next] = bodies(from);
  assert.equal(loop.messages[2].thinking, "I look.");
  assert.deepEqual(next.messages[2], loop.messages[2]);
});

test("claude: interleaved thoughts keep their own signatures, also after a restart", { skip }, async (t) => {
  upstream.reply(
    { body: [fixture("anthropic/interleaved-thinking")] },
    { body: [fixture("anthropic/text")] },
    { body: [fixture("anthropic/text")] },
  );
  const from = upstream.calls.length;
  const { seen: shown } = await converse(weatherProject(t, "claude"));
  assert.deepEqual(shown[1], ended("Hello 👋"));
  const [, loop, next] = bodies(from);
  const isThinking = ({ type }: { type: string }) => type === "thinking";
  // Chat Completions have no place for the order of thoughts and text; Anthropic wants the thoughts first.
  assert.deepEqual(loop.messages[1].content.filter(isThinking), [
    { type: "thinking", thinking: "First Lima.", signature: "c2lnMQ==" },
    { type: "thinking", thinking: "Then Oslo.", signature: "c2lnMg==" },
  ]);
  assert.ok(isThinking(loop.messages[1].content[0]));
  assert.deepEqual(next.messages[1], loop.messages[1]);
});
