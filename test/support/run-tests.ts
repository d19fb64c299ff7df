/**
 * Runs test files with Node's runner. With `RETRY` in the environment, as in `.ci/run`, files with a failed test run once more:
 * if each test passes in one of the two runs, the failed ones are reported as flaky. Failures are always printed.
 * As a program it takes the files: `RETRY=1 node --import tsx test/support/run-tests.ts test/proxies/*.proxy.ts`.
 */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** More failures than this have a common cause. */
const MOST_FLAKY = 5;

const ALL_MINUTES = 20;

interface Event {
  readonly type: "test:enqueue" | "test:complete" | "test:pass" | "test:fail";
  readonly name: string;
  /** 0 for a top-level test of a file. */
  readonly nesting: number;
  readonly skip?: string | boolean;
  readonly error?: string;
}

/** Returns an exit code. `filesOf` returns the files that contain these tests. */
export function runTests(
  flags: readonly string[],
  files: readonly string[],
  filesOf: (rows: readonly string[]) => readonly string[] = () => files,
): number {
  const { code, events } = runOnce(flags, files);
  const failed = rowsOf(events, "test:fail").map(({ name }) => name);
  if (code === 0 || process.env.RETRY === undefined || !mayBeFlaky(events, failed)) return code;
  const suspects = filesOf(failed);
  if (suspects.length === 0) return code;
  // Runs whole files: the failed test may have kept others from running.
  console.log("\nOnce more, with all rows of the same files:");
  const again = runOnce(flags, suspects);
  const failedAgain = rowsOf(again.events, "test:fail").map(({ name }) => name);
  if (again.code !== 0 && !mayBeFlaky(again.events, failedAgain)) return code;
  // Each failed test must have passed in the other run.
  if (!hasPassed(again.events, failed) || !hasPassed(events, failedAgain)) return code;
  for (const name of [...failed, ...failedAgain]) console.log(`FLAKY: this failed, and passed in another run: ${name}`);
  return 0;
}

function hasPassed(events: readonly Event[], rows: readonly string[]): boolean {
  const passed = rowsOf(events, "test:pass").filter(({ skip }) => skip === undefined);
  return rows.every((row) => passed.some(({ name }) => name === row));
}

function rowsOf(events: readonly Event[], type: Event["type"]): readonly Event[] {
  return events.filter((event) => event.type === type && event.nesting === 0);
}

function mayBeFlaky(events: readonly Event[], failed: readonly string[]): boolean {
  // If a process died, some of its tests did not complete.
  const isComplete = rowsOf(events, "test:enqueue").length === rowsOf(events, "test:complete").length;
  // Tests with a random seed are never flaky: another run would use another seed.
  const hasSeed = events.some(({ name, error }) => error !== undefined && /\bseed\b/i.test(`${name} ${error}`));
  return failed.length > 0 && failed.length <= MOST_FLAKY && isComplete && !hasSeed;
}

function runOnce(flags: readonly string[], files: readonly string[]): { code: number; events: Event[] } {
  const folder = mkdtempSync(join(tmpdir(), "parley-events-"));
  const path = join(folder, "events.jsonl");
  const reporters = ["spec", "stdout", String(new URL("events-reporter.mjs", import.meta.url)), path];
  const { status, error } = spawnSync(
    process.execPath,
    [
      ...flags,
      "--test",
      ...reporters.map((value, index) => `--test-reporter${index % 2 === 0 ? "" : "-destination"}=${value}`),
      ...files,
    ],
    { stdio: "inherit", timeout: ALL_MINUTES * 60_000, killSignal: "SIGKILL" },
  );
  if (error) console.error(`FAILED: ${error.message}`);
  const lines = error ? [] : readFileSync(path, "utf8").split("\n").slice(0, -1);
  rmSync(folder, { recursive: true });
  return { code: status ?? 1, events: lines.map((line) => JSON.parse(line)) };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const flags = ["--import", "tsx", "--import", "./test/support/css.mjs", "--test-concurrency=1"];
  // One file at a time, since the events do not name the file of a test.
  for (const file of process.argv.slice(2)) process.exitCode = runTests(flags, [file]) || process.exitCode;
}
