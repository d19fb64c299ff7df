/** What holds for every file of code, wherever it stands. */

import assert from "node:assert/strict";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const ROOTS = [".ci", "bench", "build", "cli.ts", "esbuild.config.mjs", "examples", "server", "test", "widget"];

/** Files below a folder, without what is installed there. */
function filesIn(path: string): string[] {
  if (statSync(path).isFile()) return [path];
  return readdirSync(path)
    .filter((name) => name !== "node_modules")
    .flatMap((name) => filesIn(join(path, name)));
}

const FILES = ROOTS.flatMap(filesIn);

test("every test stands where npm test looks for it: any other would never run", () => {
  const tests = FILES.filter((file) => /\.test\.[mc]?[jt]sx?$/.test(file));
  assert.ok(tests.length > 100);
  assert.deepEqual(
    tests.filter((file) => !/^test\/[^/]+\/[^/]+\.test\.ts$/.test(file)),
    [],
  );
});
