/** Each way in which Anthropic's side fails, in our words, and what is tried again. */

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { claude, stream } from "../support/anthropic.ts";
import { within } from "../support/deadline.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { ask, failureOf, leave, open, said } from "../support/upstream-conversation.ts";
import { fixture, jsonReply, startUpstream } from "../support/upstream-server.ts";

// Loaded here, so that the short limits below measure the upstream alone.
before(() => import("@anthropic-ai/sdk"));

/** As on https://platform.claude.com/docs/en/api/errors; `[status, type, message, code, a word of ours]`. */
const REFUSALS: [number, string, string, string, RegExp][] = [
  [401, "authentication_error", "invalid x-api-key", "provider_auth", /refused the API key/],
  [403, "permission_error", "no access", "provider_auth", /may not use this model/],
  [404, "not_found_error", "model: claude-x", "provider_error", /does not know the model/],
  [402, "billing_error", "pay", "provider_rate_limited", /quota or credit/],
  [413, "request_too_large", "Request exceeds 32 MB", "invalid_request", /this large/],
  [
    400,
    "invalid_request_error",
    "Your credit balance is too low to access the Anthropic API.",
    "provider_rate_limited",
    /quota or credit/,
  ],
  [400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", "context_too_long", /too long/],
  [
    400,
    "invalid_request_error",
    "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000",
    "context_too_long",
    /too long/,
  ],
  [
    400,
    "invalid_request_error",
    "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum",
    "invalid_request",
    /does not take this message/,
  ],
  [
    400,
    "invalid_request_error",
    "max_tokens: 200000 > 128000, which is the maximum allowed number of output tokens",
    "provider_error",
    /settings of this agent/,
  ],
  [
    400,
    "invalid_request_error",
    '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive".',
    "provider_error",
    /settings of this agent/,
  ],
  [
    400,
    "invalid_request_error",
    "`temperature` is deprecated for this model.",
    "provider_error",
    /settings of this agent/,
  ],
  [400, "invalid_request_error", "Output blocked by content filtering policy", "content_filtered", /usage policy/],
];

for (const [status, type, message, code, words] of REFUSALS) {
  test(`anthropic: ${status} "${message}" is ${code}, tried once`, async () => {
    const body = { type: "error", error: { type, message }, request_id: "req_1" };
    await using upstream = await startUpstream(jsonReply(status, body));
    const failure = failureOf(await ask(open(claude(upstream))));
    assert.deepEqual([failure.code, failure.retryable], [code, false]);
    assert.match(failure.message, words);
    assert.doesNotMatch(failure.message, /sk-ant|req_1/);
    assert.equal(upstream.calls.length, 1);
  });
}

test("anthropic: 429 passes its Retry-After on", async () => {
  const body = { type: "error", error: { type: "rate_limit_error", message: "slow down" } };
  await using upstream = await startUpstream(jsonReply(429, body, { "retry-after": "30" }));
  const failure = failureOf(await ask(open(claude(upstream))));
  assert.equal(failure.code, "provider_rate_limited");
  assert.equal(failure.retryAfter, 30);
});

test("anthropic: 529 overloaded is tried again, and told when it stays", async () => {
  const overloaded = jsonReply(529, { error: { type: "overloaded_error", message: "Overloaded" } });
  await using upstream = await startUpstream(overloaded, stream("text"));
  assert.equal(said(await ask(open(claude(upstream)))), "Hello 👋");
  upstream.reply(overloaded, overloaded, overloaded);
  const failure = failureOf(await ask(open(claude(upstream))));
  assert.deepEqual([failure.code, failure.retryable], ["provider_overloaded", true]);
  assert.match(failure.message, /overloaded right now/);
  assert.equal(upstream.calls.length, 5);
});

test("anthropic: overloaded in the middle of an answer is told after what was said, and not tried again", async () => {
  await using upstream = await startUpstream(stream("overloaded"));
  const conversation = open(claude(upstream));
  const turn = await ask(conversation);
  assert.equal(said(turn), "Hel");
  assert.equal(failureOf(turn).code, "provider_overloaded");
  assert.deepEqual(conversation.state(), {});
  assert.equal(upstream.calls.length, 1);
});

for (const end of ["close", "cut"] as const) {
  test(`anthropic: a stream without its end (${end}) is provider_truncated`, async () => {
    await using upstream = await startUpstream({ body: [fixture("anthropic/cut")], end });
    assert.equal(failureOf(await ask(open(claude(upstream)))).code, "provider_truncated");
  });
}

test("anthropic: an HTML page and a redirect point at the base URL; nothing is followed", async () => {
  const headers = { "content-type": "text/html" };
  await using upstream = await startUpstream(
    { headers, body: ["<html>"] },
    { status: 307, headers: { location: "http://127.0.0.1:9/" } },
  );
  for (const words of [/base URL probably is wrong/, /redirect/]) {
    const failure = failureOf(await ask(open(claude(upstream))));
    assert.equal(failure.code, "provider_error");
    assert.match(failure.message, words);
  }
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
    assert.match(failureOf(await ask(open(claude(upstream)))).message, /could not be read/);
  }
});

test("anthropic: nothing within the first-chunk time is provider_timeout, and the connection is closed", async (t) => {
  await using upstream = await startUpstream({ headless: true, end: "stall" });
  const clock = stopClock(t);
  const called = upstream.nextCall();
  const asking = ask(open(claude(upstream, { times: { firstChunk: 80, idle: 20_000 } })));
  const { closed } = await called;
  clock.tick(80);
  const failure = failureOf(await within(asking, "the time-out"));
  assert.equal(failure.code, "provider_timeout");
  assert.equal(await closed, "aborted");
});

test("anthropic: a ping is a sign of life, silence after it is provider_timeout", async () => {
  const ping = 'event: ping\ndata: {"type": "ping"}\n\n';
  await using upstream = await startUpstream({ body: [ping], end: "stall" });
  const times = { firstChunk: 20_000, idle: 80 };
  const failure = failureOf(await ask(open(claude(upstream, { times }))));
  assert.match(failure.message, /stopped sending/);
  assert.equal(await upstream.calls[0]?.closed, "aborted");
});

test("anthropic: an abort in mid-answer closes the upstream connection", async () => {
  await using upstream = await startUpstream({ body: [fixture("anthropic/cut")], end: "stall" });
  const abort = new AbortController();
  const reason = new Error("stopped");
  const { error } = await ask(open(claude(upstream)), abort.signal, ({ type }) => {
    if (type === "text") abort.abort(reason);
  });
  assert.equal(error, reason);
  const closed = Promise.resolve(upstream.calls[0]?.closed);
  assert.equal(await within(closed, "the end of the connection"), "aborted");
});

test("anthropic: who is told and throws closes the upstream connection", async () => {
  await using upstream = await startUpstream({ body: [fixture("anthropic/cut")], end: "stall" });
  await leave(open(claude(upstream)));
  assert.equal(await upstream.calls[0]?.closed, "aborted");
});
