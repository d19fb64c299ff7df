/** Runs of several servers with one Redis: a client can resume at any server, and gets each event once and in order. */

import assert from "node:assert/strict";
import type { RunRecord } from "../../server/agent/run-record.ts";
import type { NumberedEvent } from "../../server/protocol/events.ts";
import { fieldOf, post, timeless } from "../support/chat-transports.ts";
import { gate } from "../support/deadline.ts";
import { onceCalled } from "../support/once-called.ts";
import { startTwo, testWithRedis } from "../support/redis-server.ts";
import { ask, LINES, newRun, openLine } from "../support/run-lines.ts";
import { call, endlessTurn, hang, say, settled, type Turn, think, wait } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { startServer } from "../support/start-server.ts";
import { define, echo } from "../support/test-tools.ts";

/** Thinking, two parallel tool calls, and text in several pieces. */
const TURNS: Turn[] = [
  [think("Hm"), think("m."), say("Let me see."), call("c1", "echo", { text: "a" }), call("c2", "echo", { text: "b" })],
  [say("It "), say("is “a”"), say(" and b 👋.")],
];

const SETUP = { turns: TURNS, agent: { tools: [echo] } };

for (const kind of LINES) {
  testWithRedis(
    `a run whose connection is cut after any of its events is read on at another server (${kind})`,
    async (t, redis) => {
      const [alone] = await startTwo(t, redis, SETUP);
      const whole = await (await openLine[kind](t, alone, { message: "Hi" })).rest();
      for (let seen = 0; seen < whole.length; seen++) {
        const [owner, other] = await startTwo(t, redis, SETUP);
        const run = newRun();
        const first = await openLine[kind](t, owner, { message: "Hi", run });
        const events: NumberedEvent[] = [];
        while (events.length < Math.max(seen, 1)) events.push(await first.next());
        await first.cut();
        const again = seen === 0 ? { message: "Hi", run } : { resume: run, after: seen };
        if (seen === 0) events.length = 0;
        const second = await openLine[seen % 2 === 0 ? "sse" : "socket"](t, other, again);
        events.push(...(await second.rest()));
        assert.deepEqual(timeless(events), timeless(whole));
        assert.deepEqual([owner.model.asked.length, other.model.asked.length], [2, 0], "one of them asked the model");
      }
    },
  );
}

testWithRedis("a reader at another server gets tokens as they come, and keeps the run alive", async (t, redis) => {
  const held = gate();
  const [owner, other] = await startTwo(t, redis, {
    turns: [[say("A"), wait(held.opened), say("B")]],
    env: { PARLEY_RESUME_SECONDS: "1" },
  });
  const run = newRun();
  const first = await openLine.sse(t, owner, { message: "Hi", run });
  await first.next();
  const second = await openLine.socket(t, other, { resume: run, after: 0 });
  assert.equal((await second.next()).data, "A");
  await first.cut();
  // Longer than a run without readers is kept.
  await new Promise((resolve) => setTimeout(resolve, 2500));
  held.open();
  assert.deepEqual(fieldOf(await second.rest(), "data"), ["B", "AB"]);
});

testWithRedis("what a tool says while it runs is read on at another server, up to its last word", async (t, redis) => {
  const held = gate();
  const scan = define("scan", async (_args, { progress }) => {
    progress("Page 1");
    await held.opened;
    progress("Page 2");
    return "scanned";
  });
  const [owner, other] = await startTwo(t, redis, {
    turns: [[call("c1", "scan")], [say("Done")]],
    agent: { tools: [scan] },
  });
  const run = newRun();
  const first = await openLine.sse(t, owner, { message: "Hi", run });
  await first.next();
  const { data: said } = await first.next();
  assert.deepEqual(said, { id: "c1", text: "Page 1" });
  await first.cut();
  const second = await openLine.socket(t, other, { resume: run, after: 0 });
  assert.equal((await second.next()).type, "tool_call");
  assert.deepEqual((await second.next()).data, said);
  held.open();
  assert.deepEqual(fieldOf(await second.rest(), "type"), ["tool_progress", "tool_result", "token", "done"]);
});

testWithRedis(
  "a client that stops reading pauses the model, until a client elsewhere reads the run",
  async (t, redis) => {
    const { turn, taken } = endlessTurn();
    const [owner, other] = await startTwo(t, redis, { turns: [turn], env: { PARLEY_RESUME_SECONDS: "1" } });
    const run = newRun();
    const unread = await post(owner, { message: "Hi", stream: true, run });
    t.after(() => unread.body?.cancel());
    const paused = await settled(taken, owner);
    // Each piece is an event. The response may be `run_expired`, because such a fast model's events are soon dropped.
    await ask(t, other, { resume: run, after: paused });
    while (taken() === paused) await new Promise(setImmediate);
  },
);

testWithRedis(
  "an answer that onAnswer has not let pass goes through Redis only after its yes, and its run has one record",
  async (t, redis) => {
    const [asked, held] = [gate(), gate()];
    const { hook: onRunEnd, next } = onceCalled<RunRecord>();
    const records: string[] = [];
    const [owner, other] = await startTwo(t, redis, {
      agent: {
        tools: [echo],
        async onAnswer() {
          asked.open();
          await held.opened;
        },
        onRunEnd(record) {
          records.push(record.run);
          onRunEnd(record);
        },
      },
      turns: [
        [think("Friday?"), say("It may be Friday."), call("c1", "echo", { text: "a" })],
        [say("On Friday.")],
        [say("Bye.")],
      ],
    });
    const traffic = await redis.monitor(t);
    const run = newRun();
    const first = await openLine.sse(t, owner, { message: "When?", run });
    await first.next();
    const second = await openLine.socket(t, other, { resume: run, after: 0 });
    await first.cut();
    await second.next();
    await asked.opened;
    await redis.command("PING");
    assert.match(traffic(), /tool_call/);
    assert.doesNotMatch(traffic(), /Friday/);
    held.open();
    assert.equal((await second.rest()).at(-1)?.data, "On Friday.");
    assert.match(traffic(), /On Friday/);
    await (await openLine.sse(t, other, { resume: run, after: 0 })).rest();
    await (await openLine.sse(t, other, { message: "Bye" })).rest();
    assert.equal((await next()).message, "When?");
    assert.equal((await next()).message, "Bye");
    assert.equal(records.length, 2);
  },
);

testWithRedis("a message under one name is answered once, wherever it arrives and at once", async (t, redis) => {
  const servers = await startTwo(t, redis, { turns: [[say("Once.")]] });
  const run = newRun();
  const lines = await Promise.all(
    [...servers, ...servers].map((server) => openLine.sse(t, server, { message: "Hi", run })),
  );
  const all = await Promise.all(lines.map((line) => line.rest()));
  for (const events of all) assert.deepEqual(events, all[0]);
  assert.equal(
    servers.reduce((sum, { model }) => sum + model.asked.length, 0),
    1,
  );
  const [first] = servers;
  const another = await post(first, { message: "Something else", stream: true, run });
  assert.equal(another.status, 400);
});

testWithRedis("stop and cancel end a run of another server", async (t, redis) => {
  const [owner, other] = await startTwo(t, redis, {
    turns: [
      [say("A"), hang],
      [say("B"), hang],
    ],
  });
  for (const how of ["cancel", "stop"]) {
    const run = newRun();
    const first = await openLine.sse(t, owner, { message: "Hi", run });
    await first.next();
    if (how === "cancel") {
      const cancelled: Response = await fetch(`${other.url}/api/chat/runs/${run}/cancel`, { method: "POST" });
      assert.deepEqual(await cancelled.json(), { status: "cancelled" });
    } else {
      const client = await connect(t, other.socketUrl);
      client.send({ type: "resume", run, after: 0 });
      await client.until("token");
      client.send({ type: "stop" });
      const end = (await client.until("done")).at(-1);
      assert.equal(end?.type === "done" && end.finish_reason, "stopped");
    }
    const last = (await first.rest()).at(-1);
    assert.equal(last?.type === "done" && last.finish_reason, "stopped");
  }
});

testWithRedis("a run that was cancelled elsewhere before its message came ends at once", async (t, redis) => {
  const [one, other] = await startTwo(t, redis, { turns: [[say("A")]] });
  const run = newRun();
  for (const id of [run, "x".repeat(65)]) {
    assert.equal((await fetch(`${one.url}/api/chat/runs/${id}/cancel`, { method: "POST" })).status, 404);
  }
  const [cancels = ""] = (await redis.command("KEYS", "*:cancels")).match(/\S+:cancels/) ?? [];
  assert.match(await redis.command("ZCARD", cancels), /^:1\r/, "no message can have the other name");
  const last = (await (await openLine.sse(t, other, { message: "Hi", run })).rest()).at(-1);
  assert.equal(last?.type === "done" && last.finish_reason, "stopped");
  assert.equal(other.model.asked.length, 0);
});

testWithRedis("of too many runs that are cancelled early, Redis forgets the oldest", async (t, redis) => {
  const server = await startServer(t, { turns: [[say("A")]], env: { PARLEY_REDIS_URL: redis.url } });
  const cancel = (run: string) => fetch(`${server.url}/api/chat/runs/${run}/cancel`, { method: "POST" });
  await cancel(newRun());
  const [cancels = ""] = (await redis.command("KEYS", "*:cancels")).match(/\S+:cancels/) ?? [];
  const later = Date.now() + 3_600_000;
  for (let from = 0; from < 10_000; from += 500) {
    const some = Array.from({ length: 500 }, (_, index) => [later, `made-up-${from + index}`]);
    await redis.command("ZADD", cancels, ...some.flat());
  }
  await cancel(newRun());
  assert.match(await redis.command("ZCARD", cancels), /^:10000\r/);
});

testWithRedis("a run of another key is not known at another server either", async (t, redis) => {
  const env = { PARLEY_API_KEY: "first-key,second-key" };
  const [owner, other] = await startTwo(t, redis, { turns: [[say("A")]], env });
  const run = newRun();
  const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
  await (await post(owner, { message: "Hi", stream: true, run }, bearer("first-key"))).text();
  const read = (key: string) => fetch(`${other.url}/api/chat/runs/${run}`, bearer(key));
  assert.equal((await read("second-key")).status, 404);
  assert.match(await (await read("first-key")).text(), /event: done/);
});
