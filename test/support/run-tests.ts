/**
 * Runs test files with Node's runner. With `RETRY` in the environment, as in `.ci/run`, files with a row that failed run once
 * more: where each row passes in one of the two runs, those that failed are named as flaky. Failures are printed in any case.
 * As a program it takes the files: `RETRY=1 node --import tsx test/support/run-tests.ts test/proxies/*.proxy.ts`.
 */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** More rows than this fail for a reason that they share. */
const MOST_FLAKY = 5;

const ALL_MINUTES = 20;

interface Event {
  readonly type: "test:enqueue" | "test:complete" | "test:pass" | "test:fail";
  readonly name: string;
  /** 0 for a row: a test of a file, and none inside of another one. */
  readonly nesting: number;
  readonly skip?: string | boolean;
  readonly error?: string;
}

/** Returns an exit code. `filesOf` says which of the files have these rows. */
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
  // Whole: a row that failed may have kept others from running at all.
  console.log("\nOnce more, with all rows of the same files:");
  const again = runOnce(flags, suspects);
  const failedAgain = rowsOf(again.events, "test:fail").map(({ name }) => name);
  if (again.code !== 0 && !mayBeFlaky(again.events, failedAgain)) return code;
  // A row that failed must have passed in the other run.
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
  // A process that died has rows that did not end.
  const isComplete = rowsOf(events, "test:enqueue").length === rowsOf(events, "test:complete").length;
  // Orders that are made by chance: another run would have others.
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
  // Each by itself, since the events of a row do not say from which file it comes.
  for (const file of process.argv.slice(2)) process.exitCode = runTests(flags, [file]) || process.exitCode;
}
