/** Failed runs: one error on each transport, without internal details. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ApiError, ERRORS, type ErrorCode } from "../../server/protocol/errors.ts";
import type { ProviderErrorCode } from "../../server/providers/failures.ts";
import { assertSame, onEveryTransport, post, send, stateOf, typesOf } from "../support/chat-transports.ts";
import { type Gate, gate, turns, within } from "../support/deadline.ts";
import { newRun, openLine } from "../support/run-lines.ts";
import { call, cut, fail, hang, say, type Turn, wait } from "../support/scripted-provider.ts";
import { connect, type SocketClient, startWithClient } from "../support/socket-client.ts";
import { type ServerOptions, startServer, type TestServer } from "../support/start-server.ts";
import { stopClock } from "../support/stopped-clock.ts";
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
    const { json, sse, socket } = await onEveryTransport(t, () => ({ turns: [[fail(error)]] }), { message: "Hi" });
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
  assert.deepEqual(typesOf(sse.events), ["token", "error"]);
});

test("a stream that ends without an end is provider_truncated, never a short answer", async (t) => {
  const { json } = await onEveryTransport(t, () => ({ turns: [[say("Half"), cut]] }), { message: "Hi" });
  assert.equal(json.last.type === "error" && json.last.code, "provider_truncated");
});

test("an empty answer is provider_error, never 200 with an empty reply", async (t) => {
  const { json } = await onEveryTransport(t, () => ({ turns: [[say(" \n")]] }), { message: "Hi" });
  assert.equal(json.status, 502);
  assert.equal(json.last.type === "error" && json.last.code, "provider_error");
});

test("a bug leaves as a bare internal, and the log has its stack", async (t) => {
  const bug = new TypeError("secret detail at /srv/app/model.ts");
  const { json, sse } = await onEveryTransport(t, () => ({ turns: [[fail(bug)]] }), { message: "Hi" });
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
  const { sse, socket } = await onEveryTransport(t, () => ({ turns: [[fail(error)]] }), { message: "Hi", state });
  assert.deepEqual(stateOf(sse.last), state);
  assert.deepEqual(stateOf(socket.last), state);
});

test("a failure between tools and answer gives the state from before the message, with the exchange open in it", async (t) => {
  const setup = () => ({
    turns: [[call("c1", "echo", { text: "a" })], [fail(new ApiError("provider_error", "No."))]],
    agent: { tools: [echo] },
    stateKind: "previous_response_id" as const,
  });
  const state = { previous_response_id: "resp_1" };
  const { json, sse, socket } = await onEveryTransport(t, setup, { message: "Hi", state });
  const messages = [{ role: "tool", tool_call_id: "c1", content: "a" }];
  assert.deepEqual(stateOf(sse.last), { ...state, open: { response: "resp_2", messages } });
  assert.deepEqual(typesOf(sse.events), ["tool_call", "tool_result", "error"]);
  for (const { last } of [json, sse, socket]) {
    assert.deepEqual(last.type === "error" && [last.retryable, last.continue], [false, true]);
    assert.deepEqual(stateOf(last), stateOf(sse.last));
  }
});

test("the provider's Retry-After reaches the client: a header in JSON, retry_after in events", async (t) => {
  const error = new ApiError("provider_rate_limited", "Slow down.", { retryAfter: 7.2 });
  const { json, sse, socket } = await onEveryTransport(t, () => ({ turns: [[fail(error)]] }), { message: "Hi" });
  assert.equal(json.headers.get("retry-after"), "8");
  for (const { last } of [sse, socket]) assert.equal(last.type === "error" && last.retry_after, 7.2);
});

test("what only the operator should know is in the sentence of a server on loopback without keys and proxies, and of no other", async (t) => {
  const error = new ApiError("provider_auth", "Not set up.", { detail: "Acme AI refused the key." });
  const setup = () => ({ turns: [[fail(error)]] });
  const { sse } = await onEveryTransport(t, setup, { message: "Hi" });
  assert.equal(sse.last.data, "Not set up. (Acme AI refused the key.)");
  const headers = { authorization: "Bearer api-key-1" };
  for (const env of [{ PARLEY_API_KEY: "api-key-1" }, { PARLEY_TRUSTED_PROXIES: "127.0.0.1" }]) {
    const server = await startServer(t, { ...setup(), env });
    const answer = await post(server, { message: "Hi", stream: true }, { headers });
    assert.doesNotMatch(await answer.text(), /Acme/);
    assert.match(server.log.join("\n"), /Acme AI refused the key/);
  }
});

test("a provider may say that a retry is of no use", async (t) => {
  const error = new ApiError("provider_error", "No such model.", { retryable: false });
  const { sse, socket } = await onEveryTransport(t, () => ({ turns: [[fail(error)]] }), { message: "Hi" });
  for (const { last } of [sse, socket]) assert.equal(last.type === "error" && last.retryable, false);
});

test("a run that takes longer than PARLEY_RUN_SECONDS is ended with provider_timeout", async (t) => {
  const setup = () => ({ turns: [[say("Well"), hang]], env: { PARLEY_RUN_SECONDS: "0.05" } });
  const { json, sse } = await onEveryTransport(t, setup, { message: "Hi" });
  assert.equal(json.status, 504);
  assert.equal(sse.last.type === "error" && sse.last.code, "provider_timeout");
});

const BEFORE_THE_RUN: [name: string, message: object, code: ErrorCode][] = [
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

// Runs that end with an error: the conversation continues from its last valid state, or starts anew.

const KINDS = ["conversation_history", "previous_response_id"] as const;
const WAYS = [
  ["stopped", "provider_timeout"],
  ["too old", "provider_timeout"],
  ["in a server that stops", "shutting_down"],
] as const;

/** A server with a first answer, one that ignores its abort, and one more; only the test advances time. */
async function deafServer(t: TestContext, options: ServerOptions) {
  const held = gate();
  t.after(() => held.open());
  const clock = stopClock(t);
  const server = await startServer(t, {
    turns: [[say("A")], deafTurn(held), [say("C")]],
    deaf: true,
    ...options,
    env: { PARLEY_STATE_SECRET: "a secret of states", PARLEY_RUN_SECONDS: "600", PARLEY_MAX_RUNS: "1" },
  });
  return { server, clock };
}

/** Waits for the abort, then advances the clock by the second that a model has to react. */
async function waitOutAbort({ server, clock }: Awaited<ReturnType<typeof deafServer>>): Promise<void> {
  let isAborted = false;
  void server.model.asked[1]?.aborted.then(() => {
    isAborted = true;
  });
  while (!isAborted) {
    await turns(1);
    clock.tick(1);
  }
  clock.tick(1000);
}

const deafTurn = (held: Gate): Turn => [say("Half"), wait(held.opened), say("Late")];

/** What the model received last, for either kind of provider. */
function told({ model }: TestServer): unknown {
  const last = model.asked.at(-1);
  return model.stateKind === "previous_response_id"
    ? (last?.previousId ?? "new")
    : last?.messages.map(({ content }) => content).join(" ");
}

const CONTINUED = { conversation_history: "a A c", previous_response_id: "resp_1" };
const NEW = { conversation_history: "c", previous_response_id: "new" };

async function firstState(client: SocketClient): Promise<unknown> {
  const last = (await client.run({ message: "a" })).at(-1);
  assert.ok(last?.type === "done");
  assert.notDeepEqual(last.state, {});
  return last.state;
}

for (const stateKind of KINDS) {
  for (const [way, code] of WAYS) {
    test(`a model that ignores its abort when its run is ${way} costs a socket no conversation (${stateKind})`, async (t) => {
      const held = await deafServer(t, { stateKind });
      const { server, clock } = held;
      const client = await connect(t, server.socketUrl);
      const state = await firstState(client);
      client.send({ message: "b" });
      await client.until("token");
      if (way === "stopped") client.send({ type: "stop" });
      if (way === "too old") clock.tick(600_000);
      const closed = way === "in a server that stops" ? server.close() : undefined;
      await waitOutAbort(held);
      const [last] = await client.until("error");
      assert.deepEqual(last?.type === "error" && last.state, state);
      t.mock.restoreAll();
      await closed;
      if (closed !== undefined) return;
      await client.run({ message: "c" });
      assert.equal(told(server), CONTINUED[stateKind]);
    });

    test(`a stream whose model ignores its abort when its run is ${way} tells the last good state, and frees its place (${stateKind})`, async (t) => {
      const held = await deafServer(t, { stateKind });
      const { server, clock } = held;
      const first = await send.sse(t, server, { message: "a" });
      const { state } = first.last;
      const run = newRun();
      const line = await openLine.sse(t, server, { message: "b", run, state });
      await line.next();
      const closed = way === "in a server that stops" ? server.close() : undefined;
      const next = closed === undefined ? post(server, { message: "c", stream: false }) : undefined;
      if (way === "stopped") await fetch(`${server.url}/api/chat/runs/${run}/cancel`, { method: "POST" });
      if (way === "too old") clock.tick(600_000);
      await waitOutAbort(held);
      const [last, ...more] = await line.rest();
      assert.ok(last?.type === "error");
      assert.deepEqual([last.code, last.state, more], [code, state, []]);
      t.mock.restoreAll();
      if (next !== undefined) assert.equal((await within(next, "the place")).status, 200);
      await closed;
      assert.match(server.log.join("\n"), /failure|did not stop|stopping/);
    });
  }

  test(`an error without a state leaves a new conversation new (${stateKind})`, async (t) => {
    const { server, client } = await startWithClient(t, { turns: [[fail(new Error("bug"))], [say("C")]], stateKind });
    const [last] = await client.run({ message: "a" });
    assert.equal(last?.type === "error" && last.state, undefined);
    await client.run({ message: "c" });
    assert.equal(told(server), NEW[stateKind]);
  });

  test(`a new conversation that fails does not bring back the one before it (${stateKind})`, async (t) => {
    const held = await deafServer(t, { stateKind });
    const client = await connect(t, held.server.socketUrl);
    await firstState(client);
    client.send({ message: "b", state: {} });
    await client.until("token");
    client.send({ type: "stop" });
    await waitOutAbort(held);
    const [last] = await client.until("done", "error");
    assert.equal(last?.type === "error" && last.state, undefined);
    t.mock.restoreAll();
    await client.run({ message: "c" });
    assert.equal(told(held.server), NEW[stateKind]);
  });

  test(`a bug of a provider costs a socket no conversation (${stateKind})`, async (t) => {
    const turns = [[say("A")], [say("Half"), fail(new Error("bug"))], [say("C")]];
    const { server, client } = await startWithClient(t, { turns, stateKind });
    const state = await firstState(client);
    const last = (await client.run({ message: "b" })).at(-1);
    assert.ok(last?.type === "error");
    assert.deepEqual([last.code, last.state], ["internal", state]);
    await client.run({ message: "c" });
    assert.equal(told(server), CONTINUED[stateKind]);
  });

  test(`a failed run without a state that a socket resumes leaves its own conversation (${stateKind})`, async (t) => {
    const turns = [[say("A")], [fail(new Error("bug"))], [say("C")]];
    const { server, client } = await startWithClient(t, { turns, stateKind });
    await firstState(client);
    const run = newRun();
    const other = await connect(t, server.socketUrl);
    await other.run({ message: "x", run });
    const [last] = await client.run({ type: "resume", run, after: 0 });
    assert.equal(last?.type === "error" && last.state, undefined);
    await client.run({ message: "c" });
    assert.equal(told(server), CONTINUED[stateKind]);
  });

  test(`a message that is refused costs a socket no conversation, not even one that names a new one (${stateKind})`, async (t) => {
    const held = gate();
    const { server, client } = await startWithClient(t, {
      turns: [[say("A")], [say("Other"), wait(held.opened)], [say("C")]],
      stateKind,
      env: { PARLEY_MAX_RUNS: "1", PARLEY_MAX_QUEUED_RUNS: "0" },
    });
    await firstState(client);
    const other = await connect(t, server.socketUrl);
    other.send({ message: "x" });
    await other.until("token");
    for (const [message, code] of [
      [{ message: "b" }, "overloaded"],
      [{ message: "b", state: {} }, "overloaded"],
      [{ message: "b", attachments: [{ type: "image", data: "?" }] }, "invalid_request"],
      [{ message: "b", state: { previous_response_id: 5 } }, "invalid_state"],
    ] as const) {
      const [last] = await client.run(message);
      assert.equal(last?.type === "error" && last.code, code);
    }
    held.open();
    await other.until("done");
    await client.run({ message: "c" });
    assert.equal(told(server), CONTINUED[stateKind]);
  });
}
