/** `parley start --workers`: several processes behind one port, sharing state in Redis. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { post, readEventStream, send } from "../support/chat-transports.ts";
import { REPOSITORY, run, type StartedCommand, start, startInATerminal } from "../support/command.ts";
import { type RedisServer, testWithRedis } from "../support/redis-server.ts";
import { newRun, openLine } from "../support/run-lines.ts";
import type { Cleanup } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";

const startWorkers = (t: Cleanup, redis: RedisServer, count: number) =>
  start(t, ["--workers", String(count)], { env: { PARLEY_REDIS_URL: redis.url } });

/** The value of a series in the metrics. */
async function metric({ url }: StartedCommand, series: string, headers = {}): Promise<number> {
  const page = await (await fetch(`${url}/metrics`, { headers })).text();
  const line = page.split("\n").find((each) => each.startsWith(`${series} `));
  return Number(line?.slice(series.length) ?? Number.NaN);
}

testWithRedis("workers print one summary and one URL, serve one port, and end together with 0", async (t, redis) => {
  const server = await startWorkers(t, redis, 3);
  assert.equal(server.command.stdout.match(/^http:/gm)?.length, 1);
  const answers = await Promise.all(
    Array.from({ length: 12 }, () => post(server, { message: "Hello", stream: false })),
  );
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  assert.equal(
    await metric(server, 'parley_runs_total{transport="json",end="stop"}'),
    12,
    "the page counts all workers",
  );
  server.command.kill("SIGTERM");
  assert.equal((await server.command.end()).code, 0);
});

testWithRedis(
  "an MCP server that each worker has started is up, and the page counts the calls of all",
  async (t, redis) => {
    const env = { PARLEY_REDIS_URL: redis.url };
    const server = await start(t, ["examples/mcp", "--workers", "2"], { cwd: REPOSITORY, env });
    while ((await metric(server, 'parley_info{model="demo"}')) < 2) await pause(50);
    const message = "What is in stock?";
    const answers = Array.from({ length: 12 }, async () => (await post(server, { message, stream: false })).text());
    for (const answer of await Promise.all(answers)) assert.match(answer, /city bike: 4 in stock/);
    assert.equal(await metric(server, 'parley_mcp_up{server="shop"}'), 1);
    assert.equal(await metric(server, 'parley_mcp_call_duration_seconds_count{server="shop",outcome="ok"}'), 12);
  },
);

testWithRedis("a run is read on at whichever worker, each event once and in order", async (t, redis) => {
  const server = await startWorkers(t, redis, 3);
  for (let round = 0; round < 4; round++) {
    const id = newRun();
    const first = await openLine.sse(t, server, { message: "Think about it", run: id });
    await first.next();
    await first.cut();
    const second = await openLine.socket(t, server, { resume: id, after: 1 });
    const ids = (await second.rest()).map((event) => event.id);
    assert.deepEqual(
      ids,
      ids.map((_id, index) => index + 2),
    );
  }
});

testWithRedis("a worker that dies is replaced, and SIGTERM lets running answers finish", async (t, redis) => {
  const server = await startWorkers(t, redis, 2);
  const workers = () =>
    execFileSync("pgrep", ["-P", String(server.command.pid)], { encoding: "utf8" })
      .trim()
      .split("\n");
  const serving = () => metric(server, 'parley_info{model="demo"}');
  while ((await serving()) < 2) await pause(50);
  const [victim] = workers();
  process.kill(Number(victim), "SIGKILL");
  await server.command.printed("stderr", new RegExp(`worker ${victim} ended and is replaced`));
  while ((await serving()) < 2) await pause(50);
  const stream = await post(server, { message: "Show me Markdown", stream: true });
  server.command.kill("SIGTERM");
  assert.equal(readEventStream(await stream.text()).at(-1)?.type, "done");
  assert.equal((await server.command.end()).code, 0);
});

testWithRedis(
  "after PARLEY_STATE_SECRET was rotated, a worker that is replaced shares runs as before",
  async (t, redis) => {
    const key = "a-key-of-twenty-characters";
    const folder = temporaryProject(t, {
      "agent.mjs": "export default { name: 'Acme', model: 'demo' };",
      ".env": "PARLEY_STATE_SECRET=old-secret",
    });
    const env = { PARLEY_REDIS_URL: redis.url, PARLEY_API_KEY: key };
    const server = await start(t, [folder, "--workers", "2"], { env });
    const serving = () => metric(server, 'parley_info{model="demo"}', { authorization: `Bearer ${key}` });
    while ((await serving()) < 2) await pause(50);
    writeFileSync(join(folder, ".env"), "PARLEY_STATE_SECRET=new-secret,old-secret");
    server.command.kill("SIGHUP");
    await server.command.printed("stderr", /(?:SIGHUP: PARLEY_STATE_SECRET has changed[\s\S]*){2}/);
    const [victim] = spawnSync("pgrep", ["-P", String(server.command.pid)], { encoding: "utf8" }).stdout.split("\n");
    process.kill(Number(victim), "SIGKILL");
    await server.command.printed("stderr", new RegExp(`worker ${victim} ended and is replaced`));
    while ((await serving()) < 2) await pause(50);
    const run = newRun();
    await (await openLine.socket(t, server, { message: "Hello", run }, { key })).rest();
    for (let round = 0; round < 4; round++) {
      const line = await openLine.socket(t, server, { resume: run, after: 0 }, { key });
      assert.equal((await line.rest()).at(-1)?.type, "done");
    }
    const inboxes = (await redis.command("PUBSUB", "CHANNELS", "*:inbox:*")).match(/\S+(?=:inbox:)/g) ?? [];
    assert.deepEqual([inboxes.length, new Set(inboxes).size], [2, 1], "two processes, one prefix");
  },
);

testWithRedis(
  "what one worker asks is decided at any of them, once, and goes on to its end in a drain",
  async (t, redis) => {
    const folder = temporaryProject(t, {
      "agent.ts": `
      import { appendFileSync, existsSync } from "node:fs";
      import { setTimeout } from "node:timers/promises";
      import { defineAgent, tool } from "parley-agent";
      const pay = tool({
        name: "pay",
        description: "Pays",
        parameters: { type: "object", properties: {} },
        needsApproval: true,
        async execute() {
          while (!existsSync(new URL("go", import.meta.url))) await setTimeout(20);
          appendFileSync(new URL("paid", import.meta.url), "once");
          return "Paid.";
        },
      });
      export default defineAgent({ name: "Bank", model: "demo", tools: [pay] });`,
    });
    const server = await start(t, [folder, "--workers", "2"], { env: { PARLEY_REDIS_URL: redis.url } });
    const { last } = await send.json(t, server, { message: "Please pay" });
    assert.ok(last.type === "done" && last.finish_reason === "approval_required");
    const approvals = [{ id: last.approvals?.[0]?.id ?? "", approved: true }];
    const decide = Object.values(send).flatMap((it) => [it, it]);
    const outcomes = decide.map((it) => it(t, server, { approvals, state: last.state }));
    await new Promise<void>((resolve) => {
      let refused = 0;
      for (const it of outcomes) void it.then(() => ++refused === 5 && resolve());
    });
    server.command.kill("SIGTERM");
    writeFileSync(join(folder, "go"), "");
    const ends = (await Promise.all(outcomes)).map((it) =>
      it.last.type === "done" ? it.last.finish_reason : it.last.code,
    );
    assert.deepEqual(ends.toSorted(), [...Array(5).fill("approval_used"), "stop"]);
    assert.equal(readFileSync(join(folder, "paid"), "utf8"), "once");
    assert.equal((await server.command.end()).code, 0);
  },
);

testWithRedis("a mistake at the start is one sentence and exit code 1, not one of each worker", async (t, redis) => {
  const { port } = new URL((await start(t, [])).url);
  const env = { PARLEY_REDIS_URL: redis.url };
  const { code, stderr } = await run(["start", "--workers", "3", "--port", port], { env });
  assert.equal(code, 1);
  assert.match(stderr, /^parley: Port \d+ is in use\. [^\n]+\n$/);
});

testWithRedis("workers end, and are not replaced, when their terminal was closed", async (_t, redis) => {
  const stdout = await startInATerminal(["--workers", "2"], { PARLEY_REDIS_URL: redis.url });
  assert.match(stdout, /ended with 0\n$/);
});

testWithRedis("SIGTERM while the second worker still starts ends with 0", async (t, redis) => {
  const server = await startWorkers(t, redis, 2);
  server.command.kill("SIGTERM");
  assert.equal((await server.command.end()).code, 0);
});

testWithRedis("SIGHUP while the second worker still starts reaches it when it serves", async (t, redis) => {
  const server = await startWorkers(t, redis, 2);
  server.command.kill("SIGHUP");
  await server.command.printed("stderr", /(?:SIGHUP: [\s\S]*){2}/);
  assert.doesNotMatch(server.command.stderr, /is replaced/);
});

testWithRedis("SIGTERM while every worker is dead ends the supervisor at once", async (t, redis) => {
  const server = await startWorkers(t, redis, 2);
  const workers = () =>
    spawnSync("pgrep", ["-P", String(server.command.pid)], { encoding: "utf8" }).stdout.match(/\d+/g) ?? [];
  // Enough times that the next replacements wait eight seconds or more.
  for (const replaced of [2, 4, 6]) {
    while (workers().length < 2) await pause(10);
    for (const worker of workers()) process.kill(Number(worker), "SIGKILL");
    while (server.command.stderr.split("is replaced").length <= replaced) await pause(10);
  }
  const startedAt = performance.now();
  server.command.kill("SIGTERM");
  await server.command.end();
  assert.ok(performance.now() - startedAt < 7_000);
});
