/** The start, the log, the end and the settings of a server with two workers are those of one server. */

import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { run, start } from "../support/command.ts";
import { listen } from "../support/listen.ts";
import { newRun } from "../support/run-lines.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { EventReader, startWorkers, textOf } from "../support/workers.ts";

const HOLD = { message: "Please hold", stream: true };

test("two workers answer under one URL, and each line of the one log says whose it is", async (t) => {
  const { lines, command } = await startWorkers(t);
  for (const line of lines) assert.equal(await line.status("/health"), 200);
  assert.equal(command.stdout.match(/^http:/gm)?.length, 1);
  assert.match(command.stdout, /serve {2}2 workers\nhttp:\/\/127\.0\.0\.1:\d+\/\n$/);
  for (const worker of [1, 2]) {
    await command.printed("stderr", new RegExp(`"worker":${worker},.*"route":"/health"`));
  }
});

test("SIGTERM drains both workers together: a run that is read through the other one ends well, and the exit code is 0", async (t) => {
  const { lines, line, command } = await startWorkers(t);
  const [here, there] = lines;
  const [id, otherHere, otherThere] = [newRun(), await line(here.pid), await line(there.pid)];
  const idle = await (await line(there.pid)).socket(t);
  const own = new EventReader(await here.chat({ ...HOLD, run: id }));
  await own.until("tool_call");
  const relayed = new EventReader(await there.ask(`/api/chat/runs/${id}`));
  await relayed.until("tool_call");
  command.kill("SIGTERM");
  await command.printed("stderr", /Finishing running answers/);
  for (const other of [otherHere, otherThere]) {
    while ((await other.status("/health/ready")) !== 503);
    assert.equal(await other.status("/health"), 200);
    assert.equal((await other.chat({ message: "Hi", stream: false })).statusCode, 503);
  }
  await here.release();
  const end = (await own.until("done")).at(-1);
  assert.match(JSON.stringify(end), /held by/);
  assert.deepEqual((await relayed.until("done")).at(-1), end);
  assert.equal((await idle.closed).code, 1001);
  assert.equal((await command.end()).code, 0);
});

test("a second signal ends all processes at once, and not with 0", async (t) => {
  const { lines, command } = await startWorkers(t);
  const held = new EventReader(await lines[0].chat(HOLD));
  await held.until("tool_call");
  command.kill("SIGINT");
  await command.printed("stderr", /Finishing running answers/);
  command.kill("SIGTERM");
  await assert.rejects(held.next());
  assert.notEqual((await command.end()).code, 0);
});

test("a worker in which something threw is replaced, takes nothing new, and finishes what is running", async (t) => {
  const { lines, line, command } = await startWorkers(t);
  const [here, there] = lines;
  const held = new EventReader(await here.chat(HOLD));
  await held.until("tool_call");
  await here.breakDown();
  await command.printed("stderr", /nobody catches this/);
  await command.printed("stderr", /Worker 3 is listening/);
  await line(undefined, [here.pid, there.pid]);
  await here.release();
  assert.match(JSON.stringify((await held.until("done")).at(-1)), /held by/);
  await command.printed("stderr", /Worker \d+ ended \(exit code 1\)/);
});

test("SIGHUP takes new keys over in all workers, those that start later as well, and a mistake in none", async (t) => {
  const folder = temporaryProject(t, { "more.env": "PARLEY_API_KEY=first-key" });
  const file = join(folder, "more.env");
  const { lines, line, command } = await startWorkers(t, { env: { PARLEY_ENV_FILE: file } });
  const statuses = async (key: string, workers: readonly (typeof lines)[number][]) => {
    const headers = { authorization: `Bearer ${key}` };
    const ask = { method: "POST", headers, body: { message: "", stream: false } };
    return Promise.all(workers.map((worker) => worker.status("/api/chat", ask)));
  };
  assert.deepEqual(await statuses("first-key", lines), [400, 400]);
  const socket = await (await line(lines[1].pid)).socket(t, "?key=first-key");
  writeFileSync(file, "PARLEY_API_KEY=");
  command.kill("SIGHUP");
  await command.printed("stderr", /nothing was changed/);
  assert.deepEqual(await statuses("first-key", lines), [400, 400]);
  writeFileSync(file, "PARLEY_API_KEY=second-key");
  command.kill("SIGHUP");
  await command.printed("stderr", /1 added, 1 removed\); 1 connections and answers were ended/);
  assert.equal((await socket.closed).code, 4401);
  assert.deepEqual(await statuses("first-key", lines), [401, 401]);
  process.kill(lines[0].pid, "SIGKILL");
  await command.printed("stderr", /Worker 3 is listening/);
  const later = await line(undefined, [lines[0].pid, lines[1].pid]);
  assert.deepEqual(await statuses("second-key", [lines[1], later]), [400, 400]);
  assert.deepEqual(await statuses("first-key", [lines[1], later]), [401, 401]);
});

test("a port in use and a project with a mistake end the start with one sentence", async (t) => {
  const { port } = new URL(await listen(t, createServer()));
  const busy = await run(["start", "--workers", "2", "--port", port]);
  assert.equal(busy.code, 1);
  assert.match(busy.stderr, /^parley: Port \d+ is in use\. [^\n]*\n$/);
  const folder = temporaryProject(t, { "agent.ts": "export default { name: 1 };" });
  const broken = await run(["start", folder, "--workers", "2"], { env: { PORT: "0" } });
  assert.deepEqual([broken.code, broken.stdout], [1, ""]);
  assert.match(broken.stderr, /^parley: [^\n]*name[^\n]*\n$/);
});

test("workers that end again and again end the server with a sentence and exit code 1", async (t) => {
  const folder = temporaryProject(t, {
    "agent.ts": `
      import { existsSync } from "node:fs";
      if (!existsSync(new URL("well", import.meta.url))) process.exit(7);
      export default { name: String(process.pid), model: "demo" };`,
    well: "",
  });
  const { command, url } = await start(t, [folder, "--workers", "2"]);
  rmSync(join(folder, "well"));
  const { name } = await (await fetch(`${url}/api/info`)).json();
  process.kill(Number(name), "SIGKILL");
  await command.printed("stderr", /ended \(exit code 7\)\. Another one starts in 2 s\./);
  const { code, stderr } = await command.end();
  assert.equal(code, 1);
  assert.match(stderr, /ended \(exit code 7\), as 4 before it soon after their start/);
});

test("the answer to a message is the worker's that took it, for as many clients as come", async (t) => {
  const { url, lines } = await startWorkers(t);
  const served = new Set<string>();
  const answers = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const agent = await fetch(`${url}/api/info`, { headers: { connection: "close" } });
      served.add((await agent.json()).name);
      return agent.status;
    }),
  );
  assert.deepEqual(new Set(answers), new Set([200]));
  assert.equal(served.size, 2);
  const answer = await lines[0].chat({ message: "Hello", stream: false });
  assert.equal(answer.statusCode, 200);
  await textOf(answer);
});
