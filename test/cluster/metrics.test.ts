/** `GET /metrics` of several workers: whichever answers, it tells of all. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { startWorkers, textOf, type WorkerLine } from "../support/workers.ts";

test("each worker answers with the figures of all", async (t) => {
  const { lines } = await startWorkers(t);
  for (const line of lines) await textOf(await line.chat({ message: "Hello", stream: false }));
  for (const line of lines) {
    const text = await textOf(await line.ask("/metrics"));
    assert.match(text, /^parley_runs_total\{transport="json",end="stop"\} 2$/m);
    assert.match(text, /^parley_run_duration_seconds_bucket\{le="\+Inf"\} 2$/m);
    assert.match(text, /^parley_info\{model="[^"]+"\} 1$/m);
    assert.equal(text.match(/^# TYPE parley_runs_total /gm)?.length, 1);
  }
});

const RUNS = 'parley_runs_total{transport="json",end="stop"}';

const hello = async (worker: WorkerLine) => textOf(await worker.chat({ message: "Hello", stream: false }));

/** How a worker ends; returns how many more answers count than the last scrape saw. */
const ENDS: Record<string, (worker: WorkerLine) => Promise<number>> = {
  "was killed": async ({ pid }) => {
    process.kill(pid, "SIGKILL");
    return 0;
  },
  "ended by itself": async (worker) => {
    await hello(worker);
    await worker.breakDown();
    return 1;
  },
};

test("no counter goes down when a worker ends, and gauges tell of those that run", async (t) => {
  const { lines, line, command } = await startWorkers(t);
  const [stays] = lines;
  let [, ends] = lines;
  const names = /^(?:parley_\w+_(?:total|count|sum|bucket)|process_cpu_seconds_total)/;
  const read = async () => {
    const text = await textOf(await stays.ask("/metrics"));
    const samples = text.split("\n").map((row) => row.split(/ (?=\S+$)/));
    return new Map(samples.map(([name = "", value]) => [name, Number(value)]));
  };
  let [answered, ended] = [0, 0];
  for (const [how, end] of Object.entries(ENDS)) {
    await hello(ends);
    await (await line(ends.pid)).socket(t);
    answered++;
    const before = await read();
    assert.equal(before.get(RUNS), answered, how);
    assert.equal(before.get("parley_sockets_open"), 1);
    answered += await end(ends);
    ended++;
    await command.printed("stderr", new RegExp(`(?:Worker \\d+ ended[^]*){${ended}}`));
    const after = await read();
    assert.equal(after.get(RUNS), answered, how);
    const counters = [...before].filter(([name]) => names.test(name));
    assert.ok(counters.length > 20);
    for (const [name, value] of counters) {
      assert.ok((after.get(name) ?? -1) >= value, `${name} after a worker ${how}`);
    }
    await command.printed("stderr", new RegExp(`Worker ${2 + ended} is listening`));
    ends = await line(undefined, [stays.pid, ends.pid]);
    assert.equal((await read()).get("parley_sockets_open"), 0);
  }
});
