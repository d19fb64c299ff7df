/** Runs that are dropped, lost or taken over while clients of other processes read them: no reader waits for ever. */

import assert from "node:assert/strict";
import type { NumberedEvent } from "../../server/protocol/events.ts";
import { fieldOf, post } from "../support/chat-transports.ts";
import { gate, within } from "../support/deadline.ts";
import { type RedisServer, testWithRedis } from "../support/redis-server.ts";
import { newRun, openLine } from "../support/run-lines.ts";
import { call, hang, say, type Turn, wait } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";
import { echo } from "../support/test-tools.ts";

function startWith(t: Cleanup, redis: RedisServer, turns: readonly Turn[], env: Record<string, string> = {}) {
  return startServer(t, { turns, agent: { tools: [echo] }, env: { ...env, PARLEY_REDIS_URL: redis.url } });
}

const codeOf = (event: NumberedEvent | undefined) => (event?.type === "error" ? event.code : event?.type);

/** A run on a WebSocket, which a client of another server reads. */
async function startRead(t: Cleanup, redis: RedisServer) {
  const owner = await startWith(t, redis, [[say("One"), hang]]);
  const other = await startWith(t, redis, []);
  const run = newRun();
  const client = await connect(t, owner.socketUrl);
  client.send({ message: "Hi", run });
  await client.until("token");
  const line = await openLine.sse(t, other, { resume: run, after: 0 });
  await line.next();
  return { owner, client, line };
}

testWithRedis("a conversation that is cleared: its reader elsewhere gets one error at once", async (t, redis) => {
  const { client, line } = await startRead(t, redis);
  client.send({ type: "clear" });
  await client.until("cleared");
  assert.equal(codeOf((await line.rest()).at(-1)), "run_lost");
});

testWithRedis(
  "a claim that Redis does not take back is a record of the log, and a reader elsewhere hears of the end",
  async (t, redis) => {
    const { owner, client, line } = await startRead(t, redis);
    const [, claim = ""] = /(\S+:run:\S+)/.exec(await redis.command("KEYS", "*:run:*")) ?? [];
    await redis.command("DEL", claim);
    await redis.command("RPUSH", claim, "not a claim");
    client.send({ type: "clear" });
    await client.until("cleared");
    // An unhandled rejection would end a host's process, and fails this test.
    assert.equal(codeOf((await line.rest()).at(-1)), "run_lost");
    assert.match(owner.log.filter((record) => record.includes('"failure"')).join(""), /WRONGTYPE/);
  },
);

testWithRedis("a run that is refused at its server: its reader elsewhere gets one error at once", async (t, redis) => {
  const owner = await startWith(t, redis, [[say("One"), hang]], { PARLEY_MAX_RUNS: "1", PARLEY_QUEUE_SECONDS: "2" });
  const other = await startWith(t, redis, []);
  await (await openLine.sse(t, owner, { message: "Hi", run: newRun() })).next();
  const run = newRun();
  const refused = post(owner, { message: "Hi", stream: true, run });
  while (!(await redis.command("KEYS", "*:run:*")).startsWith("*2")) await new Promise(setImmediate);
  const line = await openLine.sse(t, other, { resume: run, after: 0 });
  assert.equal((await refused).status, 503);
  assert.equal(codeOf((await line.rest()).at(-1)), "run_lost");
});

testWithRedis("with PARLEY_RESUME_SECONDS=0 a message sent elsewhere gets the whole answer", async (t, redis) => {
  const held = gate();
  const owner = await startWith(t, redis, [[say("One"), wait(held.opened), say(" two.")]], {
    PARLEY_RESUME_SECONDS: "0",
  });
  const other = await startWith(t, redis, [], { PARLEY_RESUME_SECONDS: "0" });
  const message = { message: "Hi", run: newRun() };
  const first = await openLine.sse(t, owner, message);
  await first.next();
  const second = await openLine.sse(t, other, message);
  await second.next();
  held.open();
  assert.equal((await second.rest()).at(-1)?.data, "One two.");
});

testWithRedis("the same message twice at one server, at once: neither of its clients needs Redis", async (t, redis) => {
  const held = gate();
  const server = await startWith(t, redis, [[say("One"), wait(held.opened), say(" two.")]]);
  const message = { message: "Hi", run: newRun() };
  const lines = await Promise.all([1, 2, 3].map(() => openLine.sse(t, server, message)));
  for (const line of lines) await line.next();
  await redis.kill();
  held.open();
  for (const line of lines) assert.equal((await line.rest()).at(-1)?.data, "One two.");
  assert.equal(server.model.asked.length, 1);
});

testWithRedis("a run whose name another server took ends with run_lost, and the name is taken", async (t, redis) => {
  const held = gate();
  const owner = await startWith(t, redis, [[say("Old"), wait(held.opened), say(" old."), hang]]);
  const other = await startWith(t, redis, [[say("New"), call("c1", "echo", { text: "a" })], [say(" new.")]]);
  const message = { message: "Hi", run: newRun() };
  const first = await openLine.sse(t, owner, message);
  await first.next();
  while (!(await redis.command("KEYS", "*:events:*")).startsWith("*1")) await new Promise(setImmediate);
  // Simulates that the owner was frozen for 30 seconds.
  await redis.command("FLUSHALL");
  const second = await (await openLine.sse(t, other, message)).rest();
  held.open();
  const last = (await first.rest()).at(-1);
  assert.equal(codeOf(last), "run_lost");
  const again = await (await openLine.sse(t, owner, { resume: message.run, after: 1 })).rest();
  assert.deepEqual(again, second.slice(1));
});

testWithRedis("a quiet run whose name was taken ends when Redis is back", async (t, redis) => {
  const owner = await startWith(t, redis, [[say("Old"), hang]]);
  const other = await startWith(t, redis, [[say("New")]]);
  const message = { message: "Hi", run: newRun() };
  const first = await openLine.sse(t, owner, message);
  await first.next();
  while (!(await redis.command("KEYS", "*:events:*")).startsWith("*1")) await new Promise(setImmediate);
  await redis.command("FLUSHALL");
  await (await openLine.sse(t, other, message)).rest();
  await redis.command("CLIENT", "KILL", "TYPE", "normal");
  assert.equal(codeOf((await first.rest()).at(-1)), "run_lost");
});

testWithRedis("after a run was cleared, its name begins anew elsewhere and no old event is read", async (t, redis) => {
  const owner = await startWith(t, redis, [[...Array.from({ length: 30 }, (_, index) => say(`${index} `)), hang]]);
  const other = await startWith(t, redis, [[say("New")]]);
  const run = newRun();
  const client = await connect(t, owner.socketUrl);
  client.send({ message: "Hi", run });
  for (let count = 0; count < 30; count++) await client.until("token");
  client.send({ type: "clear" });
  await client.until("cleared");
  while (!(await redis.command("KEYS", "*:run:*")).startsWith("*0")) await new Promise(setImmediate);
  await (await openLine.sse(t, other, { message: "Hi", run })).rest();
  const line = await openLine.sse(t, await startWith(t, redis, []), { resume: run, after: 0 });
  assert.deepEqual(fieldOf(await within(line.rest(), "the end"), "data"), ["New", "New"]);
});

testWithRedis("stop while Redis is frozen is one coded error", async (t, redis) => {
  const owner = await startWith(t, redis, [[say("One"), hang]]);
  const other = await startWith(t, redis, []);
  const run = newRun();
  await (await openLine.sse(t, owner, { message: "Hi", run })).next();
  const client = await connect(t, other.socketUrl);
  client.send({ type: "resume", run, after: 0 });
  await client.until("token");
  redis.freeze();
  t.after(() => redis.thaw());
  client.send({ type: "stop" });
  const error = (await client.until("error")).at(-1);
  assert.equal(error?.type === "error" && error.code, "run_lost");
});

testWithRedis("a cancel that comes while the message is on its way is not lost", async (t, redis) => {
  const servers = await Promise.all(
    [1, 2].map(() =>
      startWith(
        t,
        redis,
        Array.from({ length: 60 }, () => [say("A"), hang]),
      ),
    ),
  );
  const [one, other] = servers;
  assert.ok(one && other);
  for (let round = 0; round < 30; round++) {
    const run = newRun();
    const opening = openLine.sse(t, one, { message: "Hi", run });
    // A little later each time, so that message and cancel arrive in every possible order.
    for (let turn = 0; turn < round; turn++) await new Promise(setImmediate);
    await fetch(`${other.url}/api/chat/runs/${run}/cancel`, { method: "POST" });
    const last = (await (await opening).rest()).at(-1);
    assert.equal(last?.type === "done" && last.finish_reason, "stopped");
  }
});
