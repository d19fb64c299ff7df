/** The types that a site's TypeScript sees, compiled with the real ones of each framework. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { DIST } from "../support/command.ts";

const run = promisify(execFile);
const { exports } = JSON.parse(readFileSync("package.json", "utf8"));

for (const framework of ["react", "preact", "solid"]) {
  test(`a template of ${framework} knows both elements, their attributes and events, and refuses a wrong word`, async () => {
    await run(process.execPath, ["node_modules/typescript/bin/tsc", "-p", `test/fixtures/jsx/${framework}`]);
  });
}

test("on a server, where there is no document, importing the widget does nothing and throws nothing", async () => {
  const { default: path } = exports["./widget"];
  const url = pathToFileURL(join(DIST, relative("dist", path))).href;
  const { stdout, stderr } = await run(process.execPath, [
    "--input-type=module",
    "-e",
    `await import(${JSON.stringify(url)}); console.log(typeof customElements)`,
  ]);
  assert.deepEqual([stdout.trim(), stderr], ["undefined", ""]);
});
