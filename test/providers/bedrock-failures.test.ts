import assert from "node:assert/strict";
import { test } from "node:test";
import { bedrock, type Frame, fixtureFrames, frames, refuse, stream } from "../support/bedrock.ts";
import { ask, failureOf, open, said } from "../support/upstream-conversation.ts";
import { startUpstream } from "../support/upstream-server.ts";

const START: Frame = { messageStart: { role: "assistant" } };
const HALF: Frame = { contentBlockDelta: { contentBlockIndex: 0, delta: { text: "Half" } } };

/** Sentences of the service, from its error-code page, its user guide and reports of its users. */
const REFUSALS: [status: number, type: string, message: string, code: string, sentence: RegExp][] = [
  [403, "AccessDeniedException", "You don't have access to the model", "provider_auth", /refused the credentials/],
  [403, "UnrecognizedClientException", "The security token is invalid", "provider_auth", /refused the credentials/],
  [403, "ExpiredTokenException", "The security token is expired", "provider_auth", /refused the credentials/],
  [404, "ResourceNotFoundException", "Could not resolve the model", "provider_error", /does not know the model/],
  [
    400,
    "ValidationException",
    "The provided model identifier is invalid.",
    "provider_error",
    /does not know the model/,
  ],
  [
    400,
    "ValidationException",
    "Invocation of model ID x with on-demand throughput isn’t supported.",
    "provider_error",
    /does not know the model/,
  ],
  [400, "ValidationException", "Input is too long for requested model.", "context_too_long", /too long/],
  [
    400,
    "ValidationException",
    "Input Tokens Exceeded: Number of input tokens exceeds maximum length.",
    "context_too_long",
    /too long/,
  ],
  [
    400,
    "ValidationException",
    "input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000",
    "context_too_long",
    /too long/,
  ],
  [400, "ValidationException", "Output blocked by content filtering policy", "content_filtered", /usage policy/],
  [
    400,
    "ValidationException",
    "This model doesn't support the image content block that you provided.",
    "invalid_request",
    /does not take one of the attachments/,
  ],
  [
    400,
    "ValidationException",
    "The model returned the following errors: `temperature` is deprecated for this model.",
    "provider_error",
    /settings of this agent/,
  ],
  [
    400,
    "ValidationException",
    "This model doesn't support tool use in streaming mode.",
    "provider_error",
    /settings of this agent/,
  ],
  [400, "ValidationException", "Something about messages.1", "invalid_request", /does not take this message/],
  [408, "ModelTimeoutException", "The processing time exceeded", "provider_timeout", /took too long/],
  [424, "ModelErrorException", "the model failed", "provider_error", /internal error/],
  [
    429,
    "ThrottlingException",
    "Too many tokens, please wait before trying again.",
    "provider_rate_limited",
    /too many requests/,
  ],
  [
    400,
    "ServiceQuotaExceededException",
    "The number of requests exceeds the service quota.",
    "provider_rate_limited",
    /too many requests/,
  ],
  [429, "ModelNotReadyException", "Model is not ready for inference.", "provider_overloaded", /overloaded/],
  [503, "ServiceUnavailableException", "The service isn't currently available.", "provider_overloaded", /overloaded/],
  [500, "InternalServerException", "Internal error", "provider_error", /internal error/],
];

for (const [status, type, message, code, sentence] of REFUSALS) {
  test(`${type} "${message}" is ${code}, in our words`, async () => {
    const reply = refuse(status, type, message);
    await using upstream = await startUpstream(reply, reply, reply);
    const failure = failureOf(await ask(open(await bedrock(upstream))));
    assert.equal(failure.code, code);
    assert.match(failure.message, sentence);
    assert.equal(failure.message.includes(message), false);
  });
}

test("Retry-After is passed on, and a wait that long is not ours to make", async () => {
  const reply = refuse(429, "ThrottlingException", "slow down", { "retry-after": "30" });
  await using upstream = await startUpstream(reply);
  const failure = failureOf(await ask(open(await bedrock(upstream))));
  assert.equal(failure.retryAfter, 30);
  assert.equal(upstream.calls.length, 1);
});

test("an overloaded Bedrock is asked three times, and not once more by the package", async () => {
  const busy = refuse(503, "ServiceUnavailableException", "busy");
  await using upstream = await startUpstream(busy, busy, busy, stream("text"));
  assert.equal(failureOf(await ask(open(await bedrock(upstream)))).code, "provider_overloaded");
  assert.equal(upstream.calls.length, 3);
});

test("an exception in place of the first event is tried again", async () => {
  const throttled = frames({ throttlingException: { message: "Too many requests" } });
  await using upstream = await startUpstream(throttled, { end: "cut" }, stream("text"));
  assert.equal(said(await ask(open(await bedrock(upstream)))), "Hello 👋");
  assert.equal(upstream.calls.length, 3);
});

test("what a user has seen is not asked for again", async () => {
  await using upstream = await startUpstream(stream("throttled-in-stream"), stream("text"));
  const turn = await ask(open(await bedrock(upstream)));
  assert.equal(said(turn), "Half");
  assert.equal(failureOf(turn).code, "provider_rate_limited");
  assert.equal(upstream.calls.length, 1);
});

for (const [name, code] of [
  ["internalServerException", "provider_error"],
  ["modelStreamErrorException", "provider_error"],
  ["modelTimeoutException", "provider_timeout"],
  ["serviceUnavailableException", "provider_overloaded"],
  ["validationException", "invalid_request"],
] as const) {
  test(`${name} in the middle of the stream is ${code}`, async () => {
    await using upstream = await startUpstream(frames(START, HALF, { [name]: { message: "m" } }));
    assert.equal(failureOf(await ask(open(await bedrock(upstream)))).code, code);
  });
}

for (const stopReason of ["malformed_tool_use", "malformed_model_output"]) {
  test(`${stopReason} is a failure that may be tried again`, async () => {
    const answer = fixtureFrames("text").map((frame) =>
      "messageStop" in frame ? { messageStop: { stopReason } } : frame,
    );
    await using upstream = await startUpstream(frames(...answer));
    const failure = failureOf(await ask(open(await bedrock(upstream))));
    assert.match(failure.message, /The model wrote/);
    assert.equal(failure.retryable, true);
  });
}
