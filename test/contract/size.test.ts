/** What is built stays small: for those who load it, and for those who read it. */

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";

const WIDGET_BUDGET = 50 * 1024;

test("/widget.js weighs at most 50 KiB on the wire, with gzip", () => {
  const widget = readFileSync("dist/public/widget.js");
  const { length } = gzipSync(widget, { level: 9 });
  assert.ok(length <= WIDGET_BUDGET, `${length} bytes`);
  assert.deepEqual(gunzipSync(readFileSync("dist/public/widget.js.gz")), widget);
});

test("/widget.js is one classic script that names no other file", () => {
  const widget = readFileSync("dist/public/widget.js", "utf8");
  assert.doesNotMatch(widget, /^\s*(?:import|export)\b|sourceMappingURL|\bimport\(/m);
});

test("the built files hold no path of the machine that built them", () => {
  const root = process.cwd();
  for (const name of readdirSync("dist", { recursive: true, encoding: "utf8" })) {
    if (!/\.(?:js|map|html|txt)$/.test(name)) continue;
    assert.ok(!readFileSync(`dist/${name}`, "utf8").includes(root), name);
  }
});

test("every file that package.json points to is built", () => {
  const { bin, exports } = JSON.parse(readFileSync("package.json", "utf8"));
  for (const path of [bin.parley, exports["."].default]) assert.ok(existsSync(path), path);
  assert.match(readFileSync(bin.parley, "utf8"), /^#!\/usr\/bin\/env node\n/);
});
