/**
 * Parley's command and a real LiteLLM proxy, with streams from the providers' documentation for what aimock does not send, such
 * as errors. aimock's Gemini and Bedrock do not sign thinking, and its Ollama names it differently.
 */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fixtureFrames, frames } from "../support/bedrock.ts";
import { askOnce, seen, startLiteLlmUpstream, weatherProject } from "../support/litellm-agent.ts";
import { type LiteLlm, openLifetime, pythonVersion } from "../support/litellm-proxy.ts";
import {
  eventStream,
  fixture,
  jsonReply,
  type UpstreamReply,
  type UpstreamServer,
} from "../support/upstream-server.ts";

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

/** The requests to the provider, starting with this number. */
const bodies = (from: number) => upstream.calls.slice(from).map(({ json }) => json);

/** A message with a call, and one that continues after a restart; returns the events and usage of both. */
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
  test(`${name}: the signature of a call and of an answer come back in their places, also after a restart`, {
    skip,
  }, async (t) => {
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
    assert.deepEqual([usage?.input_tokens, usage?.output_tokens], [20, 14]);
    const [, loop, next] = bodies(from);
    const called = loop.contents[1];
    assert.equal(called.role, "model");
    const call = called.parts.find((part: object) => "function_call" in part);
    assert.equal(call.thoughtSignature, "Q0FMTA==");
    assert.deepEqual(next.contents[1], called);
    assert.deepEqual(next.contents[3].parts, [{ text: "Mild.", thoughtSignature: "VEVYVA==" }]);
  });
}

/** LiteLLM streams no reasoning items, so none can be sent back: OpenAI then reasons again. */
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
  assert.deepEqual([usage?.input_tokens, usage?.output_tokens], [117, 53]);
  const [first, loop, next] = bodies(from);
  assert.deepEqual(first.reasoning, { effort: "low", summary: "detailed" });
  const types = ["message", "function_call", "function_call"];
  const results = ["function_call_output", "function_call_output"];
  const typesOf = ({ input }: { input: { type: string }[] }) => input.map(({ type }) => type);
  assert.deepEqual(typesOf(loop), [...types, ...results]);
  assert.deepEqual(next.input.slice(0, loop.input.length), loop.input);
});

test("bedrock: signed thinking comes back verbatim, also after a restart", { skip }, async (t) => {
  // LiteLLM has no field for redacted thinking in Converse requests and omits it.
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
  assert.deepEqual([usage?.input_tokens, usage?.output_tokens], [20, 14]);
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
  // Chat Completions cannot express the order of thinking and text; Anthropic requires the thinking first.
  assert.deepEqual(loop.messages[1].content.filter(isThinking), [
    { type: "thinking", thinking: "First Lima.", signature: "c2lnMQ==" },
    { type: "thinking", thinking: "Then Oslo.", signature: "c2lnMg==" },
  ]);
  assert.ok(isThinking(loop.messages[1].content[0]));
  assert.deepEqual(next.messages[1], loop.messages[1]);
});

// Errors of providers behind the proxy, as clients of Parley get them.

/** Anthropic's errors: https://platform.claude.com/docs/en/api/errors */
const anthropic = (status: number, type: string, message: string) =>
  jsonReply(status, { type: "error", error: { type, message } });

/** OpenAI's errors: https://platform.openai.com/docs/guides/error-codes */
const openai = (status: number, type: string, code: string, message: string) =>
  jsonReply(status, { error: { message, type, param: null, code } });

/** Google's errors: https://cloud.google.com/apis/design/errors */
const google = (code: number, status: string, message: string) => jsonReply(code, { error: { code, message, status } });

/** Each model gets "Hi": a title, the status and code that the client gets, and the provider's responses. */
const FAILURES: [model: string, title: string, status: number, code: string, replies: UpstreamReply[]][] = [
  [
    "claude",
    "a rate limit, tried again",
    502,
    "provider_rate_limited",
    Array(3).fill(anthropic(429, "rate_limit_error", "slow down")),
  ],
  [
    "claude",
    "a conversation that is too long",
    400,
    "context_too_long",
    [anthropic(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000")],
  ],
  [
    "claude",
    "a key of the provider that is refused",
    502,
    "provider_auth",
    [anthropic(401, "authentication_error", "invalid x-api-key")],
  ],
  [
    "gpt",
    "a rate limit, tried again",
    502,
    "provider_rate_limited",
    Array(3).fill(openai(429, "requests", "rate_limit_exceeded", "Rate limit reached for gpt-4o")),
  ],
  [
    "gpt",
    "a conversation that is too long",
    400,
    "context_too_long",
    [
      openai(
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
      ),
    ],
  ],
  [
    "gpt-responses",
    "a key of the provider that is refused",
    502,
    "provider_auth",
    [openai(401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: mock.")],
  ],
  [
    "vertex",
    "a quota, tried again",
    502,
    "provider_rate_limited",
    Array(3).fill(google(429, "RESOURCE_EXHAUSTED", "Resource exhausted.")),
  ],
  [
    "vertex",
    "an account without the role",
    502,
    "provider_auth",
    [google(403, "PERMISSION_DENIED", "Permission denied on resource project acme.")],
  ],
  [
    "gemini",
    "a conversation that is too long",
    400,
    "context_too_long",
    [
      google(
        400,
        "INVALID_ARGUMENT",
        "The input token count (1050000) exceeds the maximum number of tokens allowed (1048576).",
      ),
    ],
  ],
  [
    "bedrock",
    "a throttled account, tried again",
    502,
    "provider_rate_limited",
    Array(3).fill(
      jsonReply(
        429,
        { message: "Too many requests, please wait before trying again." },
        { "x-amzn-errortype": "ThrottlingException" },
      ),
    ),
  ],
  [
    "ollama",
    "a model that was not pulled",
    502,
    "provider_error",
    [jsonReply(404, { error: "model 'qwen3-vl' not found" })],
  ],
];

for (const [model, title, status, code, replies] of FAILURES) {
  test(`${model}: a refusal keeps its code through LiteLLM: ${title}`, { skip }, async (t) => {
    const from = upstream.calls.length;
    upstream.reply(...replies);
    const answer = await askOnce(weatherProject(t, model, {}), litellm, "json", { message: "Hi" });
    assert.deepEqual([answer.status, answer.last.type === "error" && answer.last.code], [status, code]);
    assert.equal(upstream.calls.length - from, replies.length);
  });
}

test("gpt: a setting that LiteLLM refuses for the model is a mistake of the set-up, not of the client", {
  skip,
}, async (t) => {
  const from = upstream.calls.length;
  const project = weatherProject(t, "gpt", { reasoningEffort: "low" });
  const { status, last } = await askOnce(project, litellm, "json", { message: "Hi" });
  assert.equal(status, 502);
  assert.ok(last.type === "error" && last.code === "provider_error");
  assert.match(last.data, /settings of this agent/);
  assert.equal(upstream.calls.length, from);
});

/**
 * Tests only a broken connection: if Anthropic's stream merely ends early, LiteLLM makes up the `finish_reason` "stop",
 * so that nothing can be detected.
 */
test("claude: a stream that breaks off ends in an error, not in a short answer", { skip }, async (t) => {
  upstream.reply({ body: [fixture("anthropic/cut")], end: "cut" });
  const project = weatherProject(t, "claude");
  const { last } = await askOnce(project, litellm, "sse", { message: "Hi" });
  assert.ok(last.type === "error" && last.code === "provider_error");
});
