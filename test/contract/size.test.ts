/** What is built stays small: for those who load it, and for those who read it. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { chunkBudgets } from "../../build/chunks.mjs";

const WIDGET_BUDGET = 64_000;

test("/widget.js weighs at most 64 kB on the wire, with gzip", () => {
  const widget = readFileSync("dist/public/widget.js");
  const { length } = gzipSync(widget, { level: 9 });
  assert.ok(length <= WIDGET_BUDGET, `${length} bytes`);
  assert.deepEqual(gunzipSync(readFileSync("dist/public/widget.js.gz")), widget);
});

test("/launcher.js weighs at most 6 kB on the wire, with gzip, and is one classic script", () => {
  const launcher = readFileSync("dist/public/launcher.js");
  const { length } = gzipSync(launcher, { level: 9 });
  assert.ok(length <= 6_000, `${length} bytes`);
  assert.deepEqual(gunzipSync(readFileSync("dist/public/launcher.js.gz")), launcher);
  assert.doesNotMatch(launcher.toString(), /^\s*(?:import|export)\b|sourceMappingURL/m);
});

test("/widget.js is one classic script, and loads nothing but the chunks that are built with it", () => {
  const widget = readFileSync("dist/public/widget.js", "utf8");
  assert.doesNotMatch(widget, /^\s*(?:import|export)\b|sourceMappingURL/m);
  assert.equal(widget.match(/\bimport\(/g)?.length, 1);
  const [version] = widget.match(/-[0-9a-f]{10}(?=\.js\b)/) ?? [];
  assert.ok(version, "what the names of chunks end with");
  const built = readdirSync("dist/public/chunks").filter((name) => name.endsWith(".js"));
  const named = Object.keys(chunkBudgets).map((name) => `${name}${version}.js`);
  assert.deepEqual(built.sort(), named.sort());
});

test("a chunk brings no second copy of what /widget.js has, and another content has another name", () => {
  const hash = createHash("sha256");
  const names = readdirSync("dist/public/chunks").filter((file) => file.endsWith(".js"));
  for (const chunk of Object.keys(chunkBudgets)) {
    const name = names.find((file) => file.replace(/-[0-9a-f]{10}\.js$/, "") === chunk);
    const content = readFileSync(`dist/public/chunks/${name}`);
    assert.doesNotMatch(content.toString(), /_\$litType\$|ReactiveElement|customElements/);
    hash.update(content);
  }
  const version = hash.digest("hex").slice(0, 10);
  for (const name of names) assert.ok(name.endsWith(`-${version}.js`), name);
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
