/** Runs that outlive the line they were started on, over SSE and WebSocket. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { NumberedEvent } from "../../server/protocol/events.ts";
import { post } from "../support/chat-transports.ts";
import { gate, within } from "../support/deadline.ts";
import { ask, LINES, newRun, openLine } from "../support/run-lines.ts";
import { call, hang, say, type Turn, think, wait } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { startServer } from "../support/start-server.ts";
import { echo } from "../support/test-tools.ts";

/** Thinking, two tools at once, and text that comes in pieces. */
const TURNS: Turn[] = [
  [think("Hm"), think("m."), say("Let me see."), call("c1", "echo", { text: "a" }), call("c2", "echo", { text: "b" })],
  [say("It "), say("is “a”"), say(" and b 👋.")],
];

const SETUP = { turns: TURNS, agent: { tools: [echo] } };

function timeless(events: readonly NumberedEvent[]): unknown[] {
  return events.map((event) =>
    event.type === "tool_result" ? { ...event, data: { ...event.data, duration_ms: 0 } } : event,
  );
}

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

test("a run goes on while nobody reads, and all of it is there for who comes back", async (t) => {
  const held = gate();
  const server = await startServer(t, { turns: [[say("A"), wait(held.opened), say("B")]] });
  const run = newRun();
  const first = await openLine.socket(t, server, { message: "Hi", run });
  await first.next();
  await first.cut();
  held.open();
  const second = await openLine.sse(t, server, { resume: run, after: 1 });
  assert.deepEqual(
    (await second.rest()).map(({ type }) => type),
    ["token", "done"],
  );
});

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
  assert.deepEqual(
    server.model.asked[1]?.messages.map(({ content }) => content),
    ["Hi", "A", "And?"],
  );
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
  const server = await startServer(t, {
    turns: [[say("A")]],
    env: { PARLEY_API_KEY: "api-key-1" },
  });
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
