import assert from "node:assert/strict";
import { test } from "node:test";
import type { StateKind } from "../../server/protocol/chat.ts";
import { ApiError } from "../../server/protocol/errors.ts";
import { post, send } from "../support/chat-transports.ts";
import { fail, say } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";

const OLD = { PARLEY_STATE_SECRET: "an old secret" };
const NEW_AND_OLD = { PARLEY_STATE_SECRET: "a new secret, an old secret" };
const NEW = { PARLEY_STATE_SECRET: "a new secret" };
const KINDS = ["conversation_history", "previous_response_id"] as const;

/** The state that a server with this secret hands out after one message. */
async function issue(t: Cleanup, stateKind: StateKind, env: object, name = "Acme"): Promise<unknown> {
  const options = { turns: [[say("First")]], stateKind, env: { ...env }, agent: { name } };
  const { last } = await send.json(t, await startServer(t, options), { message: "Hi" });
  assert.equal(last.type, "done");
  return last.state;
}

/** The code of the refusal, or `undefined` where the state is taken. */
async function judge(t: Cleanup, stateKind: StateKind, env: object, state: unknown, name = "Acme") {
  const options = { turns: [[say("Second")]], stateKind, env: { ...env }, agent: { name } };
  const { last, status } = await send.json(t, await startServer(t, options), {
    message: "Hi",
    state,
  });
  if (last.type === "error") assert.equal(status, 400);
  return last.type === "error" ? last.code : undefined;
}

for (const kind of KINDS) {
  test(`${kind}: the server takes its own signed state`, async (t) => {
    assert.equal(await judge(t, kind, OLD, await issue(t, kind, OLD)), undefined);
  });

  test(`${kind}: rotation verifies with every secret and signs with the first`, async (t) => {
    const old = await issue(t, kind, OLD);
    assert.equal(await judge(t, kind, NEW_AND_OLD, old), undefined);
    assert.equal(await judge(t, kind, NEW, old), "invalid_state");
    const fresh = await issue(t, kind, NEW_AND_OLD);
    assert.equal(await judge(t, kind, NEW, fresh), undefined);
    assert.equal(await judge(t, kind, OLD, fresh), "invalid_state");
  });

  test(`${kind}: an unsigned state is refused where states are signed`, async (t) => {
    const unsigned = await issue(t, kind, {});
    assert.doesNotMatch(JSON.stringify(unsigned), /signature/);
    assert.equal(await judge(t, kind, OLD, unsigned), "invalid_state");
  });

  test(`${kind}: a state of another agent is refused`, async (t) => {
    const foreign = await issue(t, kind, OLD, "Other");
    assert.equal(await judge(t, kind, OLD, foreign), "invalid_state");
  });

  test(`${kind}: {} needs no signature`, async (t) => {
    assert.equal(await judge(t, kind, OLD, {}), undefined);
  });

  test(`${kind}: an error event hands back a state that is signed, too`, async (t) => {
    const state = await issue(t, kind, OLD);
    const turns = [[fail(new ApiError("provider_error", "No."))]];
    const options = { turns, stateKind: kind, env: OLD, agent: { name: "Acme" } };
    const { last } = await send.sse(t, await startServer(t, options), { message: "Hi", state });
    assert.equal(last.type, "error");
    assert.deepEqual(last.state, state);
    assert.equal(await judge(t, kind, OLD, last.state), undefined);
  });

  test(`${kind}: the socket continues by itself, and by what it handed out`, async (t) => {
    const turns = [[say("One")], [say("Two")], [say("Three")]];
    const server = await startServer(t, { turns, stateKind: kind, env: OLD });
    const client = await connect(t, server.socketUrl);
    const first = (await client.run({ message: "1" })).at(-1);
    assert.equal((await client.run({ message: "2" })).at(-1)?.data, "Two");
    assert.ok(first?.type === "done");
    const other = await connect(t, server.socketUrl);
    const last = (await other.run({ message: "3", state: first.state })).at(-1);
    assert.equal(last?.data, "Three");
  });
}

const HISTORY_FORGERIES: [name: string, change: (state: { [name: string]: unknown }) => unknown][] = [
  ["another text", (state) => replaceIn(state, "First", "Fifth")],
  ["another role", (state) => replaceIn(state, '"assistant"', '"user"')],
  ["a message more", (state) => ({ ...state, conversation_history: [...list(state), list(state)[0]] })],
  ["a message less", (state) => ({ ...state, conversation_history: list(state).slice(1) })],
  ["another order", (state) => ({ ...state, conversation_history: list(state).toReversed() })],
  ["a field more", (state) => replaceIn(state, '{"role"', '{"name":"x","role"')],
  ["no signature", ({ signature: _signature, ...rest }) => rest],
  ["a signature of another type", (state) => ({ ...state, signature: { length: 43 } })],
  ["a cut signature", (state) => ({ ...state, signature: String(state.signature).slice(1) })],
];

for (const [name, change] of HISTORY_FORGERIES) {
  test(`a signed history with ${name} is refused`, async (t) => {
    const state = await issue(t, "conversation_history", OLD);
    const forged = change(Object.fromEntries(Object.entries(Object(state))));
    assert.notDeepEqual(forged, state);
    assert.equal(await judge(t, "conversation_history", OLD, forged), "invalid_state");
  });
}

test("a signed history survives a store that sorts its keys", async (t) => {
  const state = await issue(t, "conversation_history", OLD);
  const sorted = JSON.stringify(state).replace(/\{"role":("\w+"),("content":"\w+")\}/g, '{$2,"role":$1}');
  assert.notEqual(sorted, JSON.stringify(state));
  assert.equal(await judge(t, "conversation_history", OLD, JSON.parse(sorted)), undefined);
});

test("the id of a response is resp_….SIGNATURE, and the provider sees it without", async (t) => {
  const state = await issue(t, "previous_response_id", OLD);
  const { previous_response_id: id } = Object(state);
  assert.match(id, /^resp_1\.[\w-]{43}$/);
  const options = {
    turns: [[say("Second")]],
    stateKind: "previous_response_id" as const,
    env: OLD,
  };
  const server = await startServer(t, { ...options, agent: { name: "Acme" } });
  const client = await connect(t, server.socketUrl);
  const last = (await client.run({ message: "Hi", previous_response_id: id })).at(-1);
  assert.equal(last?.data, "Second");
  assert.equal(server.model.asked[0]?.previousId, "resp_1");
  for (const forged of ["resp_1", "resp_2", id.replace("resp_1", "resp_2"), `.${id}`, `${id}x`]) {
    const [event] = await client.run({ message: "Hi", previous_response_id: forged });
    assert.equal(event?.type === "error" && event.code, "invalid_state", forged);
  }
});

test("no refusal of a state says what the right signature would be", async (t) => {
  const server = await startServer(t, { turns: [], env: OLD });
  const state = { conversation_history: [{ role: "user", content: "x" }], signature: "x" };
  const text = await (await post(server, { message: "Hi", stream: false, state })).text();
  assert.doesNotMatch(text, /[\w-]{43}|secret/);
});

function list(state: { [name: string]: unknown }): unknown[] {
  assert.ok(Array.isArray(state.conversation_history));
  return state.conversation_history;
}

function replaceIn(state: unknown, from: string, to: string): unknown {
  return JSON.parse(JSON.stringify(state).replace(from, to));
}

test("a signed history of another provider is refused, although its form would do", async (t) => {
  const other = await startServer(t, { env: OLD, agent: { name: "Acme", model: "demo" } });
  const { last } = await send.json(t, other, { message: "Hello" });
  assert.equal(last.type, "done");
  assert.equal(await judge(t, "conversation_history", OLD, last.state), "invalid_state");
});
