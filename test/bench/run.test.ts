/** `bench/server.mjs` as it is run, with the built server. */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { writeOrder } from "../../bench/server/order.mjs";
import { connectRaw } from "../support/raw-connection.ts";

function bench(...args: string[]) {
  return spawnSync(process.execPath, ["bench/server.mjs", ...args], { encoding: "utf8" });
}

test("the benchmark measures Parley beside the floor, over both lines, and writes what it found", (t) => {
  const out = mkdtempSync(join(tmpdir(), "bench-"));
  t.after(() => rmSync(out, { recursive: true }));
  const names = ["--only", "disconnect,startup", "--targets", "parley,floor"];
  const { status, stderr } = bench("--quick", ...names, "--out", out);
  assert.equal(status, 0, stderr);
  const { measurements, goals } = JSON.parse(readFileSync(join(out, "server.json"), "utf8"));
  for (const transport of ["sse", "ws"]) {
    for (const target of ["parley", "floor"]) {
      const found = measurements.filter(
        (one: Record<string, unknown>) => one.transport === transport && one.target === target,
      );
      assert.equal(found.length, 1, `${transport} ${target}`);
      for (const [name, value] of Object.entries(found[0].values)) {
        assert.ok(Number.isFinite(value), `${transport} ${target} ${name}: ${value}`);
      }
    }
  }
  const judged = goals.filter((goal: { reached?: boolean }) => goal.reached !== undefined);
  assert.deepEqual(
    judged.map((goal: { title: string }) => goal.title.replace(/,.*/, "")),
    [...Array(2).fill("disconnect to upstream closed"), ...Array(3).fill("start-up to the first answered request")],
  );
  assert.match(readFileSync(join(out, "server.md"), "utf8"), /\| longest, ms +\|/);
});

const MISTAKES: [string[], RegExp][] = [
  [["--only", "speed"], /--only does not know "speed"\. It takes saturation, /],
  [["--rounds", "0"], /--rounds must be a whole number from 1, but is "0"\./],
];

for (const [args, problem] of MISTAKES) {
  test(`the benchmark refuses ${args.join(" ")} in a sentence`, () => {
    const { status, stderr } = bench(...args);
    assert.equal(status, 1);
    assert.match(stderr, problem);
    assert.doesNotMatch(stderr, /\n {4}at /);
  });
}

test("the fake model sends each token at full speed as an HTTP chunk of its own", async (t) => {
  const model = spawn(process.execPath, ["bench/server/provider.mjs"], {
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  t.after(() => model.kill());
  const [url] = await once(model.stdout ?? assert.fail(), "data");
  const connection = await connectRaw(t, { port: Number(new URL(String(url)).port) });
  const content = writeOrder({ tokens: 200 });
  const body = JSON.stringify({ stream: true, messages: [{ role: "user", content }] });
  const head = ["POST /chat/completions HTTP/1.1", "host: model", `content-length: ${body.length}`];
  await connection.write(...head, "", body);
  await connection.answer();
  const chunks = (await connection.until("\r\n0\r\n\r\n")).split(/^[0-9a-f]+\r\n/m).slice(1, -1);
  const tokens = chunks.map((chunk) => chunk.split('"content":').length - 1);
  assert.deepEqual(tokens, [...Array(200).fill(1), 0]);
});
