/** The benchmark's own parts: what they would miss, its figures would hide. */

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { BodyScan } from "../../bench/server/body-scan.mjs";
import { judgeGoals } from "../../bench/server/driver/goals.mjs";
import { writeProfiles } from "../../bench/server/driver/profile.mjs";
import { Results } from "../../bench/server/driver/results.mjs";
import { EventStreamReader, RunReader } from "../../bench/server/load/run-reader.mjs";
import { longestRecurring } from "../../bench/widget/recurring.mjs";

const frame = (type: string, data: string) => `id: 1\nevent: ${type}\ndata: ${JSON.stringify({ type, data })}\n\n`;

const STREAM = frame("token", "0.a1 ") + frame("token", "1.a2 2.a3 ") + frame("done", "0.a1 1.a2 2.a3 ");

test("the load client reads a run that comes in two pieces, wherever it is cut", () => {
  for (let at = 0; at <= STREAM.length; at++) {
    const run = new RunReader();
    const frames = new EventStreamReader(run);
    frames.feed(STREAM.slice(0, at));
    frames.feed(STREAM.slice(at));
    assert.deepEqual([run.tokens, run.ended], [3, true], `cut at ${at}`);
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
    assert.throws(() => new EventStreamReader(new RunReader()).feed(stream), problem);
  });
}

test("the fake model finds its order in a body that comes in two pieces, wherever it is cut", () => {
  const body = Buffer.from('{"stream":true,"messages":[{"content":"bench:tokens=12;rate=2.5;id=7;"}]}');
  for (let at = 0; at <= body.length; at++) {
    const scan = new BodyScan();
    scan.push(body.subarray(0, at));
    scan.push(body.subarray(at));
    assert.deepEqual(scan.order(), { tokens: 12, rate: 2.5, id: 7 }, `cut at ${at}`);
    assert.equal(scan.wantsStream, true);
  }
});

/** Adds one value of Parley's, and one of the server that it is compared with, for each round. */
function judge(metric: string, transport: string, rounds: [number, number][], base = "floor") {
  const results = new Results();
  const [scenario = "", name = ""] = metric.split(".");
  for (const [round, [ours, theirs]] of rounds.entries()) {
    results.add({ scenario, transport, target: "parley", round }, { [name]: ours });
    results.add({ scenario, transport, target: base, round }, { [name]: theirs });
  }
  return judgeGoals(results).filter(({ reached }) => reached !== undefined);
}

test("a goal is judged by the median of the ratios within each round, for the line that was measured", () => {
  // The medians of both columns are equal.
  const slower: [number, number][] = [
    [10, 5],
    [20, 10],
    [1, 20],
  ];
  const [goal, ...others] = judge("saturation.cpu", "ws", slower);
  assert.deepEqual([goal?.transport, goal?.limit, goal?.reached], ["ws", "≤ 1.3 × floor", false]);
  assert.deepEqual(others, [], "nothing else was measured");
  assert.equal(judge("saturation.cpu", "ws", [[13, 10]])[0]?.reached, true);
});

test("goals with a least value, a difference, and an absolute value are judged as such", () => {
  assert.equal(judge("capacity.streams", "sse", [[79, 100]])[0]?.reached, false);
  assert.equal(judge("capacity.streams", "sse", [[81, 100]])[0]?.reached, true);
  assert.equal(judge("first.firstP50", "sse", [[1.4, 1]])[0]?.reached, false);
  assert.equal(judge("first.firstP50", "sse", [[1.2, 1]])[0]?.reached, true);
  assert.equal(judge("disconnect.p50", "sse", [[Number.POSITIVE_INFINITY, 1]])[0]?.reached, false);
  assert.equal(judge("disconnect.p50", "sse", [[49, 1]])[0]?.reached, true);
});

/** A function of a file, as V8 names it in a profile. */
function frameOf(path: string, functionName: string) {
  const lines = readFileSync(path, "utf8").split("\n");
  const lineNumber = lines.findIndex((line) => line.includes(`function ${functionName}(`));
  assert.ok(lineNumber >= 0, `${path} has no ${functionName}`);
  const before = `function ${functionName}`;
  const columnNumber = (lines[lineNumber]?.indexOf(before) ?? 0) + before.length;
  return { functionName, url: pathToFileURL(path).href, lineNumber, columnNumber };
}

test("a profile names the source of a function that the build has put elsewhere", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "profiles-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const frames = [
    frameOf("dist/cli.js", "readArguments"),
    frameOf("dist/parley-agent.js", "defineAgent"),
    frameOf("bench/server/driver/profile.mjs", "writeProfile"),
    { functionName: "(idle)", url: "", lineNumber: -1, columnNumber: -1 },
  ];
  const profile = {
    nodes: frames.map((callFrame, id) => ({ id, callFrame })),
    samples: [0, 1, 2, 3, 0],
    timeDeltas: [1000, 1000, 1000, 9000, 1000],
  };
  writeFileSync(join(folder, "parley-0.cpuprofile"), JSON.stringify(profile));
  const tables = writeProfiles(folder);
  assert.match(tables, /^\| readArguments cli\.ts +\| 50\.0 % \| +2 ms \|$/m);
  assert.match(tables, /^\| defineAgent server\/agent\/define\.ts +\| 25\.0 % \|/m);
  assert.match(tables, /^\| writeProfile driver\/profile\.mjs +\| 25\.0 % \|/m);
  assert.match(tables, /^\| cli\.ts +\| 50\.0 % \|/m);
  assert.doesNotMatch(tables, /idle/);
});

test("a task that is long in one of three runs only is not taken for the page's, one that comes again is", () => {
  const run = (early: number, late: number, shift = 0) => [
    { at: 0.1 + shift, ms: early },
    { at: 0.5 + shift, ms: late },
  ];
  assert.equal(longestRecurring([run(40, 90), run(44, 12, 0.004), run(38, 10, -0.004)], 0.005), 40);
  assert.equal(longestRecurring([run(40, 90), run(44, 70, 0.004), run(38, 10)], 0.005), 70);
  assert.equal(longestRecurring([run(40, 90), run(44, 70, 0.2), run(38, 10, 0.4)], 0.005), 38);
  assert.equal(longestRecurring([[], [], []], 0.005), 0);
});
