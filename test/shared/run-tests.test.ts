/** What becomes of rows that fail in CI. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { REPOSITORY } from "../support/command.ts";

/** Runs a file of tests as `.ci/run` does. `first` is true in its first run. */
function run(t: TestContext, rows: string, env: NodeJS.ProcessEnv = { RETRY: "1" }): { code: number; printed: string } {
  const folder = mkdtempSync(join(tmpdir(), "parley-run-tests-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "rows.test.mjs");
  writeFileSync(
    file,
    `import { existsSync, writeFileSync } from "node:fs";
import { test } from "node:test";
const mark = new URL("mark", import.meta.url);
const first = !existsSync(mark);
writeFileSync(mark, "");
const fail = (words) => { throw new Error(words); };
${rows}`,
  );
  const program = `import { runTests } from "./test/support/run-tests.ts";
process.exitCode = runTests([], [${JSON.stringify(file)}]);`;
  const { NODE_TEST_CONTEXT, RETRY, ...rest } = process.env;
  const { status, stdout } = spawnSync(
    process.execPath,
    ["--import", "tsx", "--input-type=module", "--eval", program],
    { cwd: REPOSITORY, encoding: "utf8", env: { ...rest, ...env } },
  );
  return { code: status ?? -1, printed: stdout };
}

const FAILS_ONCE = `test("fails once? (yes)", (t) => t.test("inside", () => first && fail("Not yet")));\n`;

void test("a row that fails once and passes with all others of its file is no failure in CI, and is named with what it failed by", (t) => {
  const { code, printed } = run(t, `test("passes", () => {});\n${FAILS_ONCE}`);
  assert.equal(code, 0, printed);
  assert.match(printed, /Error: Not yet/);
  assert.match(printed, /^FLAKY: .*: fails once\? \(yes\)$/m);
});

void test("without RETRY a row that fails once is a failure", (t) => {
  const { code, printed } = run(t, FAILS_ONCE, {});
  assert.equal(code, 1, printed);
  assert.doesNotMatch(printed, /FLAKY/);
});

for (const [what, rows] of Object.entries({
  "a row that fails twice": `test("always", () => fail("Never"));\n`,
  "a row that fails twice inside of another one": `test("outside", (t) => t.test("deep", () => fail("Never")));\n`,
  "what is thrown after the end of a row": `test("late", () => void setTimeout(() => fail("Late"), 5));\n`,
  "a row that the first run did not come to": `if (first) process.exitCode = 1; else test("hidden", () => fail("Never"));\n`,
  "a random order that failed": `test("by chance", () => first && fail("Property failed { seed: 7 }"));\n`,
  "a file that ended by itself": `test("last", async () => { if (first) process.exit(1); });\n`,
  "more than five rows that failed": `for (const number of [1, 2, 3, 4, 5, 6]) test("row " + number, () => first && fail("No"));\n`,
})) {
  void test(`${what} stays a failure in CI, beside a row that fails once`, (t) => {
    const { code, printed } = run(t, FAILS_ONCE + rows);
    assert.equal(code, 1, printed);
    assert.doesNotMatch(printed, /FLAKY/);
  });
}
