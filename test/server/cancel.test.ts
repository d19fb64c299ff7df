/** Runs that are cancelled over another connection than the one that reads them. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { tool } from "../../server/agent/tool-definition.ts";
import { textContent } from "../../server/providers/history.ts";
import { createMemoryRunStore, EARLY_CANCEL_MS, EARLY_CANCELS, type MarkKind } from "../../server/runs/run-store.ts";
import { post, readEventStream, TRANSPORTS, type TransportName } from "../support/chat-transports.ts";
import { gate, within } from "../support/deadline.ts";
import { collectGarbage } from "../support/garbage.ts";
import { LINES, newRun, openLine } from "../support/run-lines.ts";
import { call, endlessTurn, hang, type Step, say, wait } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, startServer, type TestServer } from "../support/start-server.ts";
import { eventStream, startUpstream, type UpstreamReply } from "../support/upstream-server.ts";

async function cancel({ url }: TestServer, run: string, key?: string) {
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const answer = await fetch(`${url}/api/chat/runs/${run}/cancel`, { method: "POST", headers });
  return { status: answer.status, body: JSON.parse(await answer.text()) };
}

for (const kind of LINES) {
  test(`cancel ends a run with done and stopped for all who read it, and may be repeated (${kind})`, async (t) => {
    const server = await startServer(t, { turns: [[say("Half"), hang]] });
    const run = newRun();
    const first = await openLine[kind](t, server, { message: "Hi", run });
    await first.next();
    const second = await openLine.sse(t, server, { resume: run, after: 0 });
    for (let round = 0; round < 2; round++) {
      const { status, body } = await cancel(server, run);
      assert.deepEqual([status, body], [200, { status: "cancelled" }]);
    }
    for (const events of [await first.rest(), (await second.rest()).slice(1)]) {
      assert.equal(events.length, 1);
      const [last] = events;
      assert.ok(last?.type === "done");
      assert.deepEqual([last.data, last.finish_reason, last.id], ["Half", "stopped", 2]);
    }
    await within(Promise.resolve(server.model.asked[0]?.aborted), "the abort");
    assert.equal((await cancel(server, run)).body.status, "cancelled");
  });
}

test("a run that nobody reads can be cancelled, and its end is there for who comes back", async (t) => {
  const server = await startServer(t, { turns: [[say("Half"), hang]] });
  const run = newRun();
  const first = await openLine.socket(t, server, { message: "Hi", run });
  await first.next();
  await first.cut();
  assert.equal((await cancel(server, run)).status, 200);
  const [last] = await (await openLine.sse(t, server, { resume: run, after: 1 })).rest();
  assert.equal(last?.type === "done" && last.finish_reason, "stopped");
});

for (const kind of LINES) {
  test(`a run that was cancelled before its message came ends with it, and the model is not asked (${kind})`, async (t) => {
    const server = await startServer(t, { turns: [[say("Other")]] });
    const run = newRun();
    assert.equal((await cancel(server, run)).status, 404);
    // Twice: a client sends a message again after it lost the connection.
    for (let round = 0; round < 2; round++) {
      const line = await openLine[kind](t, server, { message: "Hi", run });
      const [last, ...more] = await line.rest();
      assert.ok(last?.type === "done");
      assert.deepEqual([last.data, last.finish_reason, more], ["", "stopped", []]);
    }
    assert.equal(server.model.asked.length, 0);
    const other = await openLine[kind](t, server, { message: "Hi", run: newRun() });
    const last = (await other.rest()).at(-1);
    assert.equal(last?.type === "done" && last.data, "Other");
    assert.deepEqual((await cancel(server, run)).body, { status: "cancelled" });
  });
}

test("an answer as JSON that was cancelled before its message came says so", async (t) => {
  const server = await startServer(t, { turns: [[say("Other")]] });
  const run = newRun();
  await cancel(server, run);
  const answer = await post(server, { message: "Hi", stream: false, run });
  assert.equal(answer.status, 200);
  assert.equal(JSON.parse(await answer.text()).finish_reason, "stopped");
  assert.equal(server.model.asked.length, 0);
});

test("a key cancels no run of another key, also before that is known", async (t) => {
  const env = { PARLEY_API_KEY: "first-key,second-key" };
  const server = await startServer(t, { turns: [[say("Answered")]], env });
  const run = newRun();
  assert.equal((await cancel(server, run, "second-key")).status, 404);
  const line = await openLine.sse(t, server, { message: "Hi", run }, { key: "first-key" });
  const last = (await line.rest()).at(-1);
  assert.equal(last?.type === "done" && last.data, "Answered");
});

test("cancels of unknown runs count as messages, those of known runs do not and are never refused", async (t) => {
  const key = "a-key-of-the-test";
  const env = { PARLEY_API_KEY: key, PARLEY_RATE_PER_KEY: "3" };
  const server = await startServer(t, { turns: [[say("Half"), hang]], env });

  const run = newRun();
  const line = await openLine.sse(t, server, { message: "Hi", run }, { key });
  await line.next();
  const statuses = [];
  for (let count = 0; count < 3; count++) statuses.push((await cancel(server, newRun(), key)).status);
  assert.deepEqual(statuses, [404, 404, 429]);
  for (let round = 0; round < 2; round++) {
    assert.deepEqual((await cancel(server, run, key)).body, { status: "cancelled" });
  }
  const last = (await line.rest()).at(-1);
  assert.equal(last?.type === "done" && last.finish_reason, "stopped");
});

test("a run that has ended by itself is finished", async (t) => {
  const server = await startServer(t, { turns: [[say("A")]] });
  const run = newRun();
  await (await openLine.sse(t, server, { message: "Hi", run })).rest();
  assert.deepEqual((await cancel(server, run)).body, { status: "finished" });
});

test("an unknown run and one of another key are not found", async (t) => {
  const env = { PARLEY_API_KEY: "first-key,second-key" };
  const server = await startServer(t, { turns: [[say("A"), hang]], env });
  const run = newRun();
  const line = await openLine.sse(t, server, { message: "Hi", run }, { key: "first-key" });
  await line.next();
  for (const [name, key] of [
    [run, "second-key"],
    [newRun(), "first-key"],
  ] as const) {
    const { status, body } = await cancel(server, name, key);
    assert.deepEqual([status, body.error.code], [404, "run_not_found"]);
  }
  assert.equal((await cancel(server, run)).status, 401);
});

test("a run that is held back by a client which does not read can be cancelled", async (t) => {
  const endless = endlessTurn();
  const server = await startServer(t, { turns: [endless.turn] });
  const run = newRun();
  const answer = await post(server, { message: "Hi", stream: true, run });
  assert.equal((await cancel(server, run)).status, 200);
  const last = readEventStream(await answer.text()).at(-1);
  assert.equal(last?.type === "done" && last.finish_reason, "stopped");
});

test("PARLEY_RUN_SECONDS ends a run that is held back by a client which does not read, and gives its place up", async (t) => {
  const env = { PARLEY_RUN_SECONDS: "0.3", PARLEY_MAX_RUNS: "1" };
  const server = await startServer(t, { turns: [endlessTurn().turn, [say("Next")]], env });
  const answer = await post(server, { message: "Hi", stream: true });
  const next = await post(server, { message: "Hi", stream: false });
  assert.equal(JSON.parse(await next.text()).response, "Next");
  await within(Promise.resolve(server.model.asked[0]?.aborted), "the abort");
  const last = readEventStream(await answer.text()).at(-1);
  assert.equal(last?.type === "error" && last.code, "provider_timeout");
});

// How many names, such as those of runs cancelled before their message arrived, are remembered, and for how long.

const MINUTE = 60_000;
const APPROVALS: MarkKind = { purpose: "approvals", max: 2, alone: "refuse" };

test("a cancelled run is remembered for ten minutes from the last time", async () => {
  let now = 0;
  const store = createMemoryRunStore(() => now);
  const mark = (key: string) => store.mark(key, EARLY_CANCEL_MS, EARLY_CANCELS);
  const isMarked = (key: string) => store.isMarked(key, EARLY_CANCELS);
  assert.equal(await mark("a"), "new");
  now = 9 * MINUTE;
  assert.equal(await mark("a"), "known");
  assert.ok(await isMarked("a"));
  now = 18 * MINUTE;
  assert.ok(await isMarked("a"));
  now = 19 * MINUTE;
  assert.equal(await isMarked("a"), false);
  assert.equal(await isMarked("b"), false);
  assert.equal(await mark("a"), "new");
});

test("of too many cancelled runs the oldest are forgotten, and nothing that was marked for another purpose", async () => {
  const store = createMemoryRunStore(() => 0);
  const mark = (key: string) => store.mark(key, EARLY_CANCEL_MS, EARLY_CANCELS);
  const isMarked = (key: string) => store.isMarked(key, EARLY_CANCELS);
  await store.mark("0", MINUTE, APPROVALS);
  for (let n = 0; n < 10_001; n++) await mark(String(n));
  assert.equal(await isMarked("0"), false);
  assert.ok(await isMarked("1"));
  await mark("1");
  await mark("another");
  assert.equal(await isMarked("2"), false);
  assert.ok(await isMarked("1"));
  assert.ok(await store.isMarked("0", APPROVALS));
  assert.equal(await store.isMarked("1", APPROVALS), false);
});

test("a mark that must not be forgotten is refused instead while there are too many", async () => {
  let now = 0;
  const store = createMemoryRunStore(() => now);
  const mark = (key: string, ms: number) => store.mark(key, ms, APPROVALS);
  assert.equal(await mark("a", 2 * MINUTE), "new");
  assert.equal(await mark("b", MINUTE), "new");
  await assert.rejects(mark("c", MINUTE), { code: "overloaded", status: 503 });
  assert.equal(await mark("a", 2 * MINUTE), "known");
  now = MINUTE;
  assert.equal(await mark("c", MINUTE), "new");
  assert.equal(await mark("a", MINUTE), "known");
});

// When a client disconnects, the connection to the model closes within a second, even without garbage collection.

/** Sends a message; returns a function that disconnects. */
const send: Record<TransportName, (t: Cleanup, server: TestServer) => Promise<() => void>> = {
  json: async (_t, server) => leave(server, false),
  sse: async (_t, server) => leave(server, true),
  async socket(t, server) {
    const client = await connect(t, server.socketUrl);
    client.send({ message: "Hi" });
    return () => client.socket.terminate();
  },
};

function leave(server: TestServer, stream: boolean): () => void {
  const leaving = new AbortController();
  post(server, { message: "Hi", stream }, { signal: leaving.signal })
    .then((answer) => answer.text())
    .catch(() => {});
  return () => leaving.abort();
}

const half = eventStream({ choices: [{ index: 0, delta: { content: "Half" }, finish_reason: null }] });

const MOMENTS: [name: string, reply: UpstreamReply][] = [
  ["before the model answers", { headless: true, end: "stall" }],
  ["before the model's first event", { end: "stall" }],
  ["in the middle of the answer", { body: [half], end: "stall" }],
];

for (const transport of TRANSPORTS) {
  for (const [moment, reply] of MOMENTS) {
    test(`a client that leaves ${moment} closes the model's connection (${transport})`, async (t) => {
      await using upstream = await startUpstream(reply);
      const server = await startServer(t, {
        agent: { model: "compatible/test" },
        env: { COMPATIBLE_BASE_URL: upstream.url },
      });
      const asked = upstream.nextCall();
      const goAway = await send[transport](t, server);
      const { closed } = await asked;
      await collectGarbage();
      const start = performance.now();
      goAway();
      assert.equal(await within(closed, "the end of the model's connection"), "aborted");
      t.diagnostic(`closed after ${(performance.now() - start).toFixed(1)} ms`);
    });
  }

  test(`a client that leaves during a tool aborts the tool (${transport})`, async (t) => {
    const started = gate();
    const aborted = gate();
    const slow = tool({
      name: "slow",
      description: "Waits.",
      parameters: { type: "object" },
      execute: (_args, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            aborted.open();
            reject(signal.reason);
          });
          started.open();
        }),
    });
    const server = await startServer(t, { turns: [[call("c1", "slow")]], agent: { tools: [slow] } });
    const goAway = await send[transport](t, server);
    await within(started.opened, "the tool's start");
    await collectGarbage();
    goAway();
    await within(aborted.opened, "the tool's abort");
  });
}

const searching: Step = { type: "hosted_call", call: { id: "h", name: "web_search", arguments: "{}" } };
const found: Step = {
  type: "hosted_result",
  answer: { id: "h", name: "web_search", content: textContent("Found."), failed: false },
  durationMs: 1,
};
const AFTER_A_STOP: readonly [what: string, before: Step[], after: Step[], events: string[]][] = [
  ["a call of the provider that begins after a stop is not shown", [], [searching], ["done"]],
  [
    "a call of the provider that ends after a stop is shown as not finished",
    [searching],
    [found],
    ["tool_result", "done"],
  ],
];
for (const [what, before, after, expected] of AFTER_A_STOP) {
  test(what, async (t) => {
    const stopped = gate();
    const turns = [[say("Half"), ...before, wait(stopped.opened), ...after, say("more")]];
    const server = await startServer(t, { deaf: true, turns });
    const run = newRun();
    const line = await openLine.sse(t, server, { message: "Hi", run });
    await line.next();
    if (before.length > 0) await line.next();
    await fetch(`${server.url}/api/chat/runs/${run}/cancel`, { method: "POST" });
    stopped.open();
    const types = (await line.rest()).map(({ type }) => type);
    assert.deepEqual(types, expected);
  });
}
