/** Approvals over Redis: requested by one process, decided once at another, whatever happens to Redis. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { type Outcome, send } from "../support/chat-transports.ts";
import { NO_REDIS, startRedis, startTwo, testWithRedis } from "../support/redis-server.ts";
import { call, fail, say } from "../support/scripted-provider.ts";
import { type Cleanup, startServer, type TestServer } from "../support/start-server.ts";
import { define } from "../support/test-tools.ts";

const approvals = [{ id: "c1", approved: true }];
const codeOf = ({ last }: Outcome) => (last.type === "error" ? last.code : last.finish_reason);

function bank() {
  const runs: string[] = [];
  const pay = define("pay", (_args, { callId }) => runs.push(callId), { needsApproval: true });
  return { runs, options: { turns: [[call("c1", "pay")], [say("Paid.")], [say("On.")]], agent: { tools: [pay] } } };
}

async function ask(t: Cleanup, server: TestServer) {
  const { last } = await send.json(t, server, { message: "Pay" });
  assert.equal(last.type === "done" && last.finish_reason, "approval_required");
  return last.state;
}

/** Waits until all servers have noticed that Redis is up, or down. */
async function redisIs(up: boolean, ...servers: TestServer[]): Promise<void> {
  const value = `\nparley_redis_up ${Number(up)}`;
  for (const { server } of servers) while (!server.metrics().includes(value)) await pause(20);
}

testWithRedis("what one process asks is decided at another, and by one of them alone", async (t, redis) => {
  const { runs, options } = bank();
  const [one, two] = await startTwo(t, redis, options);
  const state = await ask(t, one);
  const both = await Promise.all([one, two].map((server) => send.socket(t, server, { approvals, state })));
  assert.equal(both.filter((outcome) => codeOf(outcome) === "approval_used").length, 1);
  assert.deepEqual(runs, ["c1"]);
});

testWithRedis("a restart of the server changes nothing, and no secret is needed", async (t, redis) => {
  const { runs, options } = bank();
  const env = { PARLEY_REDIS_URL: redis.url };
  const before = await startServer(t, { ...options, env });
  const state = await ask(t, before);
  await before.close();
  const after = await startServer(t, { ...options, turns: [[say("Paid.")]], env });
  assert.equal(codeOf(await send.json(t, after, { approvals, state })), "stop");
  assert.equal(codeOf(await send.json(t, after, { approvals, state })), "approval_used");
  assert.deepEqual(runs, ["c1"]);
});

testWithRedis("while Redis is away nothing is decided; when it comes back empty, it is too late", async (t, redis) => {
  const { runs, options } = bank();
  const [one] = await startTwo(t, redis, { ...options, env: { PARLEY_STATE_SECRET: "a secret of many characters" } });
  const state = await ask(t, one);
  await redis.kill();
  await redisIs(false, one);
  const away = await send.json(t, one, { approvals, state });
  assert.deepEqual(
    [away.status, codeOf(away), away.last.type === "error" && away.last.retryable],
    [503, "overloaded", true],
  );
  assert.deepEqual(runs, []);
  await redis.restart();
  await redisIs(true, one);
  const late = await send.json(t, one, { approvals, state });
  assert.deepEqual([late.status, codeOf(late)], [409, "approval_expired"]);
  assert.equal((await send.json(t, one, { message: "Well?", state })).last.data, "Paid.");
  assert.deepEqual(runs, []);
});

test("when Redis comes back as it was before the decision, it is too late", { skip: NO_REDIS }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "parley-redis-"));
  const redis = await startRedis(t, "--dir", folder);
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const { runs, options } = bank();
  const one = await startServer(t, { ...options, env: { PARLEY_REDIS_URL: redis.url } });
  const state = await ask(t, one);
  await redis.command("SAVE");
  assert.equal(codeOf(await send.json(t, one, { approvals, state })), "stop");
  await redis.kill();
  await redisIs(false, one);
  await redis.restart();
  await redisIs(true, one);
  assert.equal(codeOf(await send.json(t, one, { approvals, state })), "approval_expired");
  assert.deepEqual(runs, ["c1"]);
});

testWithRedis("a secret that Redis has lost does not make a used decision a new one", async (t, redis) => {
  const { runs, options } = bank();
  const env = { PARLEY_REDIS_URL: redis.url, PARLEY_STATE_SECRET: "a secret of many characters" };
  const before = await startServer(t, { ...options, env });
  const state = await ask(t, before);
  assert.equal(codeOf(await send.json(t, before, { approvals, state })), "stop");
  await before.close();
  for (const key of (await redis.command("KEYS", "*secret")).match(/\S+secret/g) ?? []) await redis.command("DEL", key);
  const after = await startServer(t, { ...options, turns: [[say("Paid.")]], env });
  assert.equal(codeOf(await send.json(t, after, { approvals, state })), "approval_used");
  assert.deepEqual(runs, ["c1"]);
});

testWithRedis("an exchange that is open goes on at another process", async (t, redis) => {
  const { runs, options } = bank();
  const count = define("count", (_args, { callId }) => runs.push(callId));
  const env = { PARLEY_REDIS_URL: redis.url };
  const turns = [[call("c1", "count")], [fail(new Error("down"))]];
  const one = await startServer(t, { ...options, turns, agent: { tools: [count] }, env });
  const two = await startServer(t, { turns: [[say("On.")]], agent: { tools: [count] }, env });
  const { last } = await send.json(t, one, { message: "Count" });
  assert.equal((await send.json(t, two, { continue: true, state: last.state })).last.data, "On.");
  assert.deepEqual(runs, ["c1"]);
});
