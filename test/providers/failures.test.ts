import assert from "node:assert/strict";
import { test } from "node:test";
import { readRetryAfter } from "../../server/providers/upstream/retry-after.ts";
import { ask, chatProvider, failureOf, open } from "../support/upstream-conversation.ts";
import { eventStream, jsonReply, startUpstream } from "../support/upstream-server.ts";

/** How providers say it; `[status, body, code, whether a retry may help, a word of our sentence]`. */
const REFUSALS: [number, unknown, string, boolean, RegExp][] = [
  [
    400,
    { error: { message: "Invalid image", param: "messages[0].content[1]" } },
    "invalid_request",
    false,
    /does not take this message/,
  ],
  [
    400,
    { object: "error", message: "bad image", type: "BadRequestError", code: 400 },
    "invalid_request",
    false,
    /does not take/,
  ],
  [400, { error: { code: "context_length_exceeded" } }, "context_too_long", false, /too long/],
  [
    400,
    { error: { message: "This model's maximum context length is 4096 tokens." } },
    "context_too_long",
    false,
    /too long/,
  ],
  [400, { error: { type: "exceed_context_size_error", code: 400 } }, "context_too_long", false, /too long/],
  [
    400,
    [{ error: { message: "The input token count (9) exceeds the maximum number of tokens" } }],
    "context_too_long",
    false,
    /too long/,
  ],
  [
    400,
    { error: { message: "litellm.BadRequestError: BedrockException - Input is too long" } },
    "context_too_long",
    false,
    /too long/,
  ],
  [400, { error: { code: "content_policy_violation" } }, "content_filtered", false, /usage policy/],
  [400, { error: { code: "content_filter" } }, "content_filtered", false, /usage policy/],
  [400, { error: { code: "invalid_prompt" } }, "content_filtered", false, /usage policy/],
  [
    400,
    { error: { message: "litellm.ContentPolicyViolationError: AzureException", type: null } },
    "content_filtered",
    false,
    /usage policy/,
  ],
  [
    400,
    { error: { code: "unknown_parameter", param: "tools[0].strict" } },
    "provider_error",
    false,
    /settings of this agent/,
  ],
  [
    400,
    { error: { message: "/chat/completions: Invalid model name passed in model=x" } },
    "provider_error",
    false,
    /does not know the model/,
  ],
  [
    400,
    [{ error: { code: 400, message: "Bad part", status: "INVALID_ARGUMENT" } }],
    "invalid_request",
    false,
    /does not take/,
  ],
  [413, "<h1>413 Request Entity Too Large</h1>", "invalid_request", false, /this large/],
  [422, { detail: [{ loc: ["body", "messages"], msg: "field required" }] }, "invalid_request", false, /does not take/],
  [401, { error: { message: "Incorrect API key provided: sk-secret" } }, "provider_auth", false, /API key/],
  [403, "forbidden", "provider_auth", false, /API key/],
  [402, { error: { message: "Insufficient credits" } }, "provider_rate_limited", false, /quota/],
  [404, { error: { code: "model_not_found" } }, "provider_error", false, /does not know the model/],
  [404, "404 page not found", "provider_error", false, /base URL/],
  [429, { error: { code: "insufficient_quota" } }, "provider_rate_limited", false, /quota/],
  [418, "teapot", "provider_error", false, /settings of this agent/],
];

for (const [status, body, code, retryable, sentence] of REFUSALS) {
  test(`${status} ${JSON.stringify(body).slice(0, 70)} is ${code} and is not tried again`, async () => {
    await using upstream = await startUpstream(jsonReply(status, body));
    const failure = failureOf(await ask(open(chatProvider(upstream))));
    assert.equal(failure.code, code);
    assert.equal(failure.retryable, retryable);
    assert.match(failure.message, sentence);
    assert.doesNotMatch(failure.message, /secret|127\.0\.0\.1/);
    assert.equal(upstream.calls.length, 1);
  });
}

for (const [status, code, sentence] of [
  [408, "provider_timeout", /took too long/],
  [429, "provider_rate_limited", /too many requests/],
  [500, "provider_error", /internal error/],
  [502, "provider_error", /internal error/],
  [503, "provider_overloaded", /overloaded/],
  [504, "provider_timeout", /took too long/],
] as const) {
  test(`${status} is tried three times and then is ${code}`, async () => {
    const reply = jsonReply(status, { error: { message: "sk-secret" } });
    await using upstream = await startUpstream(reply, reply, reply, { body: [] });
    const failure = failureOf(await ask(open(chatProvider(upstream))));
    assert.equal(failure.code, code);
    assert.equal(failure.retryable, true);
    assert.match(failure.message, sentence);
    assert.doesNotMatch(failure.message, /secret/);
    assert.equal(upstream.calls.length, 3);
  });
}

test("Retry-After of up to 2 seconds is waited for; a longer one is passed on at once", async () => {
  const limited = (seconds: string) => jsonReply(429, {}, { "retry-after": seconds });
  const ok = {
    body: [eventStream({ choices: [{ delta: { content: "ok" }, finish_reason: "stop" }] })],
  };
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
  await using upstream = await startUpstream(reply);
  assert.equal(failureOf(await ask(open(chatProvider(upstream)))).retryAfter, 86_400);
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
    await using upstream = await startUpstream({
      body: [eventStream(role), eventStream({ error })],
    });
    assert.equal(failureOf(await ask(open(chatProvider(upstream)))).code, code);
    assert.equal(upstream.calls.length, 1);
  });
}

test("an error as the first event of a stream is tried again where it may pass, as a status would be", async () => {
  const busy = { body: [eventStream({ error: { type: "overloaded_error", message: "x" } })] };
  const wrong = { body: [eventStream({ error: { code: "invalid_prompt", message: "x" } })] };
  const ok = {
    body: [eventStream({ choices: [{ delta: { content: "ok" }, finish_reason: "stop" }] })],
  };
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
    await using upstream = await startUpstream(jsonReply(status, {}, { "retry-after": "9" }));
    assert.equal(failureOf(await ask(open(chatProvider(upstream)))).retryAfter, undefined);
  }
});
