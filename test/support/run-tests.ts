/**
 * Runs test files with Node's runner. With `RETRY` in the environment, as in `.ci/run`, rows that failed run once more, by
 * themselves: one that fails again has failed, one that passes is named as flaky. The first failure is printed in any case.
 * As a program it takes the files: `RETRY=1 node --import tsx test/support/run-tests.ts test/proxies/*.proxy.ts`.
 */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

/** More are no accident. */
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

/** Returns an exit code. `filesOf` says which of the files have the rows; without it all of them are loaded again. */
export function runTests(
  flags: readonly string[],
  files: readonly string[],
  filesOf: (rows: readonly string[]) => readonly string[] = () => files,
): number {
  const { code, events } = runOnce(flags, files);
  const failed = events.filter(({ type, nesting }) => type === "test:fail" && nesting === 0).map(({ name }) => name);
  if (code === 0 || process.env.RETRY === undefined || !mayBeFlaky(events, failed, files)) return code;
  console.log("\nWhat failed, once more:");
  const patterns = failed.map((name) => `--test-name-pattern=^${name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")}$`);
  const again = runOnce([...flags, ...patterns], filesOf(failed));
  const passed = again.events.filter(({ type, skip }) => type === "test:pass" && skip === undefined);
  if (again.code !== 0 || !failed.every((row) => passed.some(({ name }) => name === row))) return code;
  for (const name of failed) console.log(`FLAKY: this failed, and passed when it ran once more: ${name}`);
  return 0;
}

function mayBeFlaky(events: readonly Event[], failed: readonly string[], files: readonly string[]): boolean {
  // A process that died has rows that did not end, or is a row itself, by the path of its file.
  const died = failed.some((name) => files.some((file) => resolve(file) === resolve(name)));
  const [began, ended] = ["test:enqueue", "test:complete"].map(
    (type) => events.filter((event) => event.type === type && event.nesting === 0).length,
  );
  // Orders that are made by chance: another run would have others.
  const hasSeed = events.some(({ name, error }) => error !== undefined && /\bseed\b/i.test(`${name} ${error}`));
  return failed.length > 0 && failed.length <= MOST_FLAKY && !died && began === ended && !hasSeed;
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
  const lines = readFileSync(path, "utf8").split("\n").slice(0, -1);
  rmSync(folder, { recursive: true });
  return { code: status ?? 1, events: lines.map((line) => JSON.parse(line)) };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const flags = ["--import", "tsx", "--import", "./test/support/css.mjs", "--test-concurrency=1"];
  process.exitCode = runTests(flags, process.argv.slice(2));
}
