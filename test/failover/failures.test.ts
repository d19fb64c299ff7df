/** What clients see when a server, Redis, or the way between them fails: every event once and in order, or one error. */

import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import type { NumberedEvent } from "../../server/protocol/events.ts";
import { post } from "../support/chat-transports.ts";
import { start } from "../support/command.ts";
import { gate } from "../support/deadline.ts";
import { type RedisServer, startTwo, testWithRedis } from "../support/redis-server.ts";
import { startRelay } from "../support/relay.ts";
import { newRun, openLine } from "../support/run-lines.ts";
import { say, wait } from "../support/scripted-provider.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";

/** Two servers that share a Redis. The model of the first says one word and waits for the gate. */
async function startHeld(t: Cleanup, redis: RedisServer) {
  const held = gate();
  const turns = [[say("One"), wait(held.opened), say(" two"), say(" three.")]];
  const [owner, other] = await startTwo(t, redis, { turns });
  return { owner, other, held };
}

const ids = (events: readonly NumberedEvent[]) => events.map(({ id }) => id);
const texts = (events: readonly NumberedEvent[]) => events.map(({ data }) => data);

/** Resolves when the server says so in its log. */
async function logged(server: { log: readonly string[] }, pattern: RegExp): Promise<void> {
  while (!server.log.some((record) => pattern.test(record))) await new Promise((resolve) => setTimeout(resolve, 20));
}

testWithRedis("a reader elsewhere of a killed server gets what was said and one error to retry", async (t, redis) => {
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

testWithRedis("slots that a killed server held become free", async (t, redis) => {
  const key = "a-key-of-twenty-characters";
  const env = { PARLEY_REDIS_URL: redis.url, PARLEY_API_KEY: key, PARLEY_MAX_RUNS_PER_KEY: "1" };
  const headers = { authorization: `Bearer ${key}` };
  const owner = await start(t, [], { env });
  const other = await startServer(t, { turns: [[say("Mine.")]], env });
  const first = await openLine.sse(t, owner, { message: "Answer slowly", run: newRun() }, { key });
  await first.next();
  const ask = async () => (await post(other, { message: "Hi", stream: false }, { headers })).status;
  assert.equal(await ask(), 429);
  owner.command.kill("SIGKILL");
  let status = await ask();
  for (; status === 429; status = await ask()) await pause(200);
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

testWithRedis("processes with another secret share nothing, although their Redis is the same", async (t, redis) => {
  const secret = (value: string) => ({ env: { PARLEY_REDIS_URL: redis.url, PARLEY_STATE_SECRET: value } });
  const one = await startServer(t, { turns: [[say("A")]], ...secret("the-secret-of-the-first-kind") });
  const other = await startServer(t, { turns: [], ...secret("the-secret-of-another-kind-") });
  const run = newRun();
  await (await openLine.sse(t, one, { message: "Hi", run })).rest();
  assert.equal((await fetch(`${other.url}/api/chat/runs/${run}`)).status, 404);
});

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
