/** Runs that outlive the connection that started them, over SSE and WebSocket. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { NumberedEvent, StreamEvent } from "../../server/protocol/events.ts";
import { EventLog, LogBudget, type Reader } from "../../server/runs/event-log.ts";
import { fieldOf, post, timeless } from "../support/chat-transports.ts";
import { gate, within } from "../support/deadline.ts";
import { attachment } from "../support/files.ts";
import { ask, LINES, newRun, openLine, type Wish } from "../support/run-lines.ts";
import { call, hang, say, type Turn, think, wait } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, startServer, type TestServer } from "../support/start-server.ts";
import { echo } from "../support/test-tools.ts";

/** Thinking, two parallel tool calls, and text in several pieces. */
const TURNS: Turn[] = [
  [think("Hm"), think("m."), say("Let me see."), call("c1", "echo", { text: "a" }), call("c2", "echo", { text: "b" })],
  [say("It "), say("is “a”"), say(" and b 👋.")],
];

const SETUP = { turns: TURNS, agent: { tools: [echo] } };

for (const kind of LINES) {
  test(`a run whose line is cut after any of its events is read on without a gap or a double (${kind})`, async (t) => {
    const whole = await (await openLine[kind](t, await startServer(t, SETUP), { message: "Hi" })).rest();
    assert.deepEqual(
      whole.map(({ id }) => id),
      whole.map((_event, index) => index + 1),
    );
    for (let seen = 0; seen < whole.length; seen++) {
      const server = await startServer(t, SETUP);
      const run = newRun();
      const first = await openLine[kind](t, server, { message: "Hi", run });
      const events: NumberedEvent[] = [];
      while (events.length < seen) events.push(await first.next());
      await first.cut();
      const again = seen === 0 ? { message: "Hi", run } : { resume: run, after: seen };
      const second = await openLine[seen % 2 === 0 ? "sse" : "socket"](t, server, again);
      events.push(...(await second.rest()));
      assert.deepEqual(timeless(events), timeless(whole));
      assert.equal(server.model.asked.length, 2, "the model was asked once for each turn");
    }
  });
}

test("the same message sent at once by many is one run, and each gets all of it", async (t) => {
  const server = await startServer(t, { turns: [[say("A"), say("B")]] });
  const run = newRun();
  const lines = await Promise.all(
    ["sse", "socket", "sse", "socket", "sse"].map((kind) =>
      openLine[kind === "sse" ? "sse" : "socket"](t, server, { message: "Hi", run }),
    ),
  );
  const [first, ...others] = await Promise.all(lines.map((line) => line.rest()));
  assert.equal(first?.at(-1)?.data, "AB");
  for (const events of others) assert.deepEqual(events, first);
  assert.equal(server.model.asked.length, 1);
  const again = await post(server, { message: "Hi", run, stream: false });
  assert.equal(JSON.parse(await again.text()).response, "AB");
  assert.equal(server.model.asked.length, 1);
});

test("a second reader follows a run that is being read", async (t) => {
  const held = gate();
  const server = await startServer(t, { turns: [[say("A"), wait(held.opened), say("B")]] });
  const run = newRun();
  const first = await openLine.sse(t, server, { message: "Hi", run });
  await first.next();
  const second = await openLine.socket(t, server, { resume: run, after: 0 });
  assert.equal((await second.next()).data, "A");
  await first.cut();
  held.open();
  assert.equal((await second.rest()).at(-1)?.data, "AB");
});

test("a socket that resumed a run goes on from its state, and answers nothing else meanwhile", async (t) => {
  const held = gate();
  const turns = [[say("A"), wait(held.opened)], [say("B")]];
  const server = await startServer(t, { turns });
  const run = newRun();
  const first = await openLine.sse(t, server, { message: "Hi", run });
  await first.next();
  const client = await connect(t, server.socketUrl);
  client.send({ type: "resume", run, after: 1 });
  for (const message of [{ message: "And?" }, { type: "resume", run, after: 0 }]) {
    client.send(message);
    const event = await client.next();
    assert.equal(event.type === "error" && event.code, "run_in_progress");
  }
  held.open();
  await client.until("done");
  await client.run({ message: "And?" });
  assert.deepEqual(fieldOf(server.model.asked[1]?.messages ?? [], "content"), ["Hi", "A", "And?"]);
});

for (const type of ["stop", "clear"] as const) {
  test(`${type} on a socket that resumed a run ends it`, async (t) => {
    const server = await startServer(t, { turns: [[say("A"), hang]] });
    const run = newRun();
    const first = await openLine.sse(t, server, { message: "Hi", run });
    await first.next();
    await first.cut();
    const client = await connect(t, server.socketUrl);
    client.send({ type: "resume", run, after: 1 });
    client.send({ type });
    assert.equal((await client.next()).type, type === "stop" ? "done" : "cleared");
    await within(Promise.resolve(server.model.asked[0]?.aborted), "the abort");
  });
}

test("while the server drains, a lost run can be read on, but no new one begins", async (t) => {
  const held = gate();
  const turns = [[say("A"), wait(held.opened), say("B")]];
  const server = await startServer(t, { turns, env: { PARLEY_DRAIN_SECONDS: "60" } });
  const run = newRun();
  const first = await openLine.socket(t, server, { message: "Hi", run });
  await first.next();
  await first.cut();
  const closed = server.close();
  assert.equal((await ask(t, server, { message: "Hi", run: newRun() })).status, 503);
  const second = await openLine.sse(t, server, { resume: run, after: 1 });
  held.open();
  assert.equal((await second.rest()).at(-1)?.data, "AB");
  await within(closed, "the end of the server");
});

test("a run that nobody reads holds up the shutdown no longer than its grace time", async (t) => {
  const env = { PARLEY_DRAIN_SECONDS: "60", PARLEY_RESUME_SECONDS: "0.1" };
  const server = await startServer(t, { turns: [[say("A"), hang]], env });
  const first = await openLine.socket(t, server, { message: "Hi", run: newRun() });
  await first.next();
  await first.cut();
  await within(server.close(), "the end of the server");
});

test("a run that has ended and is kept holds up nothing", async (t) => {
  const server = await startServer(t, { turns: [[say("A")]], env: { PARLEY_DRAIN_SECONDS: "60" } });
  await (await openLine.sse(t, server, { message: "Hi", run: newRun() })).rest();
  await within(server.close(), "the end of the server");
});

test("the chat page's key reads a run without an Origin, which a page does not send with a GET", async (t) => {
  const env = { PARLEY_CHAT_KEY: "chat-key-1" };
  const server = await startServer(t, { turns: [[say("A")]], env });
  const run = newRun();
  const key = "chat-key-1";
  const first = await openLine.socket(t, server, { message: "Hi", run }, { key });
  const events = await first.rest();
  const second = await openLine.sse(t, server, { resume: run, after: 0 }, { key });
  assert.deepEqual(await second.rest(), events);
});

test("pages of other sites may send Last-Event-ID and read x-run-id", async (t) => {
  const server = await startServer(t, { turns: [[say("A")]], env: { PARLEY_API_KEY: "api-key-1" } });
  const origin = "https://shop.example";
  const preflight = await fetch(`${server.url}/api/chat/runs/${newRun()}`, {
    method: "OPTIONS",
    headers: { origin, "access-control-request-method": "GET" },
  });
  assert.match(preflight.headers.get("access-control-allow-headers") ?? "", /last-event-id/);
  const headers = { origin, authorization: "Bearer api-key-1" };
  const run = newRun();
  const answer = await post(server, { message: "Hi", stream: true, run }, { headers });
  assert.equal(answer.headers.get("x-run-id"), run);
  assert.match(answer.headers.get("access-control-expose-headers") ?? "", /x-run-id/);
  const head = await fetch(`${server.url}/api/chat/runs/${run}`, { method: "HEAD", headers });
  assert.deepEqual([head.status, head.headers.get("x-run-id")], [200, run]);
});

// Who may not read a run, and what can no longer be read.

/** Sends the request over SSE and WebSocket; returns the error that both give. */
async function refusalOf(
  t: Cleanup,
  server: TestServer,
  wish: Wish,
  key?: string,
): Promise<[status: number, code: string]> {
  const answer = await ask(t, server, wish, key === undefined ? {} : { key });
  const { error } = JSON.parse(await answer.text());
  const client = await connect(t, `${server.socketUrl}${key === undefined ? "" : `?key=${key}`}`);
  client.send("resume" in wish ? { type: "resume", run: wish.resume, after: wish.after } : wish);
  const event = await client.next();
  assert.ok(event.type === "error");
  assert.ok(!("id" in event), "what answers a command has no place in a run");
  assert.equal(event.code, error.code);
  return [answer.status, error.code];
}

/** Starts a run that has produced one token and does not end. */
async function startHalf(t: Cleanup, server: TestServer, key?: string): Promise<string> {
  const run = newRun();
  const options = key === undefined ? {} : { key };
  const line = await openLine.sse(t, server, { message: "Hi", run }, options);
  await line.next();
  return run;
}

const KEYS = { PARLEY_API_KEY: "first-key,second-key" };

test("a run is there for the key that started it and for no other, as if it did not exist", async (t) => {
  const server = await startServer(t, { turns: [[say("A"), hang]], env: KEYS });
  const run = await startHalf(t, server, "first-key");
  const unknown = await refusalOf(t, server, { resume: newRun(), after: 0 }, "second-key");
  assert.deepEqual(unknown, [404, "run_not_found"]);
  assert.deepEqual(await refusalOf(t, server, { resume: run, after: 0 }, "second-key"), unknown);
  assert.deepEqual(await refusalOf(t, server, { resume: run, after: 0 }), [401, "unauthorized"]);
  const own = await openLine.socket(t, server, { resume: run, after: 0 }, { key: "first-key" });
  assert.equal((await own.next()).data, "A");
});

test("two keys that use one name have a run each", async (t) => {
  const turns = [[say("First")], [say("Second")]];
  const server = await startServer(t, { turns, env: KEYS });
  const run = newRun();
  for (const [key, text] of [
    ["first-key", "First"],
    ["second-key", "Second"],
    ["first-key", "First"],
  ] as const) {
    const line = await openLine.sse(t, server, { message: "Hi", run }, { key });
    assert.equal((await line.rest()).at(-1)?.data, text);
  }
});

test("a run that nobody came back to in time is forgotten, and its model request aborted", async (t) => {
  const env = { PARLEY_RESUME_SECONDS: "0.05" };
  const server = await startServer(t, { turns: [[say("A"), hang]], env });
  const run = newRun();
  const line = await openLine.socket(t, server, { message: "Hi", run });
  await line.next();
  await line.cut();
  await within(Promise.resolve(server.model.asked[0]?.aborted), "the abort");
  const wish = { resume: run, after: 1 };
  assert.deepEqual(await refusalOf(t, server, wish), [404, "run_not_found"]);
});

for (const kind of LINES) {
  test(`with a grace time of 0 a run ends with its line at once, also with a name (${kind})`, async (t) => {
    const server = await startServer(t, { turns: [[say("A"), hang]], env: { PARLEY_RESUME_SECONDS: "0" } });
    const run = newRun();
    const line = await openLine[kind](t, server, { message: "Hi", run });
    await line.next();
    await line.cut();
    await within(Promise.resolve(server.model.asked[0]?.aborted), "the abort");
    assert.deepEqual(await refusalOf(t, server, { resume: run, after: 0 }), [404, "run_not_found"]);
  });
}

test("an answer as JSON ends with its line, also with a name", async (t) => {
  const server = await startServer(t, { turns: [[say("A"), hang]] });
  const leaving = new AbortController();
  const asked = server.model.nextAsked();
  const body = { message: "Hi", stream: false, run: newRun() };
  const left = assert.rejects(post(server, body, { signal: leaving.signal }));
  const { aborted } = await asked;
  leaving.abort();
  await left;
  await within(aborted, "the abort");
});

test("what was let go of a long answer is run_expired, and the rest is still there", async (t) => {
  const held = gate();
  const piece = "x".repeat(1000);
  const turns = [[...Array.from({ length: 50 }, () => say(piece)), wait(held.opened), say("End")]];
  const env = { PARLEY_RESUME_BYTES: "20000" };
  const server = await startServer(t, { turns, env, stateKind: "previous_response_id" });
  const run = newRun();
  const line = await openLine.sse(t, server, { message: "Hi", run });
  for (let id = 1; id <= 50; id++) await line.next();
  assert.deepEqual(await refusalOf(t, server, { resume: run, after: 0 }), [409, "run_expired"]);
  const again = { message: "Hi", run };
  assert.deepEqual(await refusalOf(t, server, { ...again, stream: true }), [409, "run_expired"]);
  const rest = await openLine.socket(t, server, { resume: run, after: 49 });
  // The first connection has read all; the final event contains the whole answer, so the log drops all before it.
  const next = await rest.next();
  held.open();
  assert.deepEqual(
    [next, ...(await rest.rest())].map(({ id, type }) => [id, type]),
    [
      [50, "token"],
      [51, "token"],
      [52, "done"],
    ],
  );
});

test("the logs of ended runs make room for others, the oldest first", async (t) => {
  const turns = Array.from({ length: 3 }, () => [say("x".repeat(4000))]);
  // Two of these fit, including text, state and the overhead per event.
  const env = { PARLEY_RESUME_TOTAL_BYTES: "30000" };
  const server = await startServer(t, { turns, env });
  const runs = [newRun(), newRun(), newRun()];
  for (const run of runs) {
    await (await openLine.sse(t, server, { message: "Hi", run })).rest();
  }
  const found: number[] = [];
  for (const resume of runs) found.push((await ask(t, server, { resume, after: 0 })).status);
  assert.deepEqual(found, [404, 200, 200]);
});

const NAMES: [name: string, run: unknown][] = [
  ["too short", "a".repeat(15)],
  ["too long", "a".repeat(65)],
  ["of other characters", `${"a".repeat(20)}/`],
  ["no string", 5],
  ["an object", { toString: "a".repeat(20) }],
];

for (const [name, run] of NAMES) {
  test(`a run id that is ${name} is 400 and names the field, on both`, async (t) => {
    const server = await startServer(t, { turns: [] });
    const refused = await post(server, { message: "Hi", stream: true, run });
    assert.equal(refused.status, 400);
    assert.deepEqual(JSON.parse(await refused.text()).error.param, "/run");
    const client = await connect(t, server.socketUrl);
    for (const message of [
      { message: "Hi", run },
      { type: "resume", run, after: 0 },
    ]) {
      client.send(message);
      const event = await client.next();
      assert.equal(event.type === "error" && event.code, "invalid_request");
    }
  });
}

test("after must be the number of an event that there is", async (t) => {
  const server = await startServer(t, { turns: [[say("A"), hang]] });
  const run = await startHalf(t, server);
  assert.deepEqual(await refusalOf(t, server, { resume: run, after: 2 }), [400, "invalid_request"]);
  for (const after of ["x", "-1", "1.5", "1e3", "9".repeat(20)]) {
    const answer = await fetch(`${server.url}/api/chat/runs/${run}`, { headers: { "last-event-id": after } });
    assert.equal(answer.status, 400, after);
  }
  const client = await connect(t, server.socketUrl);
  for (const after of ["1", -1, 1.5, {}, 2 ** 53]) {
    client.send({ type: "resume", run, after });
    const event = await client.next();
    assert.equal(event.type === "error" && event.code, "invalid_request", String(after));
  }
});

test("who has the last event already gets 204, which ends an EventSource, or an error on the socket", async (t) => {
  const server = await startServer(t, { turns: [[say("A")]] });
  const run = newRun();
  await (await openLine.sse(t, server, { message: "Hi", run })).rest();
  assert.equal((await ask(t, server, { resume: run, after: 2 })).status, 204);
  const client = await connect(t, server.socketUrl);
  client.send({ type: "resume", run, after: 2 });
  const event = await client.next();
  assert.equal(event.type === "error" && event.code, "invalid_request");
});

test("a name belongs to one message", async (t) => {
  const server = await startServer(t, { turns: [[say("A")]] });
  const run = newRun();
  await (await openLine.socket(t, server, { message: "Hi", run })).rest();
  const refused = await post(server, { message: "Ho", stream: true, run });
  assert.equal(refused.status, 400);
  assert.equal(JSON.parse(await refused.text()).error.param, "/run");
});

for (const bytes of [1000, 1024 * 1024]) {
  test(`a name belongs to one message also where another has files of the same name and length (${bytes} bytes)`, async (t) => {
    const server = await startServer(t, { turns: [[say("A")]] });
    const message = { message: "Hi", stream: true, run: newRun() };
    const pdf = attachment("application/pdf", { bytes });
    const other = Buffer.from(String(pdf.data), "base64").fill("x", 100);
    const files = [pdf, { ...pdf, data: other.toString("base64") }];
    const statuses: number[] = [];
    for (const file of [...files, pdf]) {
      const answer = await post(server, { ...message, attachments: [file] });
      await answer.text();
      statuses.push(answer.status);
    }
    assert.deepEqual(statuses, [200, 400, 200], "the first one again is the first one");
    assert.equal(server.model.asked.length, 1);
  });
}

// The event log of one run: what readers get, when the run pauses, and what is dropped.

const KIB = 1024;

const token = (chars: number): StreamEvent => ({ type: "token", data: "x".repeat(chars) });

function createLog({ maxBytes = 100 * KIB, keptBytes = 0, budget = new LogBudget(1000 * KIB) } = {}): EventLog {
  return new EventLog({ maxBytes, keptBytes, budget });
}

/** The event ids of the next batch. */
async function next(reader: Reader): Promise<number[]> {
  const { value = [] } = await within(reader.next(), "the next batch");
  return value.map(({ id }) => id);
}

test("a reader gets what is there at once, then each batch as it is written, and then the end", async () => {
  const log = createLog();
  log.append([token(1), token(1)]);
  const reader = log.read(0, () => {});
  assert.deepEqual(await next(reader), [1, 2]);
  const waiting = next(reader);
  log.append([token(1)]);
  assert.deepEqual(await waiting, [3]);
  assert.equal(reader.isAtEnd, false);
  log.end();
  assert.equal(reader.isAtEnd, true);
  assert.equal((await reader.next()).done, true);
});

test("a reader that is closed while it waits ends, and tells so once", async () => {
  const log = createLog();
  let closed = 0;
  const reader = log.read(0, () => closed++);
  const waiting = reader.next();
  reader.close();
  reader.close();
  assert.equal((await within(waiting, "the end")).done, true);
  assert.equal(closed, 1);
});

test("the run waits when its quickest reader is 64 KiB behind, whatever the others do", async () => {
  const log = createLog({ maxBytes: 1000 * KIB });
  const [quick] = [log.read(0, () => {}), log.read(0, () => {})];
  assert.ok(quick);
  log.append([token(63 * KIB)]);
  assert.equal(log.isFull, false);
  log.append([token(2 * KIB)]);
  assert.equal(log.isFull, true);
  const changed = log.change();
  assert.deepEqual(await next(quick), [1]);
  await within(changed, "room for more");
  assert.equal(log.isFull, false);
});

test("without a reader the run waits when the log is full, and drops nothing", async () => {
  const log = createLog({ maxBytes: 10 * KIB, keptBytes: 5 * KIB });
  log.append([token(6 * KIB)]);
  assert.equal(log.isFull, false);
  log.append([token(6 * KIB)]);
  assert.equal(log.isFull, true);
  assert.deepEqual(await next(log.read(0, () => {})), [1, 2]);
});

test("what all readers have is dropped beyond the part that is kept, but never the newest event", async () => {
  const log = createLog({ maxBytes: 10 * KIB, keptBytes: 5 * KIB });
  const reader = log.read(0, () => {});
  for (let id = 1; id <= 10; id++) {
    log.append([token(2 * KIB)]);
    assert.deepEqual(await next(reader), [id]);
  }
  assert.throws(() => log.read(0, () => {}), { code: "run_expired" });
  assert.throws(() => log.read(11, () => {}), { code: "invalid_request" });
  const kept = await next(log.read("oldest", () => {}));
  assert.ok(kept.length >= 1 && kept.length <= 4, `${kept}`);
  log.append([token(50 * KIB)]);
  assert.deepEqual(await next(reader), [11]);
  assert.deepEqual(await next(log.read("oldest", () => {})), [11]);
});

test("a reader that is slower than the log can wait for fails with run_expired, and the others read on", async () => {
  const log = createLog({ maxBytes: 10 * KIB, keptBytes: 5 * KIB });
  const [quick, slow] = [log.read(0, () => {}), log.read(0, () => {})];
  for (let id = 1; id <= 10; id++) {
    log.append([token(2 * KIB)]);
    assert.deepEqual(await next(quick), [id]);
  }
  await assert.rejects(slow.next(), { code: "run_expired" });
});

test("the memory of all logs is bounded: old logs are dropped for new events, and else the run waits", async () => {
  const budget = new LogBudget(20 * KIB);
  const old = createLog({ maxBytes: 50 * KIB, budget });
  old.append([token(15 * KIB)]);
  old.end();
  let dropped = 0;
  budget.offer(() => {
    dropped++;
    old.forget();
  });
  const log = createLog({ maxBytes: 50 * KIB, budget });
  log.append([token(10 * KIB)]);
  assert.equal(dropped, 1);
  assert.equal(log.isFull, false);
  log.append([token(10 * KIB)]);
  assert.equal(log.isFull, true);
  const changed = log.change();
  const reader = log.read(0, () => {});
  await next(reader);
  await within(changed, "room for more");
});
