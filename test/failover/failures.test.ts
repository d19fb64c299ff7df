/** Effects for clients when a server, Redis, or their connection fails: every event once and in order, or one error. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { NumberedEvent } from "../../server/protocol/events.ts";
import { post, send } from "../support/chat-transports.ts";
import { start } from "../support/command.ts";
import { gate } from "../support/deadline.ts";
import { NO_REDIS, type RedisServer, startRedis, startTwo, testWithRedis } from "../support/redis-server.ts";
import { startRelay } from "../support/relay.ts";
import { ask, newRun, openLine } from "../support/run-lines.ts";
import { call, hang, say, wait } from "../support/scripted-provider.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";
import { define } from "../support/test-tools.ts";

const KEY = "a-key-of-twenty-characters";

/** The agent that the command serves if there is no project. */
const DEMO = { id: "Parley demo" };

/** Two servers that share a Redis. The first one's model says one word, then waits for the gate. */
async function startHeld(t: Cleanup, redis: RedisServer) {
  const held = gate();
  const turns = [[say("One"), wait(held.opened), say(" two"), say(" three.")]];
  const [owner, other] = await startTwo(t, redis, { turns });
  return { owner, other, held };
}

const ids = (events: readonly NumberedEvent[]) => events.map(({ id }) => id);
const texts = (events: readonly NumberedEvent[]) => events.map(({ data }) => data);

/** Waits until the server has logged this `times` times. */
async function logged(server: { log: readonly string[] }, pattern: RegExp, times = 1): Promise<void> {
  while (server.log.filter((record) => pattern.test(record)).length < times) await pause(20);
}

testWithRedis("a reader elsewhere of a killed server gets what was said and one error to retry", async (t, redis) => {
  const env = { PARLEY_REDIS_URL: redis.url };
  const owner = await start(t, [], { env });
  const other = await startServer(t, { turns: [], env, agent: DEMO });
  const run = newRun();
  const first = await openLine.sse(t, owner, { message: "Answer slowly", run });
  await first.next();
  const second = await openLine.sse(t, other, { resume: run, after: 0 });
  const events = [await second.next(), await second.next()];
  owner.command.kill("SIGKILL");
  events.push(...(await second.rest()));
  assert.deepEqual(
    ids(events),
    ids(events).map((_id, index) => index + 1),
  );
  const last = events.at(-1);
  assert.deepEqual(last?.type === "error" && [last.code, last.retryable], ["run_lost", true]);
});

testWithRedis("servers that stop right after their answers leave no slot of theirs taken", async (t, redis) => {
  const authenticate = () => ({ id: "ada" });
  // With a slow tool, slots are released while the servers close.
  const tools = [define("pay", () => pause(5, "paid"), { needsApproval: true })];
  for (let count = 0; count < 15; count++) {
    const env = { PARLEY_STATE_SECRET: "s".repeat(40), PARLEY_RATE_PER_USER: "0" };
    const turns = [[call("c1", "pay")], [say("Done.")]];
    const servers = await startTwo(t, redis, { turns, agent: { tools }, authenticate, env });
    const { last } = await send.json(t, servers[0], { message: "Pay" });
    assert.ok(last.type === "done", JSON.stringify(last));
    const decided = { approvals: [{ id: "c1", approved: true }], state: last.state };
    await Promise.all([...servers, ...servers].map((server) => send.json(t, server, decided)));
    await Promise.all(servers.map((server) => server.close()));
    assert.equal(await redis.command("KEYS", "*:pool:*"), "*0\r\n");
  }
});

testWithRedis("slots that a killed server held become free", async (t, redis) => {
  const env = { PARLEY_REDIS_URL: redis.url, PARLEY_API_KEY: KEY, PARLEY_MAX_RUNS_PER_KEY: "1" };
  const headers = { authorization: `Bearer ${KEY}` };
  const owner = await start(t, [], { env });
  const other = await startServer(t, { turns: [[say("Mine.")]], env, agent: DEMO });
  const first = await openLine.sse(t, owner, { message: "Answer slowly", run: newRun() }, { key: KEY });
  await first.next();
  const statusElsewhere = async () => (await post(other, { message: "Hi", stream: false }, { headers })).status;
  assert.equal(await statusElsewhere(), 429);
  owner.command.kill("SIGKILL");
  let status = await statusElsewhere();
  for (; status === 429; status = await statusElsewhere()) await pause(200);
  assert.equal(status, 200);
});

testWithRedis("Redis is killed in an answer: its own reader notices nothing, chat goes on", async (t, redis) => {
  const { owner, other, held } = await startHeld(t, redis);
  const run = newRun();
  const first = await openLine.sse(t, owner, { message: "Hi", run });
  const events = [await first.next()];
  await redis.kill();
  await logged(owner, /Redis is away/);
  held.open();
  events.push(...(await first.rest()));
  assert.deepEqual(texts(events), ["One", " two", " three.", "One two three."]);
  const again = await openLine.sse(t, owner, { resume: run, after: 1 });
  assert.deepEqual(texts(await again.rest()), [" two", " three.", "One two three."]);
  assert.equal((await fetch(`${other.url}/api/chat/runs/${run}`)).status, 404, "not known elsewhere");
  assert.match(await (await fetch(`${owner.url}/metrics`)).text(), /^parley_redis_up 0$/m);
});

testWithRedis("Redis is killed and started again, empty: runs that go on are shared again", async (t, redis) => {
  const { owner, other, held } = await startHeld(t, redis);
  const run = newRun();
  const first = await openLine.sse(t, owner, { message: "Hi", run });
  await first.next();
  const second = await openLine.sse(t, other, { resume: run, after: 0 });
  await second.next();
  await redis.kill();
  await logged(other, /Redis is away/);
  await redis.restart();
  await Promise.all([logged(owner, /Redis is back/), logged(other, /Redis is back/)]);
  held.open();
  assert.deepEqual(texts(await second.rest()), [" two", " three.", "One two three."]);
  assert.deepEqual(texts(await first.rest()), [" two", " three.", "One two three."]);
});

testWithRedis("Redis is killed and started again, empty: runs that have ended are shared again", async (t, redis) => {
  const { owner, other, held } = await startHeld(t, redis);
  held.open();
  const run = newRun();
  const message = { message: "Hi", run };
  await (await openLine.sse(t, owner, message)).rest();
  const elsewhere = () => ask(t, other, { resume: run, after: 1 });
  assert.equal((await elsewhere()).status, 200);
  await redis.kill();
  await Promise.all([logged(owner, /Redis is away/), logged(other, /Redis is away/)]);
  await redis.restart();
  await Promise.all([logged(owner, /Redis is back/), logged(other, /Redis is back/)]);
  while ((await elsewhere()).status === 404) await pause(20);
  const second = await openLine.sse(t, other, { resume: run, after: 1 });
  assert.deepEqual(texts(await second.rest()), [" two", " three.", "One two three."]);
  const again = await openLine.socket(t, other, message);
  assert.equal((await again.rest()).at(-1)?.data, "One two three.", "answered once");
});

test("Redis comes back with an older copy: each event is there once", { skip: NO_REDIS }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "parley-redis-"));
  const redis = await startRedis(t, "--dir", folder);
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const held = gate();
  // Too much data for a single Redis command.
  const [a, b] = ["a".repeat(40_000), "b".repeat(40_000)];
  const [owner, other] = await startTwo(t, redis, {
    turns: [[say(a), say(b), wait(held.opened), say("c"), say("d")]],
  });
  const run = newRun();
  const first = await openLine.sse(t, owner, { message: "Hi", run });
  await first.next();
  const elsewhere = (after: number) => openLine.sse(t, other, { resume: run, after });
  const second = await elsewhere(0);
  assert.deepEqual(texts([await second.next(), await second.next()]), [a, b]);
  await redis.command("SAVE");
  held.open();
  const after = ["c", "d", `${a}${b}cd`];
  assert.deepEqual(texts(await second.rest()), after);
  await redis.kill();
  await Promise.all([logged(owner, /Redis is away/), logged(other, /Redis is away/)]);
  await redis.restart();
  await Promise.all([logged(owner, /Redis is back/), logged(other, /Redis is back/)]);
  assert.deepEqual(texts(await (await elsewhere(2)).rest()), after, "all is written again");
  assert.deepEqual(texts(await (await elsewhere(0)).rest()), [a, b, ...after]);
});

testWithRedis(
  "Redis drops the events of a run that has ended: they are written again for who asks for them",
  async (t, redis) => {
    const { owner, other, held } = await startHeld(t, redis);
    held.open();
    const run = newRun();
    await (await openLine.sse(t, owner, { message: "Hi", run })).rest();
    const elsewhere = async () => (await openLine.sse(t, other, { resume: run, after: 1 })).rest();
    const events = await elsewhere();
    const [stream = ""] = (await redis.command("KEYS", "*:events:*")).match(/parley:\S+/) ?? [];
    assert.match(await redis.command("DEL", stream), /^:1\r/);
    assert.deepEqual(await elsewhere(), events);
  },
);

testWithRedis(
  "Redis lacks events of a run: its readers elsewhere learn so, and get nothing behind them",
  async (t, redis) => {
    const [first, second] = [gate(), gate()];
    const turns = [[say("One"), wait(first.opened), say(" two"), wait(second.opened), say(" three.")]];
    const [owner, other] = await startTwo(t, redis, { turns });
    const run = newRun();
    const own = await openLine.sse(t, owner, { message: "Hi", run });
    await own.next();
    const reader = await openLine.sse(t, other, { resume: run, after: 0 });
    assert.equal((await reader.next()).data, "One");
    first.open();
    assert.equal((await reader.next()).data, " two");
    second.open();
    await reader.rest();
    const [stream = ""] = (await redis.command("KEYS", "*:events:*")).match(/parley:\S+/) ?? [];
    assert.match(await redis.command("XDEL", stream, "0-2"), /^:1\r/);
    const late = await openLine.sse(t, other, { resume: run, after: 0 });
    assert.equal((await late.next()).data, "One");
    await assert.rejects(late.next(), "it ends, for a client to come back");
    const refusal = await ask(t, other, { resume: run, after: 1 });
    assert.match(await refusal.text(), /run_expired/);
  },
);

testWithRedis("a frozen Redis holds up no answer for longer than its time limit", async (t, redis) => {
  const { owner, held } = await startHeld(t, redis);
  held.open();
  redis.freeze();
  t.after(() => redis.thaw());
  const startedAt = performance.now();
  const events = await (await openLine.sse(t, owner, { message: "Hi", run: newRun() })).rest();
  assert.equal(events.at(-1)?.type, "done");
  assert.ok(performance.now() - startedAt < 5000);
});

testWithRedis("cut off from Redis: own clients are answered, readers elsewhere get one error", async (t, redis) => {
  const way = await startRelay(t, redis.port);
  const held = gate();
  const turns = [[say("One"), wait(held.opened), say(" two.")], [say("Again.")]];
  const owner = await startServer(t, { turns, env: { PARLEY_REDIS_URL: way.url.replace("http:", "redis:") } });
  const other = await startServer(t, { turns: [], env: { PARLEY_REDIS_URL: redis.url } });
  const run = newRun();
  const first = await openLine.sse(t, owner, { message: "Hi", run });
  await first.next();
  const second = await openLine.sse(t, other, { resume: run, after: 0 });
  await second.next();
  way.freeze();
  const last = (await second.rest()).at(-1);
  assert.equal(last?.type === "error" && last.code, "run_lost");
  held.open();
  assert.deepEqual(texts(await first.rest()), [" two.", "One two."]);
  way.thaw();
  await logged(owner, /Redis is back/);
  const next = newRun();
  await (await openLine.sse(t, owner, { message: "Hi", run: next })).rest();
  assert.deepEqual(texts(await (await openLine.sse(t, other, { resume: next, after: 0 })).rest()), [
    "Again.",
    "Again.",
  ]);
});

testWithRedis("two agents share nothing, although Redis, key and secret are the same", async (t, redis) => {
  const env = {
    PARLEY_REDIS_URL: redis.url,
    PARLEY_API_KEY: KEY,
    PARLEY_STATE_SECRET: "the-secret-of-both",
    PARLEY_RATE_PER_KEY: "1",
    PARLEY_MAX_RUNS_PER_KEY: "1",
  };
  const one = await startServer(t, { turns: [[say("A"), hang]], env, agent: { name: "Production" } });
  const other = await startServer(t, { turns: [[say("B")]], env, agent: { name: "Staging" } });
  const message = { message: "Hi", run: newRun() };
  await (await openLine.sse(t, one, message, { key: KEY })).next();
  assert.equal((await ask(t, other, { resume: message.run, after: 0 }, { key: KEY })).status, 404);
  assert.equal((await (await openLine.sse(t, other, message, { key: KEY })).rest()).at(-1)?.data, "B");
  assert.equal((await ask(t, other, message, { key: KEY })).status, 429, "its own rate");
});

testWithRedis(
  "an agent is the same by its id, and PARLEY_REDIS_PREFIX keeps what is the same apart",
  async (t, redis) => {
    const shared = { PARLEY_REDIS_URL: redis.url, PARLEY_API_KEY: KEY };
    const first = { ...shared, PARLEY_STATE_SECRET: "one-secret" };
    const one = await startServer(t, { turns: [[say("A")]], env: first, agent: { name: "Acme" } });
    const renamed = { agent: { name: "Acme Support", id: "Acme" }, turns: [] };
    const second = { ...shared, PARLEY_STATE_SECRET: "another-secret" };
    const other = await startServer(t, { ...renamed, env: second });
    const apart = await startServer(t, { ...renamed, env: { ...second, PARLEY_REDIS_PREFIX: "parley:staging:" } });
    const run = newRun();
    await (await openLine.sse(t, one, { message: "Hi", run }, { key: KEY })).rest();
    assert.equal((await ask(t, other, { resume: run, after: 0 }, { key: KEY })).status, 200);
    assert.equal((await ask(t, apart, { resume: run, after: 0 }, { key: KEY })).status, 404);
    const keys = await redis.command("KEYS", "*");
    assert.doesNotMatch(keys, new RegExp(`secret-|${KEY}|${run}|[\\r\\n](?!parley:)[a-z]`));
  },
);

testWithRedis(
  "processes that started without Redis share their runs when it comes, or comes empty",
  async (t, redis) => {
    await redis.kill();
    const env = { PARLEY_REDIS_URL: redis.url, PARLEY_API_KEY: KEY };
    const [one, other] = await startTwo(t, redis, { turns: [[say("A")], [say("B")]], env });
    for (const returns of [1, 2]) {
      await redis.restart();
      for (const server of [one, other]) await logged(server, /Redis is back/, returns);
      const run = newRun();
      await (await openLine.sse(t, one, { message: "Hi", run }, { key: KEY })).rest();
      assert.equal((await ask(t, other, { resume: run, after: 0 }, { key: KEY })).status, 200);
      await redis.kill();
      for (const server of [one, other]) await logged(server, /Redis is away/, returns);
    }
  },
);

testWithRedis("a server that stops by a signal leaves its ended runs readable elsewhere", async (t, redis) => {
  const { owner, other, held } = await startHeld(t, redis);
  held.open();
  const run = newRun();
  await (await openLine.sse(t, owner, { message: "Hi", run })).rest();
  await owner.close();
  const second = await openLine.sse(t, other, { resume: run, after: 1 });
  assert.deepEqual(texts(await second.rest()), [" two", " three.", "One two three."]);
});

testWithRedis("without Redis at the start a server warns, or with PARLEY_REDIS_REQUIRED ends", async (t, redis) => {
  await redis.kill();
  const env = { PARLEY_REDIS_URL: redis.url };
  const server = await startServer(t, { turns: [[say("A")]], env });
  assert.equal((await post(server, { message: "Hi", stream: false })).status, 200);
  assert.ok(server.log.some((record) => /Redis does not answer at PARLEY_REDIS_URL/.test(record)));
  await assert.rejects(startServer(t, { env: { ...env, PARLEY_REDIS_REQUIRED: "on" } }), /Start it, or set/);
  await assert.rejects(startServer(t, { env: { PARLEY_REDIS_URL: "localhost:6379" } }), /must be a URL such as redis:/);
});
