/** Several servers with one Redis share limits, and what a dead server occupied becomes free. */

import assert from "node:assert/strict";
import { post } from "../support/chat-transports.ts";
import { startTwo, testWithRedis } from "../support/redis-server.ts";
import { newRun, openLine } from "../support/run-lines.ts";
import { hang, say } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { startServer } from "../support/start-server.ts";

/** Behind a proxy, so that a test can use any client address. */
const PROXY = { PARLEY_TRUSTED_PROXIES: "127.0.0.1" };
const from = (address: string, headers: Record<string, string> = {}) => ({
  headers: { "x-forwarded-for": address, ...headers },
});

testWithRedis("messages of one address are counted together, and the wait is named", async (t, redis) => {
  const env = { ...PROXY, PARLEY_RATE_PER_ADDRESS: "4" };
  const [one, other] = await startTwo(t, redis, { turns: Array.from({ length: 8 }, () => [say("Yes")]), env });
  const statuses = [];
  const startedAt = performance.now();
  for (const server of [one, other, one, other, one]) {
    const response = await post(server, { message: "Hi", stream: false }, from("203.0.113.1"));
    statuses.push(response.status);
    if (response.status !== 429) continue;
    // A quarter of a minute after the first one, minus the time that has passed.
    const [wait, passed] = [Number(response.headers.get("retry-after")), (performance.now() - startedAt) / 1000];
    assert.ok(wait <= 15 && wait >= Math.floor(15 - passed), `${wait} s, after ${passed} s`);
  }
  assert.deepEqual(statuses, [200, 200, 200, 200, 429]);
  assert.equal((await post(other, { message: "Hi", stream: false }, from("203.0.113.2"))).status, 200);
});

testWithRedis("answers at once with one key are counted together, and a slot is free everywhere", async (t, redis) => {
  const key = "a-key-of-twenty-characters";
  const env = { PARLEY_API_KEY: key, PARLEY_MAX_RUNS_PER_KEY: "1", PARLEY_REDIS_URL: redis.url };
  const one = await startServer(t, { turns: [[say("A"), hang]], env });
  const other = await startServer(t, { turns: [[say("B")]], env });
  const run = newRun();
  const first = await openLine.sse(t, one, { message: "Hi", run }, { key });
  await first.next();
  const headers = { authorization: `Bearer ${key}` };
  const ask = async () => (await post(other, { message: "Hi", stream: false }, { headers })).status;
  assert.equal(await ask(), 429);
  await fetch(`${other.url}/api/chat/runs/${run}/cancel`, { method: "POST", headers });
  await first.rest();
  // The process releases the slot after the last event.
  let status = await ask();
  while (status === 429) status = await ask();
  assert.equal(status, 200);
});

testWithRedis(
  "each process has PARLEY_MAX_RUNS answers, a queue and PARLEY_MAX_SOCKETS of its own",
  async (t, redis) => {
    const env = { PARLEY_MAX_RUNS: "1", PARLEY_MAX_SOCKETS: "1", PARLEY_QUEUE_SECONDS: "0" };
    const servers = await startTwo(t, redis, { turns: [[say("A"), hang]], env });
    for (const server of servers) {
      const line = await openLine.socket(t, server, { message: "Hi", run: newRun() });
      await line.next();
    }
    for (const server of servers) {
      assert.equal((await post(server, { message: "Hi", stream: false })).status, 503);
      await assert.rejects(connect(t, server.socketUrl), /503/);
    }
  },
);

testWithRedis("sockets of one address are counted together", async (t, redis) => {
  const env = { ...PROXY, PARLEY_MAX_SOCKETS_PER_ADDRESS: "2" };
  const [one, other] = await startTwo(t, redis, { turns: [], env });
  const headers = { "x-forwarded-for": "203.0.113.1" };
  const clients = [await connect(t, one.socketUrl, { headers }), await connect(t, other.socketUrl, { headers })];
  const third = await connect(t, one.socketUrl, { headers });
  assert.equal((await third.closed).code, 4429);
  clients[0]?.socket.close();
  await clients[0]?.closed;
  // The server notices the end, and releases the slot, a little later.
  for (;;) {
    const fourth = await connect(t, other.socketUrl, { headers });
    fourth.send({ type: "clear" });
    const event = await fourth.next();
    if (event.type === "cleared") break;
    assert.equal(event.type === "error" && event.code, "rate_limited");
  }
});

testWithRedis("wrong keys of one address are counted together", async (t, redis) => {
  const env = { ...PROXY, PARLEY_API_KEY: "the-right-key-of-this-server", PARLEY_WRONG_KEYS_PER_ADDRESS: "3" };
  const [one, other] = await startTwo(t, redis, { turns: [], env });
  const guess = (server: typeof one, key: string) =>
    post(server, { message: "Hi", stream: false }, from("203.0.113.1", { authorization: `Bearer ${key}` }));
  const statuses = [];
  for (const server of [one, other, one, other]) statuses.push((await guess(server, "wrong")).status);
  assert.deepEqual(statuses, [401, 401, 401, 429]);
});

testWithRedis("wrong keys that come at once are no more than wrong keys one after another", async (t, redis) => {
  const env = { ...PROXY, PARLEY_API_KEY: "the-right-key-of-this-server", PARLEY_WRONG_KEYS_PER_ADDRESS: "3" };
  const servers = await startTwo(t, redis, { turns: [], env });
  const options = from("203.0.113.1", { authorization: "Bearer wrong" });
  const guesses = Array.from({ length: 40 }, async (_, index) => {
    const server = servers[index % 2] ?? servers[0];
    return (await post(server, { message: "Hi", stream: false }, options)).status;
  });
  const statuses = await Promise.all(guesses);
  assert.equal(statuses.filter((status) => status === 401).length, 3);
});

testWithRedis("while Redis is away each server counts alone and answers", async (t, redis) => {
  const env = { ...PROXY, PARLEY_RATE_PER_ADDRESS: "2" };
  const [one, other] = await startTwo(t, redis, { turns: Array.from({ length: 8 }, () => [say("Yes")]), env });
  await redis.kill();
  const statuses = [];
  for (const server of [one, one, one, other, other, other]) {
    statuses.push((await post(server, { message: "Hi", stream: false }, from("203.0.113.1"))).status);
  }
  assert.deepEqual(statuses, [200, 200, 429, 200, 200, 429]);
});
