/** More runs and sockets than allowed: which wait, which are refused, and that running ones continue. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { WebSocket } from "ws";
import { askFrom, type From, post, send } from "../support/chat-transports.ts";
import { gate, within } from "../support/deadline.ts";
import { attachment } from "../support/files.ts";
import { CHAT_HEAD, chatRequest, connectRaw, startWithRaw } from "../support/raw-connection.ts";
import { hang, say, type Turn, wait } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, startServer, type TestServer } from "../support/start-server.ts";

const PROXY = { PARLEY_TRUSTED_PROXIES: "127.0.0.1" };
const KEYS = { PARLEY_API_KEY: "api-one,api-two", PARLEY_WIDGET_KEY: "widget-key" };

/** A server whose model delays its first answers until the gate opens. */
async function startHeld(t: Cleanup, held: number, env: Record<string, string>) {
  const end = gate();
  t.after(() => end.open());
  const turns: Turn[] = Array.from({ length: held + 4 }, () => [wait(end.opened), say("Fine")]);
  return { server: await startServer(t, { turns, env }), end };
}

/** Settings, the client that uses the limit up, a client that is then refused, and one that is not. */
const SHARES: [name: string, env: Record<string, string>, holder: From, refused: From, other: From][] = [
  ["a key", { ...KEYS, PARLEY_MAX_RUNS_PER_KEY: "1" }, { key: "api-one" }, { key: "api-one" }, { key: "api-two" }],
  [
    "an address",
    { ...KEYS, ...PROXY, PARLEY_MAX_RUNS_PER_ADDRESS: "1" },
    { key: "api-one", address: "203.0.113.1" },
    { key: "api-two", address: "203.0.113.1" },
    { key: "api-two", address: "203.0.113.2" },
  ],
  [
    "an address with a widget key",
    { ...KEYS, ...PROXY, PARLEY_WIDGET_MAX_RUNS_PER_ADDRESS: "1" },
    { key: "widget-key", address: "203.0.113.1" },
    { key: "widget-key", address: "203.0.113.1" },
    { key: "widget-key", address: "203.0.113.2" },
  ],
];

for (const [name, env, holder, refused, other] of SHARES) {
  test(`${name} has a share of the runs: beyond it 429 at once, others are served`, async (t) => {
    const { server, end } = await startHeld(t, 2, env);
    const first = askFrom(server, holder);
    await server.model.nextAsked();
    const answer = await askFrom(server, refused);
    assert.deepEqual([answer.status, answer.headers.get("retry-after")], [429, "2"]);
    const { error } = JSON.parse(await answer.text());
    assert.equal(error.code, "rate_limited");
    const third = askFrom(server, other);
    end.open();
    assert.deepEqual([(await first).status, (await third).status], [200, 200]);
    assert.equal((await askFrom(server, refused)).status, 200, "the share is free again");
  });
}

test("beyond all runs a message waits for its turn, and beyond the queue it is 503 at once", async (t) => {
  const env = { PARLEY_MAX_RUNS: "1", PARLEY_MAX_QUEUED_RUNS: "1", PARLEY_QUEUE_SECONDS: "60" };
  const { server, end } = await startHeld(t, 2, env);
  const running = askFrom(server);
  await server.model.nextAsked();
  // Two requests: one waits in the queue, the other is refused.
  const both = [askFrom(server), askFrom(server)];
  const refused = await within(Promise.race(both), "the refusal");
  assert.deepEqual([refused.status, refused.headers.get("retry-after")], [503, "60"]);
  assert.equal(JSON.parse(await refused.text()).error.code, "overloaded");
  const client = await connect(t, server.socketUrl);
  const event = (await client.run({ message: "Hi" })).at(-1);
  assert.ok(event?.type === "error");
  assert.deepEqual([event.code, event.retryable, event.retry_after], ["overloaded", true, 60]);
  assert.equal(server.model.asked.length, 1);
  end.open();
  assert.equal((await running).status, 200);
  assert.deepEqual((await Promise.all(both)).map(({ status }) => status).sort(), [200, 503]);
  assert.equal((await client.run({ message: "Hi" })).at(-1)?.type, "done");
});

test("who waits too long is refused, and who leaves the queue starts no run", async (t) => {
  const env = { PARLEY_MAX_RUNS: "1", PARLEY_QUEUE_SECONDS: "0.05" };
  const { server, end } = await startHeld(t, 2, env);
  const running = askFrom(server);
  await server.model.nextAsked();
  const late = await askFrom(server);
  assert.deepEqual([late.status, late.headers.get("retry-after")], [503, "1"]);
  end.open();
  assert.equal((await running).status, 200);
  assert.equal(server.model.asked.length, 1);
});

test("a shutdown sends away who waits in the queue", async (t) => {
  const env = { PARLEY_MAX_RUNS: "1", PARLEY_QUEUE_SECONDS: "60", PARLEY_DRAIN_SECONDS: "60" };
  const { server, end } = await startHeld(t, 1, env);
  const running = askFrom(server);
  await server.model.nextAsked();
  const waiting = askFrom(server);
  // Another request would reveal that it is queued; requests to /health give it time to get there.
  await (await fetch(`${server.url}/health`)).text();
  const closed = server.close();
  const answer = await within(waiting, "the refusal");
  assert.equal(answer.status, 503);
  assert.equal(JSON.parse(await answer.text()).error.code, "shutting_down");
  end.open();
  assert.equal((await running).status, 200);
  await closed;
});

test("an address has a share of the sockets, and beyond all the upgrade itself is 503", async (t) => {
  const env = { ...PROXY, PARLEY_MAX_SOCKETS: "2", PARLEY_MAX_SOCKETS_PER_ADDRESS: "1" };
  const server = await startServer(t, { turns: [], env });
  const from = (address: string) => ({ headers: { "x-forwarded-for": address } });
  const first = await connect(t, server.socketUrl, from("203.0.113.1"));
  const refused = await connect(t, server.socketUrl, from("203.0.113.1"));
  const event = await refused.next();
  assert.equal(event.type === "error" && event.code, "rate_limited");
  assert.equal((await refused.closed).code, 4429);
  await connect(t, server.socketUrl, from("203.0.113.2"));
  const third = new WebSocket(server.socketUrl, from("203.0.113.3"));
  const [, answer] = await once(third, "unexpected-response");
  assert.deepEqual([answer.statusCode, answer.headers["retry-after"]], [503, "2"]);
  third.on("error", () => {});
  third.terminate();
  first.socket.close();
  await first.closed;
  // The server notices the end of the connection a little later.
  for (;;) {
    const next = await connect(t, server.socketUrl, from("203.0.113.1")).catch(() => undefined);
    if (next === undefined) continue;
    next.send({ type: "clear" });
    if ((await next.next()).type === "cleared") break;
  }
});

test("with PARLEY_QUEUE_SECONDS=0 no message waits: beyond all runs it is 503 at once", async (t) => {
  const { server, end } = await startHeld(t, 2, { PARLEY_MAX_RUNS: "1", PARLEY_QUEUE_SECONDS: "0" });
  const running = askFrom(server);
  await server.model.nextAsked();
  const refused = await within(askFrom(server), "the refusal");
  assert.equal(refused.status, 503);
  assert.equal(JSON.parse(await refused.text()).error.code, "overloaded");
  end.open();
  assert.equal((await running).status, 200);
});

/** Sends the head of a large message, whose body follows later: it then has a slot or waits for one. */
async function beginLarge(t: Cleanup, server: TestServer, address: string) {
  const raw = await connectRaw(t, server);
  const body = JSON.stringify({ message: "Hi", stream: false, filler: "x".repeat(1_100_000) });
  await raw.write(
    ...CHAT_HEAD,
    `x-forwarded-for: ${address}`,
    `content-length: ${body.length}`,
    "",
    body.slice(0, 100_000),
  );
  return { raw, finish: () => raw.socket.write(body.slice(100_000)) };
}

test("one address has a quarter of the slots of large messages, and others are served meanwhile", async (t) => {
  const turns: Turn[] = Array.from({ length: 3 }, () => [say("Fine")]);
  const server = await startServer(t, { turns, env: { ...PROXY, PARLEY_MAX_LARGE_BODIES: "4" } });
  const first = await beginLarge(t, server, "203.0.113.1");
  const second = await beginLarge(t, server, "203.0.113.1");
  second.finish();
  const other = await beginLarge(t, server, "203.0.113.2");
  other.finish();
  assert.equal((await other.raw.answer()).status, 200);
  assert.equal(server.model.asked.length, 1, "the second message of the first address waits");
  first.finish();
  assert.equal((await first.raw.answer()).status, 200);
  assert.equal((await second.raw.answer()).status, 200);
});

test("64 large messages may wait for a slot, and one more is 503", async (t) => {
  const server = await startServer(t, { turns: [], env: { ...PROXY, PARLEY_MAX_LARGE_BODIES: "1" } });
  for (let number = 0; number <= 64; number++) await beginLarge(t, server, `203.0.113.${number}`);
  const refused = await beginLarge(t, server, "203.0.113.200");
  const answer = await refused.raw.answer();
  assert.equal(answer.status, 503);
  assert.equal(JSON.parse(answer.body).error.code, "overloaded");
});

// Pipelining: a request that arrives before the response to the previous one has ended (RFC 9112, 9.3.2).

/** Longer than a test's deadline: the drain would wait this long for a run that was not released. */
const PATIENT = { PARLEY_DRAIN_SECONDS: "30" };

const requestsIn = ({ log }: TestServer) =>
  log.map((record) => JSON.parse(record)).filter(({ msg }) => msg === "request");

for (const stream of [true, false]) {
  const kind = stream ? "stream" : "JSON";
  test(`a ${kind} answer that waits behind another one is let go when its client leaves`, async (t) => {
    const turns = [
      [say("A"), hang],
      [say("B"), hang],
    ];
    const { server, raw } = await startWithRaw(t, { turns, env: PATIENT });
    const first = server.model.nextAsked();
    await raw.write(...chatRequest({ message: "Hi", stream: true }));
    await first;
    const second = server.model.nextAsked();
    await raw.write(...chatRequest({ message: "Hi", stream }));
    await second;
    raw.socket.destroy();
    await within(server.close(), "the end of the server");
    const [sent, unsent, ...others] = requestsIn(server);
    for (const { route, status } of [sent, unsent]) assert.deepEqual([route, status], ["/api/chat", 200]);
    assert.ok(sent.bytes > 0);
    assert.equal(unsent.bytes, 0, "nothing of it was sent");
    assert.deepEqual(others, []);
  });
}

test("an answer whose turn came is logged once, with the bytes that were its own", async (t) => {
  const { server, raw } = await startWithRaw(t, { turns: [[say("A"), hang]], env: PATIENT });
  await raw.write(
    "GET /widget.js HTTP/1.1",
    "host: 127.0.0.1",
    "",
    chatRequest({ message: "Hi", stream: true }).join("\r\n"),
  );
  const { body } = await raw.answer();
  await raw.until('"data":"A"');
  raw.socket.destroy();
  await within(server.close(), "the end of the server");
  const [first, second, ...others] = requestsIn(server).map(({ bytes }) => bytes);
  assert.ok(first !== undefined && first > body.length, `${first} bytes of the first`);
  assert.ok(second !== undefined && second > 0 && second < 2_000, `${second} of the second`);
  assert.deepEqual(others, []);
});

// The memory limit of all messages together, from their first bytes until they are answered.

const MEBIBYTE = 1024 * 1024;
const ROOM = {
  PARLEY_MAX_BODY_BYTES: `${2 * MEBIBYTE}`,
  PARLEY_MAX_REQUEST_BYTES_TOTAL: `${2 * MEBIBYTE}`,
};

/** Two thirds of the memory limit in base64: a second one does not fit. */
const PDF = attachment("application/pdf", { bytes: MEBIBYTE });
const LARGE = { message: "Look", attachments: [PDF] };

test("while large messages that are being answered fill the memory, others are 503 at once and small ones are served", async (t) => {
  const end = gate();
  t.after(() => end.open());
  const server = await startServer(t, {
    turns: [[wait(end.opened), say("Large")], [say("Small")], [say("Small")], [say("Large")]],
    env: ROOM,
  });
  const asked = server.model.nextAsked();
  const first = send.sse(t, server, LARGE);
  await within(asked, "the first large message");

  const raw = await connectRaw(t, server);
  await raw.write(...CHAT_HEAD, "content-length: 1400000", "expect: 100-continue", "", "");
  const refused = await raw.answer();
  assert.equal(refused.status, 503, "before a byte of the body is asked for");
  assert.equal(JSON.parse(refused.body).error.code, "overloaded");
  assert.ok(Number(refused.headers.get("retry-after")) > 0);
  const chunked = await connectRaw(t, server);
  await chunked.write(...CHAT_HEAD, "transfer-encoding: chunked", "", `180000\r\n${" ".repeat(0x180000)}`);
  assert.equal((await chunked.answer()).status, 503);
  const client = await connect(t, server.socketUrl);
  client.send(LARGE);
  const event = await client.next();
  assert.equal(event.type === "error" && event.code, "overloaded");
  assert.equal((await within(client.closed, "the close")).code, 4503);

  for (const transport of ["json", "socket"] as const) {
    assert.equal((await send[transport](t, server, { message: "Hi" })).last.data, "Small");
  }
  end.open();
  assert.equal((await first).last.data, "Large");
  assert.equal((await send.json(t, server, LARGE)).last.data, "Large", "there is room again");
});

/** Ends of a large message before its answer is complete; each must release its memory. */
const FATES: [name: string, meet: (t: Cleanup, server: TestServer) => Promise<unknown>][] = [
  ["no JSON", (_t, server) => post(server, "[".repeat(1_400_000))],
  [
    "a body that is cut off",
    async (t, server) => {
      const raw = await connectRaw(t, server);
      await raw.write(...CHAT_HEAD, "content-length: 1400000", "", "x".repeat(1_000_000));
      raw.socket.destroy();
    },
  ],
  [
    "a body longer than allowed",
    async (t, server) => {
      const raw = await connectRaw(t, server);
      const chunk = `180000\r\n${" ".repeat(0x180000)}\r\n`;
      await raw.write(...CHAT_HEAD, "transfer-encoding: chunked", "", `${chunk}${chunk}0\r\n\r\n`);
      assert.equal((await raw.answer()).status, 413);
    },
  ],
  [
    "a frame that is cut off",
    async (t, server) => {
      const client = await connect(t, server.socketUrl);
      client.socket.send("x".repeat(1_000_000), { fin: false }, () => client.socket.terminate());
      await client.closed;
    },
  ],
  [
    "a run id that belongs to another message",
    async (_t, server) => {
      const run = "a-name-that-is-taken";
      await post(server, { message: "Hi", stream: true, run });
      assert.equal((await post(server, { ...LARGE, stream: true, run })).status, 400);
    },
  ],
  [
    "a client that leaves a running answer",
    async (t, server) => {
      const asked = server.model.nextAsked();
      const client = await connect(t, server.socketUrl);
      client.send(LARGE);
      const { aborted } = await asked;
      client.socket.terminate();
      await aborted;
    },
  ],
];

for (const [name, meet] of FATES) {
  test(`the room of a large message is free again after ${name}`, async (t) => {
    const end = gate();
    t.after(() => end.open());
    const held = name.includes("running");
    const server = await startServer(t, {
      turns: [held ? [wait(end.opened)] : [say("Fine")], [say("Fine")], [say("Fine")]],
      env: ROOM,
    });
    await within(meet(t, server), name);
    end.open();
    await freed(server);
  });
}

/** Retries, because the server notices a lost connection a little later. */
async function freed(server: TestServer): Promise<void> {
  for (let asked = 0; asked < 500; asked++) {
    const { status } = await post(server, { ...LARGE, stream: false });
    if (status === 200) return;
    assert.equal(status, 503);
  }
  assert.fail("the room was never free again");
}
