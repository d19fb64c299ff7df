/** Runs that end with an error: the conversation goes on from its last good state, or is a new one. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { send } from "../support/chat-transports.ts";
import { type Gate, gate } from "../support/deadline.ts";
import { newRun, openLine } from "../support/run-lines.ts";
import { fail, say, type Turn, wait } from "../support/scripted-provider.ts";
import { connect, type SocketClient } from "../support/socket-client.ts";
import { type Cleanup, type ServerOptions, startServer } from "../support/start-server.ts";

const KINDS = ["conversation_history", "previous_response_id"] as const;
const WAYS = ["stopped", "too old", "in a server that stops"] as const;

/** A first answer, one that ignores its abort, and a last one. */
function deafServer(t: Cleanup, options: ServerOptions & { way?: (typeof WAYS)[number] }) {
  const held = gate();
  t.after(() => held.open());
  const { way, env, ...rest } = options;
  return startServer(t, {
    turns: [[say("A")], deafTurn(held), [say("C")]],
    deaf: true,
    ...rest,
    env: {
      PARLEY_STATE_SECRET: "a secret of states",
      PARLEY_RUN_SECONDS: way === "too old" ? "0.5" : "600",
      ...env,
    },
  });
}

const deafTurn = (held: Gate): Turn => [say("Half"), wait(held.opened), say("Late")];

type Server = Awaited<ReturnType<typeof startServer>>;

/** What the model was told last, whichever kind of provider it is. */
function told({ model }: Server): unknown {
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
  for (const way of WAYS) {
    test(`a model that ignores its abort when its run is ${way} costs a socket no conversation (${stateKind})`, async (t) => {
      const server = await deafServer(t, { stateKind, way });
      const client = await connect(t, server.socketUrl);
      const state = await firstState(client);
      client.send({ message: "b" });
      await client.until("token");
      if (way === "stopped") client.send({ type: "stop" });
      const closed = way === "in a server that stops" ? server.close() : undefined;
      const [last] = await client.until("error");
      assert.deepEqual(last?.type === "error" && last.state, state);
      await closed;
      if (closed !== undefined) return;
      await client.run({ message: "c" });
      assert.equal(told(server), CONTINUED[stateKind]);
    });

    test(`a stream whose model ignores its abort when its run is ${way} tells the last good state (${stateKind})`, async (t) => {
      const server = await deafServer(t, { stateKind, way });
      const first = await send.sse(t, server, { message: "a" });
      const { state } = first.last;
      const run = newRun();
      const line = await openLine.sse(t, server, { message: "b", run, state });
      await line.next();
      if (way === "stopped") {
        await fetch(`${server.url}/api/chat/runs/${run}/cancel`, { method: "POST" });
      }
      const closed = way === "in a server that stops" ? server.close() : undefined;
      const [last] = await line.rest();
      assert.deepEqual(last?.type === "error" && last.state, state);
      await closed;
    });
  }

  test(`an error without a state leaves a new conversation new (${stateKind})`, async (t) => {
    const server = await startServer(t, {
      turns: [[fail(new Error("bug"))], [say("C")]],
      stateKind,
    });
    const client = await connect(t, server.socketUrl);
    const [last] = await client.run({ message: "a" });
    assert.equal(last?.type === "error" && last.state, undefined);
    await client.run({ message: "c" });
    assert.equal(told(server), NEW[stateKind]);
  });

  test(`a new conversation that fails does not bring back the one before it (${stateKind})`, async (t) => {
    const server = await deafServer(t, { stateKind });
    const client = await connect(t, server.socketUrl);
    await firstState(client);
    client.send({ message: "b", state: {} });
    await client.until("token");
    const [last] = await client.run({ type: "stop" });
    assert.equal(last?.type === "error" && last.state, undefined);
    await client.run({ message: "c" });
    assert.equal(told(server), NEW[stateKind]);
  });

  test(`a bug of a provider costs a socket no conversation (${stateKind})`, async (t) => {
    const turns = [[say("A")], [say("Half"), fail(new Error("bug"))], [say("C")]];
    const server = await startServer(t, { turns, stateKind });
    const client = await connect(t, server.socketUrl);
    const state = await firstState(client);
    const last = (await client.run({ message: "b" })).at(-1);
    assert.ok(last?.type === "error");
    assert.deepEqual([last.code, last.state], ["internal", state]);
    await client.run({ message: "c" });
    assert.equal(told(server), CONTINUED[stateKind]);
  });

  test(`a failed run without a state that a socket resumes leaves its own conversation (${stateKind})`, async (t) => {
    const turns = [[say("A")], [fail(new Error("bug"))], [say("C")]];
    const server = await startServer(t, { turns, stateKind });
    const client = await connect(t, server.socketUrl);
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
    const server = await startServer(t, {
      turns: [[say("A")], [say("Other"), wait(held.opened)], [say("C")]],
      stateKind,
      env: { PARLEY_MAX_RUNS: "1", PARLEY_MAX_QUEUED_RUNS: "0" },
    });
    const client = await connect(t, server.socketUrl);
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
