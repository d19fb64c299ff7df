/**
 * Every way in which a provider rejects a request or reports a failure, as one of our codes, and which are retried. Visitors
 * see nothing about a provider, which `failureOf` checks.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { readRetryAfter } from "../../server/providers/failures.ts";
import type { Provider } from "../../server/providers/provider.ts";
import { claude, stream as claudeStream } from "../support/anthropic.ts";
import { bedrock, stream as bedrockStream, type Frame, fixtureFrames, frames, refuse } from "../support/bedrock.ts";
import { serve, stream } from "../support/chat-servers.ts";
import { post } from "../support/chat-transports.ts";
import { startServer } from "../support/start-server.ts";
import { ask, askOnce, chatProvider, failureOf, open, said } from "../support/upstream-conversation.ts";
import { CHAT_COMPLETIONS, RESPONSES } from "../support/upstream-replies.ts";
import {
  eventStream,
  jsonReply,
  startUpstream,
  type UpstreamReply,
  type UpstreamServer,
} from "../support/upstream-server.ts";

const gemini = (upstream: UpstreamServer) =>
  serve("gemini/gemini-2.5-flash", { GEMINI_API_KEY: "AIza", GEMINI_BASE_URL: upstream.url });

/** https://platform.claude.com/docs/en/api/errors */
const anthropicRefusal = (status: number, type: string, message: string) =>
  jsonReply(status, { type: "error", error: { type, message }, request_id: "req_1" });

const anthropicInvalid = (message: string) => anthropicRefusal(400, "invalid_request_error", message);
const bedrockInvalid = (message: string) => refuse(400, "ValidationException", message);

/** https://cloud.google.com/apis/design/errors, inside the list that the Gemini API adds. */
const googleRefusal = (code: number, status: string, message: string, details?: object[]) =>
  jsonReply(code, [{ error: { code, message, status, ...(details && { details }) } }]);

interface Row {
  provider: keyof typeof PROVIDERS;
  reply: UpstreamReply;
  code: string;
  /** 3 if a retry may help. */
  tries: 1 | 3;
  detail: RegExp;
}

const PROVIDERS = {
  chat: (upstream: UpstreamServer) => chatProvider(upstream),
  anthropic: (upstream: UpstreamServer) => claude(upstream),
  bedrock: (upstream: UpstreamServer) => bedrock(upstream),
  gemini,
} satisfies Record<string, (upstream: UpstreamServer) => Provider | Promise<Provider>>;

/** Replies with the same meaning. */
function refused(
  provider: Row["provider"],
  code: string,
  tries: Row["tries"],
  detail: RegExp,
  replies: readonly UpstreamReply[],
): Row[] {
  return replies.map((reply) => ({ provider, reply, code, tries, detail }));
}

const REFUSALS: readonly Row[] = [
  ...refused("chat", "invalid_request", 1, /does not take this message/, [
    jsonReply(400, { error: { message: "Invalid image", param: "messages[0].content[1]" } }),
  ]),
  ...refused("chat", "invalid_request", 1, /does not take/, [
    jsonReply(400, { object: "error", message: "bad image", type: "BadRequestError", code: 400 }),
    jsonReply(400, [{ error: { code: 400, message: "Bad part", status: "INVALID_ARGUMENT" } }]),
    jsonReply(422, { detail: [{ loc: ["body", "messages"], msg: "field required" }] }),
  ]),
  ...refused("chat", "context_too_long", 1, /too long/, [
    jsonReply(400, { error: { code: "context_length_exceeded" } }),
    jsonReply(400, { error: { message: "This model's maximum context length is 4096 tokens." } }),
    jsonReply(400, { error: { type: "exceed_context_size_error", code: 400 } }),
    jsonReply(400, [{ error: { message: "The input token count (9) exceeds the maximum number of tokens" } }]),
    jsonReply(400, { error: { message: "litellm.BadRequestError: BedrockException - Input is too long" } }),
    jsonReply(400, { error: { message: "litellm.ContextWindowExceededError: too long" } }),
  ]),
  ...refused("chat", "content_filtered", 1, /usage policy/, [
    jsonReply(400, { error: { code: "content_policy_violation" } }),
    jsonReply(400, { error: { code: "content_filter" } }),
    jsonReply(400, { error: { code: "invalid_prompt" } }),
    jsonReply(400, { error: { message: "litellm.ContentPolicyViolationError: AzureException", type: null } }),
  ]),
  ...refused("chat", "provider_error", 1, /settings of this agent/, [
    jsonReply(400, { error: { code: "unknown_parameter", param: "tools[0].strict" } }),
    jsonReply(418, "teapot"),
    jsonReply(400, {
      error: { message: "litellm.UnsupportedParamsError: openai does not support parameters: ['reasoning_effort']" },
    }),
  ]),
  ...refused("chat", "provider_error", 1, /does not know the model/, [
    jsonReply(400, { error: { message: "/chat/completions: Invalid model name passed in model=x" } }),
    jsonReply(404, { error: { code: "model_not_found" } }),
  ]),
  ...refused("chat", "invalid_request", 1, /this large/, [jsonReply(413, "<h1>413 Request Entity Too Large</h1>")]),
  ...refused("chat", "provider_auth", 1, /API key/, [
    jsonReply(401, { error: { message: "Incorrect API key provided: sk-secret" } }),
    jsonReply(400, { error: { type: "no_db_connection", message: "No connected db." } }),
    jsonReply(403, "forbidden"),
  ]),
  ...refused("chat", "provider_rate_limited", 1, /quota/, [
    jsonReply(402, { error: { message: "Insufficient credits" } }),
    jsonReply(429, { error: { code: "insufficient_quota" } }),
  ]),
  ...refused("chat", "provider_error", 1, /base URL/, [jsonReply(404, "404 page not found")]),
  ...refused("chat", "provider_timeout", 3, /took too long/, [
    jsonReply(408, { error: { message: "sk-secret" } }),
    jsonReply(504, { error: { message: "sk-secret" } }),
  ]),
  ...refused("chat", "provider_rate_limited", 3, /too many requests/, [
    jsonReply(429, { error: { message: "sk-secret" } }),
  ]),
  ...refused("chat", "provider_error", 3, /internal error/, [
    jsonReply(500, { error: { message: "sk-secret" } }),
    jsonReply(502, { error: { message: "sk-secret" } }),
  ]),
  ...refused("chat", "provider_overloaded", 3, /overloaded/, [jsonReply(503, { error: { message: "sk-secret" } })]),
  ...refused("anthropic", "provider_auth", 1, /refused the API key/, [
    anthropicRefusal(401, "authentication_error", "invalid x-api-key"),
  ]),
  ...refused("anthropic", "provider_auth", 1, /may not use this model/, [
    anthropicRefusal(403, "permission_error", "no access"),
  ]),
  ...refused("anthropic", "provider_error", 1, /does not know the model/, [
    anthropicRefusal(404, "not_found_error", "model: claude-x"),
  ]),
  ...refused("anthropic", "provider_rate_limited", 1, /quota or credit/, [
    anthropicRefusal(402, "billing_error", "pay"),
    anthropicInvalid("Your credit balance is too low to access the Anthropic API."),
  ]),
  ...refused("anthropic", "invalid_request", 1, /this large/, [
    anthropicRefusal(413, "request_too_large", "Request exceeds 32 MB"),
  ]),
  ...refused("anthropic", "context_too_long", 1, /too long/, [
    anthropicInvalid("prompt is too long: 210000 tokens > 200000 maximum"),
    anthropicInvalid("input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"),
  ]),
  ...refused("anthropic", "invalid_request", 1, /does not take this message/, [
    anthropicInvalid("messages.0.content.1.image.source.base64: image exceeds 5 MB maximum"),
  ]),
  ...refused("anthropic", "provider_error", 1, /settings of this agent/, [
    anthropicInvalid("max_tokens: 200000 > 128000, which is the maximum allowed number of output tokens"),
    anthropicInvalid('"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive".'),
    anthropicInvalid("`temperature` is deprecated for this model."),
  ]),
  ...refused("anthropic", "content_filtered", 1, /usage policy/, [
    anthropicInvalid("Output blocked by content filtering policy"),
  ]),
  ...refused("anthropic", "provider_overloaded", 3, /overloaded/, [
    anthropicRefusal(529, "overloaded_error", "Overloaded"),
  ]),
  ...refused("bedrock", "provider_auth", 1, /refused the credentials/, [
    refuse(403, "AccessDeniedException", "You don't have access to the model"),
    refuse(403, "UnrecognizedClientException", "The security token is invalid"),
    refuse(403, "ExpiredTokenException", "The security token is expired"),
  ]),
  ...refused("bedrock", "provider_error", 1, /does not know the model/, [
    refuse(404, "ResourceNotFoundException", "Could not resolve the model"),
    bedrockInvalid("The provided model identifier is invalid."),
    bedrockInvalid("Invocation of model ID x with on-demand throughput isn’t supported."),
  ]),
  ...refused("bedrock", "context_too_long", 1, /too long/, [
    bedrockInvalid("Input is too long for requested model."),
    bedrockInvalid("Input Tokens Exceeded: Number of input tokens exceeds maximum length."),
    bedrockInvalid("input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000"),
  ]),
  ...refused("bedrock", "content_filtered", 1, /usage policy/, [
    bedrockInvalid("Output blocked by content filtering policy"),
  ]),
  ...refused("bedrock", "invalid_request", 1, /does not take one of the attachments/, [
    bedrockInvalid("This model doesn't support the image content block that you provided."),
  ]),
  ...refused("bedrock", "provider_error", 1, /settings of this agent/, [
    bedrockInvalid("The model returned the following errors: `temperature` is deprecated for this model."),
    bedrockInvalid("This model doesn't support tool use in streaming mode."),
  ]),
  ...refused("bedrock", "invalid_request", 1, /does not take this message/, [
    bedrockInvalid("Something about messages.1"),
  ]),
  ...refused("bedrock", "provider_timeout", 3, /took too long/, [
    refuse(408, "ModelTimeoutException", "The processing time exceeded"),
  ]),
  ...refused("bedrock", "provider_error", 3, /internal error/, [
    refuse(424, "ModelErrorException", "the model failed"),
    refuse(500, "InternalServerException", "Internal error"),
  ]),
  ...refused("bedrock", "provider_rate_limited", 3, /too many requests/, [
    refuse(429, "ThrottlingException", "Too many tokens, please wait before trying again."),
    refuse(400, "ServiceQuotaExceededException", "The number of requests exceeds the service quota."),
  ]),
  ...refused("bedrock", "provider_overloaded", 3, /overloaded/, [
    refuse(429, "ModelNotReadyException", "Model is not ready for inference."),
    refuse(503, "ServiceUnavailableException", "The service isn't currently available."),
  ]),
  ...refused("gemini", "provider_auth", 1, /^Gemini refused the API key/, [
    googleRefusal(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    googleRefusal(403, "PERMISSION_DENIED", "Generative Language API has not been used in project 1"),
  ]),
  ...refused("gemini", "provider_auth", 1, /country/, [
    googleRefusal(400, "FAILED_PRECONDITION", "User location is not supported for the API use."),
  ]),
  ...refused("gemini", "context_too_long", 1, /too long/, [
    googleRefusal(
      400,
      "INVALID_ARGUMENT",
      "The input token count (1300000) exceeds the maximum number of tokens allowed (1048575).",
    ),
  ]),
  ...refused("gemini", "provider_error", 1, /does not know the model/, [
    googleRefusal(404, "NOT_FOUND", "models/gemini-9 is not found for API version v1main"),
  ]),
  ...refused("gemini", "invalid_request", 1, /attachments/, [
    googleRefusal(400, "INVALID_ARGUMENT", "Unable to process input image."),
  ]),
];

/**
 * Error messages of servers, and from reports about them, one per line: some mean that the input is too long, others merely
 * mention tokens, limits or a long prompt.
 */
const WORDS: readonly { from: string; status: number; code: string; body: unknown }[] = readFileSync(
  "test/fixtures/providers/refusals.jsonl",
  "utf8",
)
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line));

for (const { from, status, code, body } of WORDS) {
  const isTooLong = code === "context_too_long";
  test(`${from}: such a refusal is ${code}${isTooLong ? ", in a stream, too" : ""}`, async () => {
    const reply = jsonReply(status, body);
    const replies = isTooLong ? [reply, { body: [eventStream(Object(body))] }] : [[reply, reply, reply]];
    for (const reply of replies) {
      const turn = await askOnce(chatProvider, reply);
      assert.equal(failureOf(turn).code, code);
      if (isTooLong) assert.equal(turn.calls.length, 1);
    }
  });
}

for (const { provider, reply, code, tries, detail } of REFUSALS) {
  const [body = ""] = reply.body ?? [];
  test(`${provider}: ${reply.status} ${String(body).slice(0, 120)} is ${code}, asked ${tries} times`, async () => {
    await using upstream = await startUpstream(reply, reply, reply, { body: [] });
    const failure = failureOf(await ask(open(await PROVIDERS[provider](upstream))));
    assert.equal(failure.code, code);
    if (tries === 3) assert.equal(failure.retryable, true);
    assert.match(failure.detail, detail);
    assert.doesNotMatch(failure.detail, /secret|127\.0\.0\.1|req_1|AIza/);
    assert.equal(upstream.calls.length, tries);
  });
}

test("what only the operator can mend is not to be tried again", async () => {
  for (const status of [401, 402, 404]) {
    const failure = failureOf(await askOnce(chatProvider, jsonReply(status, {})));
    assert.equal(failure.retryable, false);
    assert.match(failure.message, /Please tell the owner of this site\.$/);
  }
});

test("Retry-After of up to 2 seconds is waited for; a longer one is passed on at once", async () => {
  const limited = (seconds: string) => jsonReply(429, {}, { "retry-after": seconds });
  const ok = { body: [eventStream({ choices: [{ delta: { content: "ok" }, finish_reason: "stop" }] })] };
  await using upstream = await startUpstream(limited("2"), ok, limited("3"), ok);
  const waits: number[] = [];
  const clock = { random: () => 0.5, wait: async (ms: number) => void waits.push(ms) };
  const provider = chatProvider(upstream, { clock });
  assert.equal((await ask(open(provider))).error, undefined);
  assert.equal(upstream.calls.length, 2);
  assert.deepEqual(waits, [2125]);
  const failure = failureOf(await ask(open(provider)));
  assert.equal(failure.retryAfter, 3);
  assert.equal(upstream.calls.length, 3);
});

test("a Retry-After of any size is a number of seconds up to a day", async () => {
  const reply = jsonReply(429, {}, { "retry-after": "9".repeat(400) });
  assert.equal(failureOf(await askOnce(chatProvider, reply)).retryAfter, 86_400);
});

test("an overload is passed on with its Retry-After, and 529 means one too", async () => {
  await using upstream = await startUpstream(
    jsonReply(503, { error: { code: "server_is_overloaded" } }, { "retry-after": "20" }),
    jsonReply(529, { type: "error", error: { type: "overloaded_error" } }, { "retry-after": "30" }),
  );
  for (const seconds of [20, 30]) {
    const failure = failureOf(await ask(open(chatProvider(upstream))));
    assert.equal(failure.code, "provider_overloaded");
    assert.equal(failure.retryable, true);
    assert.equal(failure.retryAfter, seconds);
  }
});

test("x-should-retry: false is obeyed", async () => {
  await using upstream = await startUpstream(jsonReply(500, {}, { "x-should-retry": "false" }));
  failureOf(await ask(open(chatProvider(upstream))));
  assert.equal(upstream.calls.length, 1);
});

test("Retry-After is read as seconds, as a date, and in OpenAI's milliseconds", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  const read = (headers: Record<string, string>) => readRetryAfter(new Headers(headers), now);
  assert.equal(read({ "retry-after": "7" }), 7);
  assert.equal(read({ "llm_provider-retry-after": "8" }), 8);
  assert.equal(read({ "retry-after": "Thu, 01 Jan 2026 00:00:30 GMT" }), 30);
  assert.equal(read({ "retry-after": "Wed, 31 Dec 2025 23:59:00 GMT" }), 0);
  assert.equal(read({ "retry-after-ms": "1200", "retry-after": "9" }), 2);
  assert.equal(read({ "retry-after": "soon" }), undefined);
  assert.equal(read({}), undefined);
});

test("the log gets the status and the body; a body of 10 MB is read to 64 KiB", async () => {
  const megabyte = "x".repeat(1_000_000);
  await using upstream = await startUpstream({ status: 400, body: Array(10).fill(megabyte) });
  const { cause } = failureOf(await ask(open(chatProvider(upstream))));
  assert.ok(cause instanceof Error && "body" in cause && typeof cause.body === "string");
  assert.match(cause.message, /HTTP status 400/);
  assert.ok(cause.body.length >= 64 * 1024 && cause.body.length < 1_000_000);
});

for (const [error, code] of [
  [{ code: "429", message: "x" }, "provider_rate_limited"],
  [{ code: 401, message: "x" }, "provider_auth"],
  [{ type: "overloaded_error", message: "x" }, "provider_overloaded"],
  [{ code: "server_is_overloaded", message: "x" }, "provider_overloaded"],
  [{ code: "500", message: "AnthropicException - Overloaded" }, "provider_overloaded"],
  [{ code: "slow_down", message: "x" }, "provider_rate_limited"],
  [{ code: "invalid_prompt", message: "x" }, "content_filtered"],
  [{ code: "image_content_policy_violation", message: "x" }, "content_filtered"],
  [{ type: "invalid_request_error", message: "x" }, "invalid_request"],
  [{ code: "context_length_exceeded", message: "x" }, "context_too_long"],
  ["just a sentence", "provider_error"],
] as const) {
  test(`an error in the stream, ${JSON.stringify(error)}, is ${code}`, async () => {
    const role = { choices: [{ index: 0, delta: { role: "assistant" } }] };
    await using upstream = await startUpstream({ body: [eventStream(role), eventStream({ error })] });
    assert.equal(failureOf(await ask(open(chatProvider(upstream)))).code, code);
    assert.equal(upstream.calls.length, 1);
  });
}

for (const [frame, code] of [
  ['error: {"code":400,"message":"no such grammar","type":"invalid_request_error"}', "invalid_request"],
  ['error: {"code":400,"message":"the request exceeds the available context size, try it"}', "context_too_long"],
  ["event: error\ndata: Internal Server Error", "provider_error"],
  ['data: {"error_type":"rate_limit_error","error_message":"x"}', "provider_rate_limited"],
  ['data: {"error_type":"context_length_exceeded","error_message":"x"}', "context_too_long"],
  ['data: {"error":"Prompt is too long","error_type":"validation"}', "context_too_long"],
  ['data: {"object":"error","message":"x","type":"BadRequestError","code":400}', "invalid_request"],
  ['data: {"object":"error","message":"x","type":"BadRequestError"}', "invalid_request"],
  ['data: {"detail":"Invalid or expired token","code":401}', "provider_auth"],
  ['data: {"detail":[{"loc":["body","messages"],"msg":"field required"}],"code":422}', "invalid_request"],
  ['data: {"detail":[{"loc":["body","store"],"msg":"Extra inputs are not permitted"}],"code":422}', "provider_error"],
  ['data: {"detail":{"error":"Overloaded","code":503}}', "provider_overloaded"],
  ['data: {"code":"Throttling.RateQuota","message":"x","request_id":"1"}', "provider_rate_limited"],
  ['data: {"error_code":429,"error_msg":"x"}', "provider_rate_limited"],
  ['data: {"message":"x","status_code":429}', "provider_rate_limited"],
  ['data: {"code":500,"msg":"x","success":false}', "provider_error"],
] as const) {
  test(`a stream's frame ${frame.slice(0, 80)} is the error that it reports: ${code}`, async () => {
    const half = eventStream({ choices: [{ delta: { content: "Half" } }] });
    const turn = await askOnce(chatProvider, { body: [half, `${frame}\n\n`, "data: [DONE]\n\n"] });
    assert.equal(said(turn), "Half");
    assert.equal(failureOf(turn).code, code);
  });
}

for (const [body, code] of [
  [{ error_type: "rate_limit_error", error_message: "x" }, "provider_rate_limited"],
  [{ detail: "Prompt is too long" }, "context_too_long"],
  [{ object: "error", message: "Prompt is too long", code: 400 }, "context_too_long"],
  [{ error: "Prompt is too long" }, "context_too_long"],
  [{ statusCode: 400, error: "Bad Request", message: "Prompt is too long" }, "context_too_long"],
  [{ error: true, message: "Prompt is too long" }, "context_too_long"],
  [[{ error: { code: 429, message: "x", status: "RESOURCE_EXHAUSTED" } }], "provider_rate_limited"],
] as const) {
  test(`a body of status 200, ${JSON.stringify(body)}, is ${code}, not a wrong base URL`, async () => {
    const reply = jsonReply(200, body);
    assert.equal(failureOf(await askOnce(chatProvider, [reply, reply, reply])).code, code);
  });
}

test("an error as the first event of a stream is tried again where it may pass, as a status would be", async () => {
  const busy = { body: [eventStream({ error: { type: "overloaded_error", message: "x" } })] };
  const wrong = { body: [eventStream({ error: { code: "invalid_prompt", message: "x" } })] };
  const ok = { body: [eventStream({ choices: [{ delta: { content: "ok" }, finish_reason: "stop" }] })] };
  await using upstream = await startUpstream(busy, ok, busy, busy, busy, wrong);
  const provider = chatProvider(upstream);
  assert.equal((await ask(open(provider))).error, undefined);
  assert.equal(failureOf(await ask(open(provider))).code, "provider_overloaded");
  assert.equal(upstream.calls.length, 5);
  assert.equal(failureOf(await ask(open(provider))).code, "content_filtered");
  assert.equal(upstream.calls.length, 6);
});

test("Retry-After is passed on only where waiting helps: a gateway may put it on every refusal", async () => {
  for (const status of [400, 401, 404]) {
    assert.equal(
      failureOf(await askOnce(chatProvider, jsonReply(status, {}, { "retry-after": "9" }))).retryAfter,
      undefined,
    );
  }
});

test("anthropic: overloaded in the middle of an answer is reported after what was said, and not tried again", async () => {
  const turn = await askOnce(claude, claudeStream("overloaded"));
  assert.equal(said(turn), "Hel");
  assert.equal(failureOf(turn).code, "provider_overloaded");
  assert.deepEqual(turn.state, {});
  assert.equal(turn.calls.length, 1);
});

test("anthropic: what is no event of the API is an answer that could not be read", async () => {
  await using upstream = await startUpstream(
    { body: ["event: message_start\ndata: {broken\n\n"] },
    {
      body: [
        'data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a"}}\n\n',
        'data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}\n\n',
      ],
    },
  );
  for (let run = 0; run < 2; run++) {
    assert.match(failureOf(await ask(open(await claude(upstream)))).detail, /could not be read/);
  }
});

const START: Frame = { messageStart: { role: "assistant" } };
const HALF: Frame = { contentBlockDelta: { contentBlockIndex: 0, delta: { text: "Half" } } };

test("bedrock: an exception in place of the first event is tried again, and one that blames the request is not", async () => {
  const throttled = frames({ throttlingException: { message: "Too many requests" } });
  await using upstream = await startUpstream(throttled, throttled, bedrockStream("text"));
  assert.equal(said(await ask(open(await bedrock(upstream)))), "Hello 👋");
  assert.equal(upstream.calls.length, 3);
  upstream.reply(frames({ validationException: { message: "m" } }));
  assert.equal(failureOf(await ask(open(await bedrock(upstream)))).code, "invalid_request");
  assert.equal(upstream.calls.length, 4);
});

test("bedrock: Retry-After is passed on, and a wait that long is not ours to make", async () => {
  await using upstream = await startUpstream(refuse(429, "ThrottlingException", "slow down", { "retry-after": "30" }));
  assert.equal(failureOf(await ask(open(await bedrock(upstream)))).retryAfter, 30);
  assert.equal(upstream.calls.length, 1);
});

test("bedrock: what a user has seen is not asked for again", async () => {
  const turn = await askOnce(bedrock, [bedrockStream("throttled-in-stream"), bedrockStream("text")]);
  assert.equal(said(turn), "Half");
  assert.equal(failureOf(turn).code, "provider_rate_limited");
  assert.equal(turn.calls.length, 1);
});

for (const [name, code] of [
  ["internalServerException", "provider_error"],
  ["modelStreamErrorException", "provider_error"],
  ["modelTimeoutException", "provider_timeout"],
  ["serviceUnavailableException", "provider_overloaded"],
  ["validationException", "invalid_request"],
] as const) {
  test(`bedrock: ${name} in the middle of the stream is ${code}`, async () => {
    assert.equal(failureOf(await askOnce(bedrock, frames(START, HALF, { [name]: { message: "m" } }))).code, code);
  });
}

for (const stopReason of ["malformed_tool_use", "malformed_model_output"]) {
  test(`bedrock: ${stopReason} is a failure that may be tried again`, async () => {
    const answer = fixtureFrames("text").map((frame) =>
      "messageStop" in frame ? { messageStop: { stopReason } } : frame,
    );
    const turn = await askOnce(bedrock, frames(...answer));
    const failure = failureOf(turn);
    assert.match(failure.detail, /The model wrote/);
    assert.equal(failure.retryable, true);
    assert.equal(turn.calls.length, 1, "what was said cannot be taken back");
  });
}

const GROQ = {
  message: "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
  type: "invalid_request_error",
  code: "tool_use_failed",
  failed_generation: '<function=get_weather>{"city": "Lima"',
};
const ROLE = { choices: [{ index: 0, delta: { role: "assistant", content: "" } }] };
const finishedBy = (finish_reason: string) => ({
  body: [eventStream(ROLE, { choices: [{ index: 0, delta: {}, finish_reason }] })],
});

/** Failures caused by the model, which servers mostly blame on the request. */
const MODEL_FAULTS: readonly (readonly [server: string, provider: Row["provider"], reply: UpstreamReply])[] = [
  ["Groq", "chat", jsonReply(400, { error: GROQ })],
  ["Groq in a stream", "chat", { body: [`event: error\n${eventStream({ error: { ...GROQ, status_code: 400 } })}`] }],
  ["Groq after the role", "chat", { body: [eventStream(ROLE, { error: GROQ })] }],
  [
    "Groq's check of the arguments",
    "chat",
    jsonReply(400, {
      error: { message: "tool call validation failed: parameters did not match", type: "invalid_request_error" },
    }),
  ],
  [
    "Groq behind LiteLLM",
    "chat",
    jsonReply(400, {
      error: { message: `litellm.BadRequestError: GroqException - ${JSON.stringify({ error: GROQ })}` },
    }),
  ],
  [
    "Cerebras",
    "chat",
    jsonReply(400, { message: "Failed to generate tool_calls. Tool is not present in the tools list." }),
  ],
  ["Ollama", "chat", jsonReply(500, { error: "error parsing tool call: raw='{\"city\"', err=unexpected end" })],
  ["Gemini", "gemini", finishedBy("function_call_filter: MALFORMED_FUNCTION_CALL")],
  ["Gemini behind LiteLLM", "chat", finishedBy("malformed_function_call")],
  [
    "Bedrock",
    "bedrock",
    frames(
      { messageStart: { role: "assistant" } },
      { messageStop: { stopReason: "malformed_tool_use" } },
      { metadata: { usage: { inputTokens: 1, outputTokens: 1 } } },
    ),
  ],
];

for (const [server, provider, reply] of MODEL_FAULTS) {
  test(`a call that the model of ${server} wrote wrongly is asked for once more, and is not the message's fault`, async () => {
    const good = provider === "bedrock" ? bedrockStream("text") : CHAT_COMPLETIONS.text("Mild.");
    await using upstream = await startUpstream(reply, good, reply, reply, good);
    const mended = await ask(open(await PROVIDERS[provider](upstream)));
    assert.equal(mended.error, undefined);
    assert.ok(said(mended).length > 0);
    const failure = failureOf(await ask(open(await PROVIDERS[provider](upstream))));
    assert.deepEqual([failure.code, failure.retryable], ["provider_error", true]);
    assert.match(failure.detail, /the model wrote/i);
    assert.equal(upstream.calls.length, 4);
  });
}

test("a model whose thoughts were shown is not asked again for a call that it wrote wrongly", async () => {
  const thought = { choices: [{ index: 0, delta: { reasoning_content: "Hm." } }] };
  const turn = await askOnce(chatProvider, { body: [eventStream(thought, { error: GROQ })] });
  assert.equal(failureOf(turn).retryable, true);
  assert.equal(turn.calls.length, 1);
});

test("gemini: the wait that a 429 names in its body is passed on, and not cut short by a retry", async () => {
  const wait = { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "34.07s" };
  await using upstream = await startUpstream(googleRefusal(429, "RESOURCE_EXHAUSTED", "You exceeded", [wait]));
  const failure = failureOf(await ask(open(await gemini(upstream))));
  assert.deepEqual([failure.code, failure.retryAfter], ["provider_rate_limited", 35]);
  assert.equal(upstream.calls.length, 1);
});

test("gemini: a blocked answer ends as content_filter, whatever kind is named after it", async () => {
  const { events } = await askOnce(gemini, stream("gemini/blocked"));
  assert.deepEqual(events, [{ type: "end", finish: "content_filter" }]);
});

test("gemini: an error inside the stream is read although it comes in a list", async () => {
  const turn = await askOnce(gemini, stream("gemini/error-in-stream"));
  assert.equal(said(turn), "Once ");
  assert.equal(failureOf(turn).code, "provider_overloaded");
});

// The provider's request id, which is logged for questions to its support.

/** A rejection that no retry can fix. */
const refusal = (headers: Record<string, string>) =>
  jsonReply(400, { error: { type: "invalid_request_error", message: "No." } }, headers);

const root = (url: string) => url.replace(/\/v1$/, "");

interface Case {
  model: string;
  env: (url: string) => Record<string, string>;
  reply: UpstreamReply;
  named: string | undefined;
}

const anthropic = {
  model: "anthropic/claude-sonnet-4-5",
  env: (url: string) => ({ ANTHROPIC_API_KEY: "sk-of-a-test", ANTHROPIC_BASE_URL: root(url) }),
};
const BEDROCK = {
  model: "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
  env: (url: string) => ({
    AWS_REGION: "us-east-1",
    AWS_BEARER_TOKEN_BEDROCK: "key-of-a-test",
    BEDROCK_BASE_URL: root(url),
  }),
};

const CASES: Record<string, Case> = {
  "an answer of OpenAI": {
    ...RESPONSES,
    reply: { ...RESPONSES.text("Hi"), headers: { "x-request-id": "req_1" } },
    named: "req_1",
  },
  "an answer of LiteLLM": {
    ...CHAT_COMPLETIONS,
    reply: { ...CHAT_COMPLETIONS.text("Hi"), headers: { "x-request-id": "req_2" } },
    named: "req_2",
  },
  "a refusal of OpenAI": { ...RESPONSES, reply: refusal({ "x-request-id": "req_3" }), named: "req_3" },
  "a refusal of Anthropic": { ...anthropic, reply: refusal({ "request-id": "req_4" }), named: "req_4" },
  "a refusal of Bedrock": { ...BEDROCK, reply: refusal({ "x-amzn-requestid": "req_5" }), named: "req_5" },
  "an answer without a name": { ...RESPONSES, reply: RESPONSES.text("Hi"), named: undefined },
  "a name that is none": {
    ...RESPONSES,
    reply: { ...RESPONSES.text("Hi"), headers: { "x-request-id": `${"x".repeat(201)}` } },
    named: undefined,
  },
};

for (const [name, { model, env, reply, named }] of Object.entries(CASES)) {
  test(`the provider's name of a request is in the log: ${name}`, async (t) => {
    await using upstream = await startUpstream(reply);
    const server = await startServer(t, { agent: { model }, env: { ...env(upstream.url), PARLEY_LOG: "json" } });
    await post(server, { message: "Hi", stream: false });
    await server.close();
    const lines = server.log.map((line) => JSON.parse(line));
    const [run] = lines.filter(({ msg }) => msg === "run");
    assert.equal(run.provider_request_id, named);
  });
}
