/** What clients see when a server, Redis, or the way between them fails: every event once and in order, or one error. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { NumberedEvent } from "../../server/protocol/events.ts";
import { post } from "../support/chat-transports.ts";
import { start } from "../support/command.ts";
import { gate } from "../support/deadline.ts";
import { NO_REDIS, type RedisServer, startRedis } from "../support/redis-server.ts";
import { startRelay } from "../support/relay.ts";
import { newRun, openLine } from "../support/run-lines.ts";
import { say, wait } from "../support/scripted-provider.ts";
import { type Cleanup, type ServerOptions, startServer } from "../support/start-server.ts";

/** Two servers that share a Redis. The model of the first says one word and waits for the gate. */
async function startTwo(t: Cleanup, redis: RedisServer, options: ServerOptions = {}) {
  const held = gate();
  const turns = [[say("One"), wait(held.opened), say(" two"), say(" three.")]];
  const env = { ...options.env, PARLEY_REDIS_URL: redis.url };
  const [owner, other] = await Promise.all([1, 2].map(() => startServer(t, { turns, ...options, env })));
  assert.ok(owner && other);
  return { owner, other, held };
}

const ids = (events: readonly NumberedEvent[]) => events.map(({ id }) => id);
const texts = (events: readonly NumberedEvent[]) => events.map(({ data }) => data);

/** Resolves when the server says so in its log. */
async function logged(server: { log: readonly string[] }, pattern: RegExp): Promise<void> {
  while (!server.log.some((record) => pattern.test(record))) await new Promise((resolve) => setTimeout(resolve, 20));
}

test("a server that is killed: its reader elsewhere gets what was said, and one error that may be retried", {
  skip: NO_REDIS,
}, async (t) => {
  const redis = await startRedis(t);
  const env = { PARLEY_REDIS_URL: redis.url };
  const owner = await start(t, [], { env });
  const other = await startServer(t, { turns: [], env });
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

test("slots that a killed server held become free", { skip: NO_REDIS, timeout: 60_000 }, async (t) => {
  const redis = await startRedis(t);
  const env = { PARLEY_REDIS_URL: redis.url, PARLEY_MAX_RUNS: "1", PARLEY_QUEUE_SECONDS: "40" };
  const owner = await start(t, [], { env });
  const other = await startServer(t, { turns: [[say("Mine.")]], env });
  const first = await openLine.sse(t, owner, { message: "Answer slowly", run: newRun() });
  await first.next();
  owner.command.kill("SIGKILL");
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ message: "Hi", stream: false });
  assert.equal((await fetch(`${other.url}/api/chat`, { method: "POST", headers, body })).status, 200);
});

test("Redis is killed in the middle of an answer: its own reader notices nothing, and chat goes on", {
  skip: NO_REDIS,
}, async (t) => {
  const redis = await startRedis(t);
  const { owner, other, held } = await startTwo(t, redis);
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

test("Redis is killed and started again, empty: what it lost is told of by a code, and new runs are shared again", {
  skip: NO_REDIS,
}, async (t) => {
  const redis = await startRedis(t);
  const { owner, other, held } = await startTwo(t, redis);
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

test("a frozen Redis holds up no answer for longer than its time limit", { skip: NO_REDIS }, async (t) => {
  const redis = await startRedis(t);
  const { owner, held } = await startTwo(t, redis);
  held.open();
  redis.freeze();
  t.after(() => redis.thaw());
  const startedAt = performance.now();
  const events = await (await openLine.sse(t, owner, { message: "Hi", run: newRun() })).rest();
  assert.equal(events.at(-1)?.type, "done");
  assert.ok(performance.now() - startedAt < 5000);
});

test("a Redis whose memory is full: chat goes on, and the log says that Redis cannot be used", {
  skip: NO_REDIS,
}, async (t) => {
  const redis = await startRedis(t);
  const { owner, held } = await startTwo(t, redis);
  held.open();
  await redis.command("CONFIG", "SET", "maxmemory", "1");
  const events = await (await openLine.sse(t, owner, { message: "Hi", run: newRun() })).rest();
  assert.deepEqual(texts(events), ["One", " two", " three.", "One two three."]);
  await logged(owner, /Redis is away/);
});

test("a server that is cut off from Redis answers its own clients; readers elsewhere get one error, and it shares again later", {
  skip: NO_REDIS,
}, async (t) => {
  const redis = await startRedis(t);
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

test("processes with another secret share nothing, although their Redis is the same", { skip: NO_REDIS }, async (t) => {
  const redis = await startRedis(t);
  const secret = (value: string) => ({ env: { PARLEY_REDIS_URL: redis.url, PARLEY_STATE_SECRET: value } });
  const one = await startServer(t, { turns: [[say("A")]], ...secret("the-secret-of-the-first-kind") });
  const other = await startServer(t, { turns: [], ...secret("the-secret-of-another-kind-") });
  const run = newRun();
  await (await openLine.sse(t, one, { message: "Hi", run })).rest();
  assert.equal((await fetch(`${other.url}/api/chat/runs/${run}`)).status, 404);
});

test("a server that stops by a signal leaves its ended runs readable elsewhere", { skip: NO_REDIS }, async (t) => {
  const redis = await startRedis(t);
  const { owner, other, held } = await startTwo(t, redis);
  held.open();
  const run = newRun();
  await (await openLine.sse(t, owner, { message: "Hi", run })).rest();
  await owner.close();
  const second = await openLine.sse(t, other, { resume: run, after: 1 });
  assert.deepEqual(texts(await second.rest()), [" two", " three.", "One two three."]);
});

test("without Redis at the start the server warns and serves; with PARLEY_REDIS_REQUIRED it does not start", {
  skip: NO_REDIS,
}, async (t) => {
  const redis = await startRedis(t);
  await redis.kill();
  const env = { PARLEY_REDIS_URL: redis.url };
  const server = await startServer(t, { turns: [[say("A")]], env });
  assert.equal((await post(server, { message: "Hi", stream: false })).status, 200);
  assert.ok(server.log.some((record) => /Redis does not answer at PARLEY_REDIS_URL/.test(record)));
  await assert.rejects(startServer(t, { env: { ...env, PARLEY_REDIS_REQUIRED: "on" } }), /Start it, or set/);
  await assert.rejects(startServer(t, { env: { PARLEY_REDIS_URL: "localhost:6379" } }), /must be a URL such as redis:/);
});
