/** Clients that stay and do not read: the model waits, memory stays bounded, and in the end they are cut. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { post } from "../support/chat-transports.ts";
import { gate, within } from "../support/deadline.ts";
import { endlessTurn, settled } from "../support/endless-turn.ts";
import { connectRaw } from "../support/raw-connection.ts";
import { newRun, openLine } from "../support/run-lines.ts";
import { say, wait } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, startServer, type TestServer } from "../support/start-server.ts";

const CUT_SOON = { PARLEY_SEND_SECONDS: "0.2" };

/** Sends a chat request on a connection that takes nothing of the answer. */
async function postDeaf(t: Cleanup, server: TestServer, body: object) {
  const raw = await connectRaw(t, server);
  raw.socket.pause();
  const text = JSON.stringify(body);
  const length = `content-length: ${text.length}`;
  const type = "content-type: application/json";
  await raw.write("POST /api/chat HTTP/1.1", "host: 127.0.0.1", type, length, "", text);
  return raw;
}

async function askDeaf(t: Cleanup, server: TestServer, message: object) {
  const client = await connect(t, server.socketUrl);
  client.socket.pause();
  client.send(message);
}

const STREAMS = {
  sse: (t: Cleanup, server: TestServer) => postDeaf(t, server, { message: "Hi", stream: true }),
  socket: (t: Cleanup, server: TestServer) => askDeaf(t, server, { message: "Hi" }),
};

for (const [kind, start] of Object.entries(STREAMS)) {
  test(`a client that takes nothing for PARLEY_SEND_SECONDS is cut, which ends its run (${kind})`, async (t) => {
    const { turn, taken } = endlessTurn();
    const server = await startServer(t, { turns: [turn], env: CUT_SOON });
    const asked = server.model.nextAsked();
    await start(t, server);
    await within((await asked).aborted, "the end of the run");
    assert.ok(taken() < 1000, `${taken()} pieces of 64 KiB were taken from the model`);
  });
}

for (const stream of [true, false]) {
  test(`a whole answer does not wait for ever for its reader (stream: ${stream})`, async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    // Somewhat more than the system takes off our hands.
    const turns = [Array.from({ length: 72 }, () => say("x".repeat(64 * 1024)))];
    const env = { PARLEY_SEND_SECONDS: "5", PARLEY_DRAIN_SECONDS: "1000" };
    const server = await startServer(t, { turns, env, stateKind: "previous_response_id" });
    const asked = server.model.nextAsked();
    await postDeaf(t, server, { message: "Hi", stream });
    await asked;
    let isClosed = false;
    // It waits for the answer to be sent, or for its client to be cut.
    const closed = server.close().then(() => {
      isClosed = true;
    });
    for (let second = 0; second < 60 && !isClosed; second++) {
      t.mock.timers.tick(1000);
      await fetch(`${server.url}/health`).catch(() => {});
    }
    const wasCut = isClosed;
    // A failed test must not wait for time that stands still.
    t.mock.timers.tick(2_000_000);
    assert.ok(wasCut, "the client was cut");
    await closed;
  });
}

test("a reader that takes nothing does not hold up another, and is cut when the run leaves it behind", async (t) => {
  const run = newRun();
  const piece = "x".repeat(64 * 1024);
  const bothRead = gate();
  const talk = Array.from({ length: 400 }, () => [say(piece), wait(nextTurn())]).flat();
  const turns = [[wait(bothRead.opened), ...talk]];
  const server = await startServer(t, { turns, stateKind: "previous_response_id" });
  const asked = server.model.nextAsked();
  const deaf = await postDeaf(t, server, { message: "Hi", stream: true, run });
  await asked;
  const lively = await openLine.sse(t, server, { message: "Hi", run });
  bothRead.open();
  const last = (await lively.rest()).at(-1);
  assert.equal(last?.type === "done" && last.data.length, 400 * piece.length);
  deaf.socket.resume();
  await within(deaf.closed, "the cut");
  assert.doesNotMatch(deaf.rest, /event: done/);
});

test("while nobody reads, a run goes on to PARLEY_RESUME_BYTES, waits, and goes on when somebody comes back", async (t) => {
  const piece = "x".repeat(64 * 1024);
  let taken = 0;
  const turn = (function* () {
    for (; taken < 100; taken++) {
      yield say(piece);
      yield wait(nextTurn());
    }
  })();
  const env = { PARLEY_RESUME_BYTES: String(16 * 64 * 1024) };
  const held = gate();
  const turns = [
    (function* () {
      yield say("A");
      yield wait(held.opened);
      yield* turn;
    })(),
  ];
  const server = await startServer(t, { turns, env, stateKind: "previous_response_id" });
  const run = newRun();
  const first = await openLine.socket(t, server, { message: "Hi", run });
  await first.next();
  await first.cut();
  held.open();
  const waiting = await settled(() => taken, server);
  assert.ok(waiting > 8 && waiting < 20, `${waiting} pieces of 64 KiB`);
  const second = await openLine.socket(t, server, { resume: run, after: 1 });
  assert.equal((await second.rest()).length, 101);
});

test("the last event is held whatever its size, for who loses the line in the middle of it", async (t) => {
  const text = "x".repeat(2 * 1024 * 1024);
  const env = { PARLEY_RESUME_BYTES: "1000" };
  const bothRead = gate();
  const server = await startServer(t, { turns: [[wait(bothRead.opened), say(text)]], env });
  const run = newRun();
  const asked = server.model.nextAsked();
  const deaf = await postDeaf(t, server, { message: "Hi", stream: true, run });
  await asked;
  const lively = await openLine.sse(t, server, { message: "Hi", run });
  bothRead.open();
  const done = (await lively.rest()).at(-1);
  deaf.socket.destroy();
  const again = await openLine.socket(t, server, { resume: run, after: 1 });
  assert.deepEqual(await again.rest(), [done]);
});

test("a run whose client does not read gives up its place when PARLEY_RUN_SECONDS are over", async (t) => {
  const server = await startServer(t, {
    turns: [endlessTurn().turn, [say("Next")]],
    env: { PARLEY_MAX_RUNS: "1", PARLEY_RUN_SECONDS: "0.3" },
  });
  const asked = server.model.nextAsked();
  await postDeaf(t, server, { message: "Hi", stream: true });
  await asked;
  const answer = await post(server, { message: "Hi", stream: false });
  assert.equal(JSON.parse(await answer.text()).response, "Next");
});

/** A socket whose line is full: the model talks for ever, and the client takes nothing. */
async function fullSocket(t: Cleanup) {
  const { turn, taken } = endlessTurn();
  const server = await startServer(t, { turns: [turn] });
  const client = await connect(t, server.socketUrl);
  client.socket.pause();
  client.send({ message: "Hi" });
  await settled(taken, server);
  return { client, server };
}

test("who sends commands without reading their answers is cut", async (t) => {
  const { client, server } = await fullSocket(t);
  for (let sent = 0; sent < 110; sent++) client.socket.send("{");
  await within(Promise.resolve(server.model.asked[0]?.aborted), "the end of the run");
  client.socket.resume();
  assert.equal((await within(client.closed, "the cut")).code, 1006);
});

test("pings are answered, but not gathered for a client that does not read", async (t) => {
  const { client } = await fullSocket(t);
  let pongs = 0;
  const end = new Promise<void>((resolve) => {
    client.socket.on("pong", (data) => {
      pongs++;
      if (String(data) === "last") resolve();
    });
  });
  client.send({ type: "stop" });
  for (let sent = 0; sent < 1000; sent++) client.socket.ping(`${sent}`);
  client.socket.ping("last");
  client.socket.resume();
  await within(end, "the answer to the last ping");
  assert.ok(pongs < 1000, `${pongs} answers`);
});
