/** Tests the benchmark's own code, whose bugs would only show as wrong figures. Uses the built server. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

const { eventStreamReader, RunReader } = await import(String(new URL("../../bench/server/run.mjs", import.meta.url)));

const frame = (type: string, data: string) => `id: 1\nevent: ${type}\ndata: ${JSON.stringify({ type, data })}\n\n`;

const STREAM = frame("token", "0.a1 ") + frame("token", "1.a2 2.a3 ") + frame("done", "0.a1 1.a2 2.a3 ");

test("the load client reads a run that comes in two pieces, wherever it is cut", () => {
  for (let at = 0; at <= STREAM.length; at++) {
    const run = new RunReader();
    const read = eventStreamReader(run);
    read(STREAM.slice(0, at));
    read(STREAM.slice(at));
    assert.deepEqual([run.tokens, run.isEnded], [3, true], `cut at ${at}`);
  }
});

const BROKEN: [string, string, RegExp][] = [
  ["lost", frame("token", "1.a ") + frame("done", "1.a "), /token 1 came where 0 was due/],
  ["doubled", frame("token", "0.a ") + frame("token", "0.a "), /token 0 came where 1 was due/],
  ["not in the last event", frame("token", "0.a ") + frame("done", ""), /done holds 0 characters/],
  ["replaced by an error", frame("error", "Sorry."), /sent an error: Sorry\./],
];

for (const [what, stream, problem] of BROKEN) {
  test(`the load client fails on a token that is ${what}`, () => {
    assert.throws(() => eventStreamReader(new RunReader())(stream), problem);
  });
}

function bench(...args: string[]) {
  return spawnSync(process.execPath, ["bench/server.mjs", ...args], { encoding: "utf8" });
}

test("the benchmark measures Parley beside the floor over every transport, and prints one table", () => {
  const { status, stdout, stderr } = bench("--quick", "--targets", "floor,parley", "--only", "full-speed,first,whole");
  assert.equal(status, 0, stderr);
  const rows = stdout.trim().split("\n").slice(2);
  assert.equal(rows.length, 6);
  const [door, ...others] = rows.sort((row) => (row.includes("Chat Completions") ? -1 : 1));
  assert.match(door ?? "", /\| Chat Completions +\| +\| [\d.]+ µs +\|/);
  for (const row of others)
    assert.match(row, /^\| .* \| (SSE|WebSocket|JSON) +\| [\d.]+ (µs|ms) +\| [\d.]+ (µs|ms) +\|/);
});

test("the benchmark refuses a name that it does not know in a sentence", () => {
  const { status, stderr } = bench("--only", "speed");
  assert.equal(status, 1);
  assert.match(stderr, /^bench: --only does not know "speed"\. It takes full-speed, [\w, -]+\.\n$/);
});
