/** How Google refuses and breaks off, as one error of ours each. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { SetupError } from "../../server/providers/failures/provider-error.ts";
import { serve, stream } from "../support/chat-servers.ts";
import { within } from "../support/deadline.ts";
import { ask, failureOf, open, said } from "../support/upstream-conversation.ts";
import { jsonReply, startUpstream, type UpstreamReply, type UpstreamServer } from "../support/upstream-server.ts";

const gemini = (upstream: UpstreamServer) =>
  serve("gemini/gemini-2.5-flash", { GEMINI_API_KEY: "AIza", GEMINI_BASE_URL: upstream.url });

function refusal(code: number, status: string, message: string, details?: object[]): UpstreamReply {
  return jsonReply(code, [{ error: { code, message, status, ...(details && { details }) } }]);
}

const RETRY_INFO = { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "34.07s" };

for (const [what, reply, code, sentence] of [
  [
    "a wrong key, which is a 400 here",
    refusal(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    "provider_auth",
    /^Gemini refused the API key/,
  ],
  [
    "a country that Google does not serve",
    refusal(400, "FAILED_PRECONDITION", "User location is not supported for the API use."),
    "provider_auth",
    /country/,
  ],
  [
    "a key without the right",
    refusal(403, "PERMISSION_DENIED", "Generative Language API has not been used in project 1"),
    "provider_auth",
    /^Gemini refused the API key/,
  ],
  [
    "too many tokens",
    refusal(
      400,
      "INVALID_ARGUMENT",
      "The input token count (1300000) exceeds the maximum number of tokens allowed (1048575).",
    ),
    "context_too_long",
    /too long/,
  ],
  [
    "an unknown model",
    refusal(404, "NOT_FOUND", "models/gemini-9 is not found for API version v1main"),
    "provider_error",
    /does not know the model/,
  ],
  [
    "an attachment that cannot be read",
    refusal(400, "INVALID_ARGUMENT", "Unable to process input image."),
    "invalid_request",
    /attachments/,
  ],
] as const) {
  test(`gemini: ${what} is ${code}`, async () => {
    await using upstream = await startUpstream(reply);
    const failure = failureOf(await ask(open(await gemini(upstream))));
    assert.equal(failure.code, code);
    assert.equal(failure.retryable, false);
    assert.match(failure.message, sentence);
    assert.equal(upstream.calls.length, 1);
  });
}

test("gemini: the wait that a 429 names in its body is passed on, and not cut short by a retry", async () => {
  const reply = refusal(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", [RETRY_INFO]);
  await using upstream = await startUpstream(reply);
  const failure = failureOf(await ask(open(await gemini(upstream))));
  assert.deepEqual([failure.code, failure.retryAfter], ["provider_rate_limited", 35]);
  assert.equal(upstream.calls.length, 1);
});

test("gemini: a blocked answer ends as content_filter, whatever kind is named after it", async () => {
  await using upstream = await startUpstream(stream("gemini/blocked"));
  const { events } = await ask(open(await gemini(upstream)));
  assert.deepEqual(events, [{ type: "end", finish: "content_filter" }]);
});

test("gemini: a malformed tool call is an error that may be tried again, not an empty answer", async () => {
  await using upstream = await startUpstream(stream("gemini/malformed-call"));
  const failure = failureOf(await ask(open(await gemini(upstream))));
  assert.deepEqual([failure.code, failure.retryable], ["provider_error", true]);
});

test("gemini: an error inside the stream is read although it comes in a list", async () => {
  await using upstream = await startUpstream(stream("gemini/error-in-stream"));
  const turn = await ask(open(await gemini(upstream)));
  assert.equal(said(turn), "Once ");
  assert.equal(failureOf(turn).code, "provider_overloaded");
  assert.doesNotMatch(failureOf(turn).message, /AIza/);
});

test("gemini: a stream without its end is truncated", async () => {
  await using upstream = await startUpstream(stream("gemini/cut"));
  const turn = await ask(open(await gemini(upstream)));
  assert.equal(said(turn), "Half an answer");
  assert.equal(failureOf(turn).code, "provider_truncated");
});

test("gemini: an abort closes the upstream's connection", async () => {
  await using upstream = await startUpstream({ ...stream("gemini/cut"), end: "stall" });
  const abort = new AbortController();
  const arrived = upstream.nextCall();
  const asking = ask(open(await gemini(upstream)), abort.signal);
  const call = await arrived;
  abort.abort();
  assert.equal(await within(call.closed, "the end of the connection"), "aborted");
  await asking;
});

test("gemini: a missing key stops the start and names its variable", async () => {
  await assert.rejects(
    () => serve("gemini/gemini-2.5-flash", {}),
    (error: unknown) => error instanceof SetupError && /GEMINI_API_KEY/.test(error.message),
  );
});
