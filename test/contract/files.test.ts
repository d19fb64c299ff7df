/** What holds for every file of code, wherever it stands. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const MAX_LINES = 250;
const ROOTS = [
  ".ci",
  "bench",
  "build",
  "cli.ts",
  "esbuild.config.mjs",
  "examples",
  "server",
  "test",
  "widget",
];

/** Files below a folder, without what is installed there. */
function filesIn(path: string): string[] {
  if (statSync(path).isFile()) return [path];
  return readdirSync(path)
    .filter((name) => name !== "node_modules")
    .flatMap((name) => filesIn(join(path, name)));
}

const FILES = ROOTS.flatMap(filesIn);

test(`no file of code is over ${MAX_LINES} lines, tests included`, () => {
  const code = FILES.filter((file) => /(?:\.(?:[mc]?[jt]sx?|py)|\.ci\/run)$/.test(file));
  assert.ok(code.length > 300);
  const long = code
    .map((file) => [file, readFileSync(file, "utf8").split("\n").length - 1] as const)
    .filter(([, lines]) => lines > MAX_LINES);
  assert.deepEqual(long, []);
});

test("every test stands where npm test looks for it: any other would never run", () => {
  const tests = FILES.filter((file) => /\.test\.[mc]?[jt]sx?$/.test(file));
  assert.ok(tests.length > 100);
  assert.deepEqual(
    tests.filter((file) => !/^test\/[^/]+\/[^/]+\.test\.ts$/.test(file)),
    [],
  );
});
