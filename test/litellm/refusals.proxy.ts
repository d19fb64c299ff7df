/** What the providers behind a real LiteLLM proxy refuse, as a client of Parley is told of it. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { askOnce, startLiteLlmUpstream, weatherProject } from "../support/litellm-agent.ts";
import type { LiteLlm } from "../support/litellm-proxy.ts";
import { openLifetime, pythonVersion } from "../support/litellm-proxy.ts";
import { fixture, jsonReply, type UpstreamServer } from "../support/upstream-server.ts";

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

/** As Anthropic refuses: https://platform.claude.com/docs/en/api/errors */
const anthropic = (status: number, type: string, message: string) =>
  jsonReply(status, { type: "error", error: { type, message } });

/** As OpenAI refuses: https://platform.openai.com/docs/guides/error-codes */
const openai = (status: number, type: string, code: string, message: string) =>
  jsonReply(status, { error: { message, type, param: null, code } });

/** As Google refuses: https://cloud.google.com/apis/design/errors */
const google = (code: number, status: string, message: string) => jsonReply(code, { error: { code, message, status } });

/** Each is asked "Hi", with the answers of its provider and what the client learns. */
const FAILURES = [
  {
    model: "claude",
    title: "a rate limit, tried again",
    replies: Array(3).fill(anthropic(429, "rate_limit_error", "slow down")),
    expected: { status: 502, code: "provider_rate_limited" },
  },
  {
    model: "claude",
    title: "a conversation that is too long",
    replies: [anthropic(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000")],
    expected: { status: 400, code: "context_too_long" },
  },
  {
    model: "claude",
    title: "a key of the provider that is refused",
    replies: [anthropic(401, "authentication_error", "invalid x-api-key")],
    expected: { status: 502, code: "provider_auth" },
  },
  {
    model: "gpt",
    title: "a rate limit, tried again",
    replies: Array(3).fill(openai(429, "requests", "rate_limit_exceeded", "Rate limit reached for gpt-4o")),
    expected: { status: 502, code: "provider_rate_limited" },
  },
  {
    model: "gpt",
    title: "a conversation that is too long",
    replies: [
      openai(
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
      ),
    ],
    expected: { status: 400, code: "context_too_long" },
  },
  {
    model: "gpt-responses",
    title: "a key of the provider that is refused",
    replies: [openai(401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: mock.")],
    expected: { status: 502, code: "provider_auth" },
  },
  {
    model: "vertex",
    title: "a quota, tried again",
    replies: Array(3).fill(google(429, "RESOURCE_EXHAUSTED", "Resource exhausted.")),
    expected: { status: 502, code: "provider_rate_limited" },
  },
  {
    model: "vertex",
    title: "an account without the role",
    replies: [google(403, "PERMISSION_DENIED", "Permission denied on resource project acme.")],
    expected: { status: 502, code: "provider_auth" },
  },
  {
    model: "gemini",
    title: "a conversation that is too long",
    replies: [
      google(
        400,
        "INVALID_ARGUMENT",
        "The input token count (1050000) exceeds the maximum number of tokens allowed (1048576).",
      ),
    ],
    expected: { status: 400, code: "context_too_long" },
  },
  {
    model: "bedrock",
    title: "a throttled account, tried again",
    replies: Array(3).fill(
      jsonReply(
        429,
        { message: "Too many requests, please wait before trying again." },
        { "x-amzn-errortype": "ThrottlingException" },
      ),
    ),
    expected: { status: 502, code: "provider_rate_limited" },
  },
  {
    model: "ollama",
    title: "a model that was not pulled",
    replies: [jsonReply(404, { error: "model 'qwen3-vl' not found" })],
    expected: { status: 502, code: "provider_error" },
  },
];

for (const { model, title, replies, expected } of FAILURES) {
  test(`${model}: a refusal keeps its code through LiteLLM: ${title}`, { skip }, async (t) => {
    const from = upstream.calls.length;
    upstream.reply(...replies);
    const project = weatherProject(t, model, {});
    const { status, last } = await askOnce(project, litellm, "json", { message: "Hi" });
    assert.deepEqual({ status, code: last.type === "error" && last.code }, expected);
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
 * Only a connection that breaks: where Anthropic's stream merely ends early, LiteLLM makes up a
 * `finish_reason` of "stop", and nobody after it can tell.
 */
test("claude: a stream that breaks off ends in an error, not in a short answer", { skip }, async (t) => {
  upstream.reply({ body: [fixture("anthropic/cut")], end: "cut" });
  const project = weatherProject(t, "claude");
  const { last } = await askOnce(project, litellm, "sse", { message: "Hi" });
  assert.ok(last.type === "error" && last.code === "provider_error");
});
