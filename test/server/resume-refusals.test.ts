/** Who may not read a run, and what is no longer there to read. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { post } from "../support/chat-transports.ts";
import { gate, within } from "../support/deadline.ts";
import { attachment } from "../support/files.ts";
import { ask, LINES, newRun, openLine, type Wish } from "../support/run-lines.ts";
import { hang, say, wait } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, startServer, type TestServer } from "../support/start-server.ts";

/** Asks over both, and returns the one code that both refuse it with. */
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

/** A run of one token that has not ended. */
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

for (const [name, run, env] of [
  ["without a name", undefined, {}],
  ["with a name and a grace time of 0", newRun(), { PARLEY_RESUME_SECONDS: "0" }],
] as const) {
  for (const kind of LINES) {
    test(`a run ${name} ends with its line at once (${kind})`, async (t) => {
      const server = await startServer(t, { turns: [[say("A"), hang]], env });
      const line = await openLine[kind](t, server, { message: "Hi", ...(run && { run }) });
      await line.next();
      await line.cut();
      await within(Promise.resolve(server.model.asked[0]?.aborted), "the abort");
      if (run === undefined) return;
      const wish = { resume: run, after: 0 };
      assert.deepEqual(await refusalOf(t, server, wish), [404, "run_not_found"]);
    });
  }
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
  // The line is read by now; the end, which repeats the whole answer, lets go of all that came before it.
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
  // Two of these fit: text, state and what an event takes beside them.
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
    const answer = await fetch(`${server.url}/api/chat/runs/${run}`, {
      headers: { "last-event-id": after },
    });
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

const PATHS: [path: string, status: number][] = [
  ["/api/chat/runs", 404],
  ["/api/chat/runs/", 404],
  ["/api/chat/runs/x", 404],
  ["/api/chat/runs/x/", 404],
  ["/api/chat/runs/x/events", 404],
  ["/api/chat/runs/%2e%2e", 404],
  [`/api/chat/runs/${"x".repeat(8000)}`, 404],
  ["/api/chat/runs/__proto__", 404],
  ["/api/chat/runs/x/cancel", 405],
];

for (const [path, status] of PATHS) {
  test(`GET ${path.slice(0, 40)} is ${status}`, async (t) => {
    const server = await startServer(t, { turns: [] });
    const answer = await fetch(`${server.url}${path}`);
    assert.equal(answer.status, status);
    if (status === 405) assert.equal(answer.headers.get("allow"), "POST, OPTIONS");
  });
}
