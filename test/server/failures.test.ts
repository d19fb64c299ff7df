/** Runs that fail: one proper error on each transport, and nothing of what is behind it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, ERRORS, type ErrorCode } from "../../server/protocol/errors.ts";
import type { ProviderErrorCode } from "../../server/providers/failures.ts";
import { assertSame, onEveryTransport, post, send } from "../support/chat-transports.ts";
import { call, cut, fail, hang, say } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { echo } from "../support/test-tools.ts";

const STATUS: Record<ProviderErrorCode, number> = {
  provider_error: 502,
  provider_auth: 502,
  provider_rate_limited: 502,
  provider_overloaded: 502,
  provider_truncated: 502,
  provider_timeout: 504,
  conversation_expired: 409,
  invalid_request: 400,
  content_filtered: 400,
  context_too_long: 400,
};

for (const code of Object.keys(STATUS) as ProviderErrorCode[]) {
  test(`a model that fails with ${code} is ${STATUS[code]} in JSON and one error event elsewhere`, async (t) => {
    const error = new ApiError(code, "Our own words.");
    const { json, sse, socket } = await onEveryTransport(t, () => ({ turns: [[fail(error)]] }), {
      message: "Hi",
    });
    assert.equal(json.status, STATUS[code]);
    assert.equal(sse.status, 200);
    const event = { type: "error", data: "Our own words.", code, retryable: error.retryable };
    assert.deepEqual(sse.events, [event]);
    assert.deepEqual(socket.events, [event]);
  });
}

test("a failure after the first token comes after what was said", async (t) => {
  const turns = [[say("Half"), fail(new ApiError("provider_truncated", "It broke off."))]];
  const { json, sse } = await onEveryTransport(t, () => ({ turns }), { message: "Hi" });
  assert.equal(json.status, 502);
  assert.deepEqual(
    sse.events.map(({ type }) => type),
    ["token", "error"],
  );
});

test("a stream that ends without an end is provider_truncated, never a short answer", async (t) => {
  const { json } = await onEveryTransport(t, () => ({ turns: [[say("Half"), cut]] }), {
    message: "Hi",
  });
  assert.equal(json.last.type === "error" && json.last.code, "provider_truncated");
});

test("an empty answer is provider_error, never 200 with an empty reply", async (t) => {
  const { json } = await onEveryTransport(t, () => ({ turns: [[say(" \n")]] }), { message: "Hi" });
  assert.equal(json.status, 502);
  assert.equal(json.last.type === "error" && json.last.code, "provider_error");
});

test("a bug leaves as a bare internal, and the log has its stack", async (t) => {
  const bug = new TypeError("secret detail at /srv/app/model.ts");
  const { json, sse } = await onEveryTransport(t, () => ({ turns: [[fail(bug)]] }), {
    message: "Hi",
  });
  assert.equal(json.status, 500);
  assert.equal(sse.last.type === "error" && sse.last.code, "internal");
  assert.doesNotMatch(JSON.stringify([json.last, sse.events]), /secret|srv|TypeError/);

  const server = await startServer(t, { turns: [[fail(bug)]] });
  const answer = await post(server, { message: "Hi", stream: false });
  assert.ok(answer.headers.get("x-request-id"));
  assert.match(server.log.join("\n"), /TypeError: secret detail.*at /s);
});

test("an error brings the last good state, from which the same message can be sent again", async (t) => {
  const state = { conversation_history: [{ role: "user", content: "Before" }] };
  const error = new ApiError("provider_error", "No.");
  const { sse, socket } = await onEveryTransport(t, () => ({ turns: [[fail(error)]] }), {
    message: "Hi",
    state,
  });
  assert.deepEqual(sse.last.state, state);
  assert.deepEqual(socket.last.state, state);
});

test("a failure between tools and answer gives the state from before the message", async (t) => {
  const setup = () => ({
    turns: [[call("c1", "echo", { text: "a" })], [fail(new ApiError("provider_error", "No."))]],
    agent: { tools: [echo] },
    stateKind: "previous_response_id" as const,
  });
  const state = { previous_response_id: "resp_1" };
  const { sse } = await onEveryTransport(t, setup, { message: "Hi", state });
  assert.deepEqual(sse.last.state, state);
  assert.deepEqual(
    sse.events.map(({ type }) => type),
    ["tool_call", "tool_result", "error"],
  );
});

test("the provider's Retry-After reaches the client: a header in JSON, retry_after in events", async (t) => {
  const error = new ApiError("provider_rate_limited", "Slow down.", { retryAfter: 7.2 });
  const { json, sse, socket } = await onEveryTransport(t, () => ({ turns: [[fail(error)]] }), {
    message: "Hi",
  });
  assert.equal(json.headers.get("retry-after"), "8");
  for (const { last } of [sse, socket]) assert.equal(last.type === "error" && last.retry_after, 7.2);
});

test("what only the operator should know is in the sentence of a server on loopback without keys, and of no other", async (t) => {
  const error = new ApiError("provider_auth", "Not set up.", { detail: "Acme AI refused the key." });
  const setup = () => ({ turns: [[fail(error)]] });
  const { sse } = await onEveryTransport(t, setup, { message: "Hi" });
  assert.equal(sse.last.data, "Not set up. (Acme AI refused the key.)");
  const server = await startServer(t, { ...setup(), env: { PARLEY_API_KEY: "api-key-1" } });
  const headers = { authorization: "Bearer api-key-1" };
  const answer = await post(server, { message: "Hi", stream: true }, { headers });
  assert.doesNotMatch(await answer.text(), /Acme/);
  assert.match(server.log.join("\n"), /Acme AI refused the key/);
});

test("a provider may say that a retry is of no use", async (t) => {
  const error = new ApiError("provider_error", "No such model.", { retryable: false });
  const { sse, socket } = await onEveryTransport(t, () => ({ turns: [[fail(error)]] }), {
    message: "Hi",
  });
  for (const { last } of [sse, socket]) assert.equal(last.type === "error" && last.retryable, false);
});

test("a run that takes longer than PARLEY_RUN_SECONDS is ended with provider_timeout", async (t) => {
  const setup = () => ({ turns: [[say("Well"), hang]], env: { PARLEY_RUN_SECONDS: "0.05" } });
  const { json, sse } = await onEveryTransport(t, setup, { message: "Hi" });
  assert.equal(json.status, 504);
  assert.equal(sse.last.type === "error" && sse.last.code, "provider_timeout");
});

test("a failed run leaves the server serving", async (t) => {
  const server = await startServer(t, { turns: [[fail(new Error("bug"))], [say("Fine")]] });
  assert.equal((await send.json(t, server, { message: "Hi" })).status, 500);
  assert.equal((await send.json(t, server, { message: "Hi" })).last.data, "Fine");
});

const BEFORE_THE_RUN: [name: string, message: object, code: ErrorCode][] = [
  ["an empty message", { message: " " }, "invalid_request"],
  ["a state that is no object", { message: "Hi", state: "resp_1" }, "invalid_request"],
  ["a state of the other kind", { message: "Hi", state: { previous_response_id: "x" } }, "invalid_state"],
  ["an attachment that is not base64", { message: "Hi", attachments: [image("?")] }, "invalid_attachment"],
  ["an attachment of another type", { message: "Hi", attachments: [image("AAAA")] }, "unsupported_attachment"],
];

for (const [name, message, code] of BEFORE_THE_RUN) {
  test(`${name} is ${code} before the run: an HTTP status in both REST forms, an event on the socket`, async (t) => {
    const server = await startServer(t, { turns: [] });
    const outcomes = {
      json: await send.json(t, server, { message: "", ...message }),
      sse: await send.sse(t, server, { message: "", ...message }),
      socket: await send.socket(t, server, { message: "", ...message }),
    };
    assertSame(outcomes);
    assert.equal(outcomes.sse.status, ERRORS[code].status);
    assert.equal(outcomes.json.status, ERRORS[code].status);
    assert.equal(outcomes.socket.last.type === "error" && outcomes.socket.last.code, code);
    assert.equal(server.model.asked.length, 0);
  });
}

test("an ApiError that a provider throws by mistake is told as it is, and no more", async (t) => {
  const error = new ApiError("overloaded", "Too much.", { retryAfter: 2, cause: new Error("x") });
  const { json } = await onEveryTransport(t, () => ({ turns: [[fail(error)]] }), { message: "Hi" });
  assert.deepEqual([json.status, json.headers.get("retry-after")], [503, "2"]);
});

function image(data: string) {
  return { type: "image", name: "a.png", mime_type: "image/png", data };
}
