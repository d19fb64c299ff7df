/** What sockets remember of their conversations is bounded in sum: the oldest is dropped, and its client is told. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newRun } from "../support/run-lines.ts";
import { type Asked, say, type Turn } from "../support/scripted-provider.ts";
import { connect, type SocketClient } from "../support/socket-client.ts";
import { startServer } from "../support/start-server.ts";

const MEBIBYTE = 1024 * 1024;

/** Room for three conversations of 600 kB beside one message of that size, and for no fourth. */
const ROOM = {
  PARLEY_MAX_BODY_BYTES: `${MEBIBYTE}`,
  PARLEY_MAX_REQUEST_BYTES_TOTAL: `${2.5 * MEBIBYTE}`,
};
const LONG = "x".repeat(600_000);

async function startRoom(t: TestContext, runs: number, env = {}) {
  const turns: Turn[] = Array.from({ length: runs }, () => [say("Fine")]);
  return startServer(t, { turns, env: { ...ROOM, ...env } });
}

/** Says it and returns the run's last event. */
async function tell(client: SocketClient, message: object) {
  const last = (await client.run(message)).at(-1);
  assert.ok(last?.type === "done" || last?.type === "error");
  return last;
}

const textsOf = (asked: Asked | undefined) =>
  asked?.messages.map(({ content }) => (content === LONG ? "LONG" : content));

const CONTINUED = ["LONG", "Fine", "And?"];

test("the oldest conversations are dropped when new ones need the memory, and a plain message there is conversation_expired", async (t) => {
  const server = await startRoom(t, 9);
  const clients: SocketClient[] = [];
  const ends = [];
  for (let at = 0; at < 4; at++) {
    const client = await connect(t, server.socketUrl);
    clients.push(client);
    ends.push(await tell(client, { message: LONG }));
  }
  const [oldest, second, , newest] = clients;
  assert.ok(oldest && second && newest);

  for (const client of [second, newest]) {
    assert.equal((await tell(client, { message: "And?" })).type, "done");
    assert.deepEqual(textsOf(server.model.asked.at(-1)), CONTINUED);
  }
  const before = server.model.asked.length;
  for (let again = 0; again < 2; again++) {
    const refused = await tell(oldest, { message: "And?" });
    assert.equal(refused.type === "error" && refused.code, "conversation_expired");
    assert.match(String(refused.data), /state/);
  }
  assert.equal(server.model.asked.length, before, "nothing was begun anew in silence");

  assert.equal((await tell(oldest, { message: "And?", state: ends[0]?.state })).type, "done");
  assert.deepEqual(textsOf(server.model.asked.at(-1)), CONTINUED, "the client has the state");
  assert.equal((await tell(oldest, { message: "And?" })).type, "done", "it is remembered again");
  assert.equal(server.model.asked.at(-1)?.messages.length, 5);
});

test("after clear a socket whose conversation was dropped begins a new one", async (t) => {
  const server = await startRoom(t, 5);
  const client = await connect(t, server.socketUrl);
  await tell(client, { message: LONG });
  for (let others = 0; others < 3; others++) {
    await tell(await connect(t, server.socketUrl), { message: LONG });
  }
  assert.equal((await tell(client, { message: "And?" })).type, "error");
  client.send({ type: "clear" });
  assert.equal((await client.next()).type, "cleared");
  assert.equal((await tell(client, { message: "And?" })).type, "done");
  assert.deepEqual(textsOf(server.model.asked.at(-1)), ["And?"]);
});

test("a message that needs the memory gets it, however much is remembered", async (t) => {
  const server = await startRoom(t, 6, { PARLEY_MAX_MESSAGE_CHARS: `${MEBIBYTE}` });
  for (let at = 0; at < 3; at++) {
    await tell(await connect(t, server.socketUrl), { message: LONG });
  }
  const larger = { message: "x".repeat(1_000_000) };
  assert.equal((await tell(await connect(t, server.socketUrl), larger)).type, "done");
});

test("what a socket remembered is free again when it closes, or remembers something else", async (t) => {
  const server = await startRoom(t, 9);
  const kept = await connect(t, server.socketUrl);
  await tell(kept, { message: LONG });
  const other = await connect(t, server.socketUrl);
  for (let again = 0; again < 3; again++) await tell(other, { message: LONG, state: {} });
  for (let again = 0; again < 3; again++) {
    const client = await connect(t, server.socketUrl);
    await tell(client, { message: LONG, state: {} });
    client.socket.close();
    await client.closed;
  }
  assert.equal((await tell(kept, { message: "And?" })).type, "done");
  assert.deepEqual(textsOf(server.model.asked.at(-1)), CONTINUED);
});

test("a large remembered conversation goes on, signature included, also where it was resumed", async (t) => {
  const server = await startRoom(t, 3, { PARLEY_STATE_SECRET: "a-secret-of-a-test" });
  const run = newRun();
  const first = await connect(t, server.socketUrl);
  await tell(first, { message: LONG, run });
  const second = await connect(t, server.socketUrl);
  second.send({ type: "resume", run, after: 0 });
  await second.until("done");
  for (const client of [first, second]) {
    assert.equal((await tell(client, { message: "And?" })).type, "done");
    assert.deepEqual(textsOf(server.model.asked.at(-1)), CONTINUED);
  }
});
