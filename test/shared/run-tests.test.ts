/** How failed tests are handled in CI. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { REPOSITORY } from "../support/command.ts";

const FAILS_ONCE = `test("fails once? (yes)", (t) => t.test("inside", () => first && fail("Not yet")));\n`;

/** Tests of a file, in addition to one that fails once. `first` is true in the first run. */
const FAILURES = {
  "a row that fails twice": `test("always", () => fail("Never"));\n`,
  "a row that fails twice inside of another one": `test("outside", (t) => t.test("deep", () => fail("Never")));\n`,
  "what is thrown after the end of a row": `test("late", () => void setTimeout(() => fail("Late"), 5));\n`,
  "a row that the first run did not come to": `if (first) process.exitCode = 1; else test("hidden", () => fail("Never"));\n`,
  "a random order that failed": `test("by chance", () => first && fail("Property failed { seed: 7 }"));\n`,
  "a file that ended by itself": `test("last", async () => { if (first) process.exit(1); });\n`,
  "more than five rows that failed": `for (const number of [1, 2, 3, 4, 5, 6]) test("row " + number, () => first && fail("No"));\n`,
};

const FAILS_THEN = `test("fails then", () => first || fail("Not any more"));\n`;

const FILES = { passes: `test("passes", () => {});\n`, "fails then": FAILS_THEN, "without RETRY": "", ...FAILURES };

const folder = mkdtempSync(join(tmpdir(), "parley-run-tests-"));
after(() => rmSync(folder, { recursive: true }));

/** Exit code and output of each file, run as in `.ci/run`: one after the other, by one process. */
const outcomes = run();

function run(): Record<string, { code: number; printed: string }> {
  const names = Object.keys(FILES);
  for (const [index, rows] of Object.values(FILES).entries()) {
    writeFileSync(
      join(folder, `${index}.test.mjs`),
      `import { existsSync, writeFileSync } from "node:fs";
import { test } from "node:test";
const mark = ${JSON.stringify(join(folder, `${index}.mark`))};
const first = !existsSync(mark);
writeFileSync(mark, "");
const fail = (words) => { throw new Error(words); };
${FAILS_ONCE}${rows}`,
    );
  }
  const program = `import { runTests } from "./test/support/run-tests.ts";
for (const [index, name] of ${JSON.stringify(names)}.entries()) {
  if (name === "without RETRY") delete process.env.RETRY;
  else process.env.RETRY = "1";
  console.log("\\n= ENDED %d", runTests([], [${JSON.stringify(folder)} + "/" + index + ".test.mjs"]));
}`;
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
  const args = ["--import", "tsx", "--input-type=module", "--eval", program];
  const { stdout } = spawnSync(process.execPath, args, { cwd: REPOSITORY, encoding: "utf8", env });
  const ends = [...stdout.matchAll(/(.*?)\n= ENDED (\d+)\n/gs)];
  return Object.fromEntries(
    names.map((name, at) => [name, { code: Number(ends[at]?.[2]), printed: ends[at]?.[1] ?? "" }]),
  );
}

const outcome = (name: string) => outcomes[name] ?? assert.fail(name);

test("a row that fails once and passes in the second run of its file is no failure in CI, and is named with what it failed by", () => {
  const { code, printed } = outcome("passes");
  assert.equal(code, 0, printed);
  assert.match(printed, /Error: Not yet/);
  assert.match(printed, /^FLAKY: .*: fails once\? \(yes\)$/m);
});

test("a row that passed, and fails beside one that runs once more, is flaky, too", () => {
  const { code, printed } = outcome("fails then");
  assert.equal(code, 0, printed);
  assert.match(printed, /^FLAKY: .*: fails once\? \(yes\)\nFLAKY: .*: fails then$/m);
});

test("without RETRY a row that fails once is a failure", () => {
  const { code, printed } = outcome("without RETRY");
  assert.equal(code, 1, printed);
  assert.doesNotMatch(printed, /FLAKY/);
});

for (const what of Object.keys(FAILURES)) {
  test(`${what} stays a failure in CI, beside a row that fails once`, () => {
    const { code, printed } = outcome(what);
    assert.equal(code, 1, printed);
    assert.doesNotMatch(printed, /FLAKY/);
  });
}
