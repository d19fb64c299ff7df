import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { WebSocket } from "ws";
import { fieldOf, stateOf, typesOf } from "../support/chat-transports.ts";
import { gate, within } from "../support/deadline.ts";
import { connectRawSocket, startWithRaw, upgrade } from "../support/raw-connection.ts";
import { call, hang, hangQuietly, say, wait } from "../support/scripted-provider.ts";
import { connect, startWithClient } from "../support/socket-client.ts";
import { startServer } from "../support/start-server.ts";
import { deaf } from "../support/test-tools.ts";

const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });

test("a plain message continues from the last answer of its connection, and of no other", async (t) => {
  const turns = [[say("One")], [say("Two")], [say("Three")]];
  const server = await startServer(t, { turns });
  const [first, second] = [await connect(t, server.socketUrl), await connect(t, server.socketUrl)];
  await first.run({ message: "a" });
  await first.run({ message: "b" });
  await second.run({ message: "c" });
  const [, continued, apart] = server.model.asked;
  assert.deepEqual(continued?.messages, [user("a"), assistant("One"), user("b")]);
  assert.deepEqual(apart?.messages, [user("c")]);
});

test("state wins over previous_response_id, and that over what is remembered", async (t) => {
  const turns = [[say("1")], [say("2")], [say("3")], [say("4")]];
  const { server, client } = await startWithClient(t, { turns, stateKind: "previous_response_id" });
  await client.run({ message: "a" });
  await client.run({ message: "b", previous_response_id: "resp_20" });
  const state = { previous_response_id: "resp_30" };
  await client.run({ message: "c", previous_response_id: "resp_20", state });
  await client.run({ message: "d", previous_response_id: null, state: null });
  const ids = server.model.asked.map(({ previousId }) => previousId);
  assert.deepEqual(ids, [undefined, "resp_20", "resp_30", "resp_31"]);
});

test("an empty state starts anew", async (t) => {
  const { server, client } = await startWithClient(t, { turns: [[say("One")], [say("Two")]] });
  await client.run({ message: "a" });
  await client.run({ message: "b", state: {} });
  assert.deepEqual(server.model.asked[1]?.messages, [user("b")]);
});

/** http-errors.test.ts covers other texts. */
const FRAMES: [name: string, frame: string | Buffer][] = [
  ["is null", "null"],
  ["is an array", "[]"],
  ["is binary", Buffer.from('{"message":"Hi"}')],
  ["has an unknown type", '{"type":"reset"}'],
  ["has a type of another type", '{"type":["clear"]}'],
  ["has a previous_response_id that is no string", '{"message":"Hi","previous_response_id":5}'],
];

for (const [name, frame] of FRAMES) {
  test(`a frame that ${name} is invalid_request, and the socket stays open`, async (t) => {
    const { client } = await startWithClient(t, { turns: [[say("Fine")]] });
    client.socket.send(frame);
    const event = await client.next();
    assert.ok(event.type === "error");
    assert.deepEqual([event.code, event.retryable], ["invalid_request", false]);
    assert.equal((await client.run({ message: "Hi" })).at(-1)?.data, "Fine");
  });
}

test("a second message during a run is run_in_progress, and the run goes on", async (t) => {
  const held = gate();
  const { client } = await startWithClient(t, { turns: [[say("A"), wait(held.opened), say("B")]] });
  client.send({ message: "Hi" });
  await client.until("token");
  client.send({ message: "Hello?" });
  const refusal = await client.next();
  assert.ok(refusal.type === "error");
  assert.deepEqual([refusal.code, refusal.retryable], ["run_in_progress", true]);
  held.open();
  assert.equal((await client.until("done")).at(-1)?.data, "AB");
});

test("connections do not wait for each other", async (t) => {
  const held = gate();
  const turns = [[wait(held.opened), say("Late")], [say("Soon")]];
  const server = await startServer(t, { turns });
  const [first, second] = [await connect(t, server.socketUrl), await connect(t, server.socketUrl)];
  first.send({ message: "Hi" });
  await server.model.nextAsked();
  assert.equal((await second.run({ message: "Hi" })).at(-1)?.data, "Soon");
  held.open();
  assert.equal((await first.until("done")).at(-1)?.data, "Late");
});

test("clear forgets the conversation and answers cleared", async (t) => {
  const { server, client } = await startWithClient(t, { turns: [[say("One")], [say("Two")]] });
  await client.run({ message: "a" });
  client.send({ type: "clear" });
  assert.deepEqual(await client.next(), { type: "cleared", data: "" });
  await client.run({ message: "b" });
  assert.deepEqual(server.model.asked[1]?.messages, [user("b")]);
});

test("clear during a run aborts it without a terminal event, and the next message is taken at once", async (t) => {
  const { server, client } = await startWithClient(t, { turns: [[say("Half"), hang], [say("Two")]] });
  client.send({ message: "a" });
  await client.until("token");
  client.send({ type: "clear" });
  client.send({ message: "b" });
  const events = await client.until("done", "error");
  assert.deepEqual(typesOf(events), ["cleared", "token", "done"]);
  await server.model.asked[0]?.aborted;
  assert.deepEqual(server.model.asked[1]?.messages, [user("b")]);
});

test("clear while a model ignores its abort lets nothing of the old run through", async (t) => {
  const held = gate();
  const { client } = await startWithClient(t, {
    turns: [[say("Old"), wait(held.opened), say("Old still")], [say("New")]],
    deaf: true,
  });
  client.send({ message: "a" });
  await client.until("token");
  client.send({ type: "clear" });
  await client.until("cleared");
  held.open();
  const events = await client.run({ message: "b" });
  assert.deepEqual(fieldOf(events, "data"), ["New", "New"]);
});

test("stop ends the run with done and stopped, what was said so far, and a state that goes on", async (t) => {
  const { server, client } = await startWithClient(t, { turns: [[say("Half an "), hang], [say("Next")]] });
  client.send({ message: "a" });
  await client.until("token");
  client.send({ type: "stop" });
  const event = await client.next();
  assert.ok(event.type === "done");
  assert.deepEqual(
    { ...event, state: stateOf(event) },
    {
      type: "done",
      data: "Half an ",
      state: { conversation_history: [user("a"), assistant("Half an ")] },
      finish_reason: "stopped",
      id: 2,
    },
  );
  await server.model.asked[0]?.aborted;
  assert.equal((await client.run({ message: "b" })).at(-1)?.data, "Next");
});

test("stop before the first token ends the run, also with a model that then ends without a word", async (t) => {
  const { server, client } = await startWithClient(t, { turns: [[hangQuietly], [say("Next")]] });
  client.send({ message: "a" });
  await server.model.nextAsked();
  client.send({ type: "stop" });
  const event = await client.next();
  assert.ok(event.type === "done");
  assert.deepEqual([event.data, event.finish_reason], ["", "stopped"]);
  assert.equal((await client.run({ message: "b" })).at(-1)?.data, "Next");
});

for (const stateKind of ["conversation_history", "previous_response_id"] as const) {
  test(`stop during a tool aborts it and leaves no dangling call (${stateKind})`, async (t) => {
    const aborted = gate();
    const { server, client } = await startWithClient(t, {
      turns: [[say("Wait."), call("c1", "forever")], [say("Next")]],
      agent: { tools: [deaf("forever", aborted.open)] },
      stateKind,
    });
    client.send({ message: "a" });
    await client.until("tool_call");
    client.send({ type: "stop" });
    const events = await client.until("done");
    const [result, last] = events.slice(-2);
    await aborted.opened;
    assert.ok(result?.type === "tool_result" && last?.type === "done");
    assert.deepEqual([result.data.id, result.data.status], ["c1", "failed"]);
    assert.deepEqual([last.data, last.finish_reason], ["Wait.", "stopped"]);
    if (stateKind === "previous_response_id") {
      const messages = [{ role: "tool", tool_call_id: "c1", content: "Stopped before it finished.", is_error: true }];
      assert.deepEqual(stateOf(last), { open: { response: "resp_1", messages } });
    }
    const next = await connect(t, server.socketUrl);
    assert.equal((await next.run({ message: "b", state: last.state })).at(-1)?.data, "Next");
  });
}

test("stop with nothing running is ignored", async (t) => {
  const { client } = await startWithClient(t, { turns: [[say("Fine")]] });
  client.send({ type: "stop" });
  const events = await client.run({ message: "Hi" });
  assert.deepEqual(typesOf(events), ["token", "done"]);
});

// The WebSocket protocol below the messages: handshake, pings, frames, close.

test("the handshake answers with the request's id", async (t) => {
  const { raw } = await startWithRaw(t, { turns: [] });
  await raw.write(...upgrade("/ws/chat", "x-request-id: abc"));
  const answer = await raw.answer();
  assert.deepEqual([answer.status, answer.headers.get("x-request-id")], [101, "abc"]);
  raw.socket.destroy();
});

const BROKEN_FRAMES: [name: string, bytes: Buffer, code: number][] = [
  ["is not masked", Buffer.from([0x81, 0x02, 0x7b, 0x7d]), 1002],
  ["has a reserved bit", masked(0xc1, "{}"), 1002],
  ["is no UTF-8", masked(0x81, "\xff\xfe"), 1007],
  ["with its other fragment is no UTF-8", Buffer.concat([masked(0x01, '{"a":"\xc3'), masked(0x80, '("}')]), 1007],
  ["is large and no UTF-8", masked(0x81, `{"a":"${"a".repeat(400_000)}\xff"}`), 1007],
];

for (const [name, bytes, code] of BROKEN_FRAMES) {
  test(`a frame that ${name} closes with ${code}, and the server goes on`, async (t) => {
    const server = await startServer(t, { turns: [[say("Fine")]] });
    const raw = await connectRawSocket(t, server);
    raw.socket.write(bytes);
    const close = await raw.until(String.fromCharCode(code >> 8, code & 0xff));
    assert.equal(close.charCodeAt(0), 0x88);
    const client = await connect(t, server.socketUrl);
    assert.equal((await client.run({ message: "Hi" })).at(-1)?.data, "Fine");
  });
}

test("what follows a text that is no UTF-8 is not answered", async (t) => {
  for (const bad of [masked(0x01, '{"a":"\xc3'), masked(0x01, `{"a":"${"a".repeat(400_000)}\xff`)]) {
    const server = await startServer(t, { turns: [[say("Fine")], [say("Fine")]] });
    const raw = await connectRawSocket(t, server);
    raw.socket.write(Buffer.concat([bad, masked(0x80, '("}'), masked(0x81, '{"message":"Hi"}')]));
    raw.socket.write(masked(0x88, "\x03\xef"));
    await raw.closed;
    assert.equal(server.model.asked.length, 0);
  }
});

test("fragments that cut a letter in two are one text, also with a ping between them", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")], [say("Fine")]] });
  for (const more of ["", "a".repeat(300_000)]) {
    const raw = await connectRawSocket(t, server);
    const text = Buffer.from(`{"message":"é${more}"}`).toString("latin1");
    const at = text.indexOf("\xc3") + 1;
    raw.socket.write(masked(0x01, text.slice(0, at)));
    raw.socket.write(masked(0x89, "?"));
    raw.socket.write(masked(0x80, text.slice(at)));
    await raw.until('"done"');
    assert.equal(server.model.asked.at(-1)?.start.message, `é${more}`);
  }
});

/** Message sizes at which RFC 6455, 5.2, changes the encoding of the length. */
const SIZES = [125, 126, 127, 65_535, 65_536, 65_537];

test("frames of every form of length come whole and in order, with characters of one to four bytes", async (t) => {
  const texts = SIZES.map((size, index) => {
    const empty = JSON.stringify({ type: "token", data: "", id: index + 1 });
    const start = "aé€😀";
    return start + "x".repeat(size - Buffer.byteLength(empty + start));
  });
  const { client } = await startWithClient(t, { turns: [texts.map(say)] });
  const sizes: number[] = [];
  client.socket.on("message", (data: Buffer) => sizes.push(data.byteLength));
  const events = await client.run({ message: "Hi" });
  const tokens = events.filter(({ type }) => type === "token").map(({ data }) => data);
  assert.deepEqual(tokens, texts);
  assert.deepEqual(sizes.slice(0, SIZES.length), SIZES);
});

for (const [name, frames] of [
  ["a frame", [[0x81, 1001]]],
  [
    "a fragment that makes a message",
    [
      [0x01, 600],
      [0x80, 401],
    ],
  ],
] as const) {
  test(`${name} larger than PARLEY_MAX_BODY_BYTES closes with 1009`, async (t) => {
    const server = await startServer(t, { turns: [], env: { PARLEY_MAX_BODY_BYTES: "1000" } });
    const raw = await connectRawSocket(t, server);
    for (const [first, size] of frames) raw.socket.write(masked(first, " ".repeat(size)));
    assert.equal((await raw.until(String.fromCharCode(1009 >> 8, 1009 & 0xff))).charCodeAt(0), 0x88);
  });
}

test("a header that comes byte by byte is read", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")]] });
  const raw = await connectRawSocket(t, server);
  const frame = masked(0x81, JSON.stringify({ message: "x".repeat(70_000) }));
  for (let at = 0; at < 16; at++) await raw.write(frame.subarray(at, at + 1).toString("latin1"));
  raw.socket.write(frame.subarray(16));
  await raw.until('"done"');
});

test("a ping goes out every 30 s; who answers stays, who does not is cut at the next", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const server = await startServer(t, { turns: [[say("Fine")]] });
  const lively = await connect(t, server.socketUrl);
  const deaf = await connect(t, server.socketUrl, { autoPong: false });
  const pinged = [once(lively.socket, "ping"), once(deaf.socket, "ping")];
  t.mock.timers.tick(30_000);
  await within(Promise.all(pinged), "the pings");
  // After this round trip the server has read the pong that was sent before.
  await lively.run({ message: "Hi" });
  t.mock.timers.tick(30_000);
  assert.equal((await within(deaf.closed, "the cut")).code, 1006);
  assert.equal(lively.socket.readyState, WebSocket.OPEN);
});

function masked(first: number, payload: string): Buffer {
  const bytes = Buffer.from(payload, "latin1");
  const long = Buffer.alloc(bytes.length < 126 ? 0 : 8);
  if (long.length > 0) long.writeBigUInt64BE(BigInt(bytes.length));
  const head = [first, 0x80 | (long.length > 0 ? 127 : bytes.length)];
  // A mask of zeros leaves the payload unchanged.
  return Buffer.concat([Buffer.from(head), long, Buffer.alloc(4), bytes]);
}

test("frames are not compressed, also for a client that offers it", async (t) => {
  const server = await startServer(t, { turns: [[say("a".repeat(5000))]] });
  const socket = new WebSocket(server.socketUrl, { perMessageDeflate: true });
  t.after(() => socket.terminate());
  await within(once(socket, "open"), "the handshake");
  assert.equal(socket.extensions, "");
});
