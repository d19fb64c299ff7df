/** `stream: true`: the response's head, keep-alives, backpressure and end. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { encodeFrame } from "../../server/protocol/sse.ts";
import { post, readEventStream, typesOf } from "../support/chat-transports.ts";
import { gate, within } from "../support/deadline.ts";
import { chatRequest, connectRaw, type RawConnection, startWithRaw } from "../support/raw-connection.ts";
import { newRun, openLine } from "../support/run-lines.ts";
import { endlessTurn, say, settled, wait } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, startServer, type TestServer } from "../support/start-server.ts";
import { type StoppedClock, stopClock } from "../support/stopped-clock.ts";

const CHAT = { message: "Hi", stream: true };

test("the head is flushed before the first token, with all that a proxy needs to know", async (t) => {
  const held = gate();
  const server = await startServer(t, { turns: [[wait(held.opened), say("Late")]] });
  const headers = { "accept-encoding": "gzip, br" };
  const answer = await post(server, CHAT, { headers });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("content-type"), "text/event-stream; charset=utf-8");
  assert.equal(answer.headers.get("cache-control"), "no-cache, no-transform");
  assert.equal(answer.headers.get("x-accel-buffering"), "no");
  assert.equal(answer.headers.get("content-encoding"), null);
  assert.ok(answer.headers.get("x-request-id"));
  held.open();
  assert.equal(readEventStream(await answer.text()).at(-1)?.data, "Late");
});

test("each token leaves at once, not with the next", async (t) => {
  const held = gate();
  const server = await startServer(t, { turns: [[say("A"), wait(held.opened), say("B")]] });
  const answer = await post(server, CHAT);
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  const first = await within(Promise.resolve(reader?.read()), "the first token");
  assert.equal(first?.value, 'id: 1\nevent: token\ndata: {"type":"token","data":"A","id":1}\n\n');
  held.open();
  await reader?.cancel();
});

test("a frame is an id, an event and one data line and a blank line, whatever the text holds", () => {
  const data = "a\r\nb\n\nevent: error\ndata: x";
  assert.match(encodeFrame({ type: "token", data, id: 7 }), /^id: 7\nevent: token\ndata: [^\r\n]+\n\n$/);
});

test("there is no [DONE] line: the last frame is the done event", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")]] });
  const text = await (await post(server, CHAT)).text();
  assert.match(text, /id: 2\nevent: done\ndata: \{"type":"done"[^\n]*\}\n\n$/);
  assert.doesNotMatch(text, /\[DONE\]/);
});

test("a silence of PARLEY_KEEP_ALIVE_SECONDS is broken by a comment that clients ignore", async (t) => {
  const held = gate();
  const server = await startServer(t, {
    turns: [[wait(held.opened), say("Late")]],
    env: { PARLEY_KEEP_ALIVE_SECONDS: "0.02" },
  });
  const answer = await post(server, CHAT);
  let text = "";
  for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.split(": keep-alive\n\n").length > 2) held.open();
  }
  assert.ok(text.startsWith(": keep-alive\n\n: keep-alive\n\n"));
  assert.deepEqual(typesOf(readEventStream(text)), ["token", "done"]);
});

test("HTTP/1.0 gets the stream without chunks, up to the end of the connection", async (t) => {
  const { raw } = await startWithRaw(t, { turns: [[say("Fine")]] });
  const [, ...lines] = chatRequest(CHAT);
  await raw.write("POST /api/chat HTTP/1.0", ...lines);
  assert.equal((await raw.answer()).status, 200);
  const text = await raw.until('"finish_reason":"stop","id":2}\n\n');
  assert.deepEqual(typesOf(readEventStream(text)), ["token", "done"]);
  await raw.closed;
});

test("two streams on one connection come one after the other, each whole, whatever their text holds", async (t) => {
  const held = gate();
  const { server, raw } = await startWithRaw(t, {
    turns: [
      [say("Grüße "), wait(held.opened), say("\u{1F642}"), say(" plain")],
      [say("second"), say(" é\u2028")],
    ],
  });
  const asked = server.model.nextAsked();
  const second = server.model.nextAsked();
  const request = chatRequest(CHAT).join("\r\n");
  await raw.write(request + request);
  await within(asked, "the first request");
  // Both run; the second run's events wait until the first response has ended.
  await within(second, "the second request");
  held.open();
  for (const said of ["Grüße \u{1F642} plain", "second é\u2028"]) {
    const { headers } = await raw.answer();
    assert.equal(headers.get("transfer-encoding"), "chunked");
    const events = readEventStream(await dechunked(raw));
    assert.equal(events.at(-1)?.type, "done");
    assert.equal(events.at(-1)?.data, said);
    const tokens = events.filter(({ type }) => type === "token");
    assert.equal(tokens.map(({ data }) => data).join(""), said);
  }
});

/** Decodes a chunked body (RFC 9112, 7.1). */
async function dechunked(raw: RawConnection): Promise<string> {
  let body = "";
  for (;;) {
    const size = Number.parseInt(await raw.until("\r\n"), 16);
    body += await raw.bytes(size);
    assert.equal(await raw.bytes(2), "\r\n");
    if (size === 0) return Buffer.from(body, "latin1").toString();
  }
}

// Clients that stay connected but do not read: the model pauses, memory stays bounded, and finally they are cut.

/** Sends a chat request and never reads the response. */
async function postDeaf(t: Cleanup, server: TestServer, body: object) {
  const raw = await connectRaw(t, server);
  raw.socket.pause();
  await raw.write(...chatRequest(body));
  return raw;
}

/** A WebSocket whose client has sent a message and never reads. */
async function askDeaf(t: Cleanup, server: TestServer) {
  const client = await connect(t, server.socketUrl);
  client.socket.pause();
  client.send({ message: "Hi" });
  return client;
}

/** Each starts a run without reading it, and returns an object that cuts the connection. */
const STREAMS = {
  sse: async (t: Cleanup, server: TestServer) => (await postDeaf(t, server, CHAT)).socket,
  async socket(t: Cleanup, server: TestServer) {
    const { socket } = await askDeaf(t, server);
    return { destroy: () => socket.terminate() };
  },
};

for (const [kind, start] of Object.entries(STREAMS)) {
  test(`a client that does not read holds the model back, and its leaving ends the run (${kind})`, async (t) => {
    const { turn, taken } = endlessTurn();
    const server = await startServer(t, { turns: [turn] });
    const line = await start(t, server);
    const stalledAt = await settled(taken, server);
    assert.ok(stalledAt > 0 && stalledAt < 1000, `${stalledAt} pieces of 64 KiB`);
    line.destroy();
    await within(server.close(), "the end of the run");
    assert.ok(taken() < stalledAt + 100, `${taken()} pieces in the end`);
  });

  test(`a client that takes nothing for PARLEY_SEND_SECONDS is cut, which ends its run (${kind})`, async (t) => {
    const { turn, taken } = endlessTurn();
    const server = await startServer(t, { turns: [turn], env: { PARLEY_SEND_SECONDS: "0.2" } });
    const asked = server.model.nextAsked();
    await start(t, server);
    await within((await asked).aborted, "the end of the run");
    assert.ok(taken() < 1000, `${taken()} pieces of 64 KiB were taken from the model`);
  });
}

/** Closes the server, which waits for its responses to be sent; returns whether a minute of the clock is enough. */
async function closesInAMinute(clock: StoppedClock, server: TestServer): Promise<boolean> {
  let isClosed = false;
  const closed = server.close().then(() => {
    isClosed = true;
  });
  await passMinute(clock, server);
  const wasClosed = isClosed;
  // If the test fails, it must not wait for the stopped clock.
  clock.tick(2_000_000);
  if (wasClosed) await closed;
  return wasClosed;
}

async function passMinute(clock: StoppedClock, { url }: TestServer): Promise<void> {
  for (let second = 0; second < 60; second++) {
    clock.tick(1000);
    await fetch(`${url}/health`).catch(() => {});
  }
}

/** Slightly more than the system's socket buffers hold. */
const LONG = Array.from({ length: 72 }, () => say("x".repeat(64 * 1024)));
const CUT_BEFORE_THE_DRAIN = { PARLEY_SEND_SECONDS: "5", PARLEY_DRAIN_SECONDS: "1000" };

for (const stream of [true, false]) {
  test(`a whole answer does not wait for ever for its reader (stream: ${stream})`, async (t) => {
    const clock = stopClock(t);
    const options = { env: CUT_BEFORE_THE_DRAIN, stateKind: "previous_response_id" } as const;
    const server = await startServer(t, { turns: [LONG], ...options });
    const asked = server.model.nextAsked();
    await postDeaf(t, server, { message: "Hi", stream });
    await asked;
    assert.ok(await closesInAMinute(clock, server), "the client was cut");
  });
}

test("an answer that waited behind another one does not wait for ever for its reader", async (t) => {
  const clock = stopClock(t);
  const first = gate();
  const options = { env: CUT_BEFORE_THE_DRAIN, stateKind: "previous_response_id" } as const;
  const server = await startServer(t, { turns: [[say("A"), wait(first.opened)], LONG], ...options });
  let asked = server.model.nextAsked();
  const raw = await postDeaf(t, server, CHAT);
  await asked;
  asked = server.model.nextAsked();
  await raw.write(...chatRequest({ message: "Hi", stream: false }));
  await asked;
  await passMinute(clock, server);
  first.open();
  const wasCut = await closesInAMinute(clock, server);
  // If the test fails, it must not wait for a client that never reads.
  raw.socket.destroy();
  assert.ok(wasCut, "the client was cut");
});

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

/** A WebSocket whose send buffer is full: the model never ends, and the client does not read. */
async function fullSocket(t: Cleanup) {
  const { turn, taken } = endlessTurn();
  const server = await startServer(t, { turns: [turn] });
  const client = await askDeaf(t, server);
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
