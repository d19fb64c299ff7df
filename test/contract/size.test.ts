/** The build's files: small, complete, and free of data about the build machine. */

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { DIST, REPOSITORY } from "../support/command.ts";

const PUBLIC = join(DIST, "public");
const read = (path: string) => readFileSync(join(PUBLIC, path), "utf8");
const chunks = readdirSync(join(PUBLIC, "chunks")).filter((name) => name.endsWith(".js"));

/** Compressed size in bytes. */
const weigh = (path: string) => gzipSync(read(path), { level: 9 }).length;

/** A chunk and all its static imports. */
function eager(name: string): Set<string> {
  const found = new Set([name]);
  for (const known of found) {
    for (const [, path = ""] of read(`chunks/${known}`).matchAll(/\b(?:from|import)\s*"\.\/([\w-]+\.js)"/g))
      found.add(path);
  }
  return found;
}

const [chat = ""] = chunks.filter((name) => /^chat-\w+\.js$/.test(name));

test("/widget.js weighs at most 6 kB with gzip, is one classic script, and imports nothing but what was built with it", () => {
  assert.ok(weigh("widget.js") <= 6_000, `${weigh("widget.js")} bytes`);
  const script = read("widget.js");
  assert.doesNotMatch(script, /^\s*(?:import|export)\b|sourceMappingURL/m);
  const imported = [...script.matchAll(/"((?:chat|greeting|panel)-\w+\.js)"/g)].map(([, name = ""]) => name);
  assert.equal(imported.length, 3);
  for (const name of imported) assert.ok(chunks.includes(name), name);
});

test("what an empty chat waits for weighs at most 60 kB with gzip, and with what a first answer needs 98 kB", () => {
  const needed = chunks.filter((name) => /^talk-\w+\.js$/.test(name));
  assert.equal(needed.length, 1);
  const sizeWith = (names: readonly string[]) => {
    const files = new Set([chat, ...names].flatMap((name) => [...eager(name)]));
    return [...files].reduce((sum, name) => sum + weigh(`chunks/${name}`), weigh("widget.js"));
  };
  assert.ok(sizeWith([]) <= 60_000, `${sizeWith([])} bytes`);
  assert.ok(sizeWith(needed) <= 98_000, `${sizeWith(needed)} bytes`);
});

test("what few visitors need, or none before the first message, is in no file that an empty chat waits for", () => {
  const sources = [...eager(chat)].flatMap((name) => JSON.parse(read(`chunks/${name}.map`)).sources as string[]);
  const names = sources.map((path) => relative(REPOSITORY, resolve(PUBLIC, "chunks", path)));
  assert.ok(names.includes("widget/element/agent-chat.ts"), String(names));
  assert.deepEqual(
    names.filter((name) =>
      /widget\/(?:dev|launcher|i18n\/locales|markdown\/code-blocks)\/|(?:markdown\/(?:footnote-list|lexer)|ui\/(?:talk|message|message-list)|ui\/(?:alternatives|feedback|message-fold|lightbox|files|key-prompt)|composer\/read-file|transport\/http|conversations\/(?:read-row|kept-files|older-rows|shrink))\.ts|speed-highlight|node_modules\/marked\//.test(
        name,
      ),
    ),
    [],
  );
});

test("what is built is compressed as it is", () => {
  for (const path of ["widget.js", ...chunks.map((name) => `chunks/${name}`)]) {
    assert.equal(gunzipSync(readFileSync(join(PUBLIC, `${path}.gz`))).toString(), read(path), path);
  }
});

test("the built files hold no path of the machine that built them", () => {
  for (const name of readdirSync(DIST, { recursive: true, encoding: "utf8" })) {
    if (!/\.(?:js|map|html|txt|json)$/.test(name)) continue;
    assert.ok(!readFileSync(join(DIST, name), "utf8").includes(REPOSITORY), name);
  }
});

test("no file of the package has an address that bundlers would take for a file of theirs", () => {
  const files = readdirSync(join(DIST, "widget"));
  assert.ok(files.length > 10);
  for (const name of files) {
    assert.doesNotMatch(readFileSync(join(DIST, "widget", name), "utf8"), /import\.meta/, name);
  }
});

test("every file that package.json points to is built", () => {
  const { bin, exports } = JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8"));
  for (const path of [
    bin.parley,
    exports["."].default,
    exports["./widget"].default,
    exports["./widget"].node,
    exports["./custom-elements.json"],
  ]) {
    assert.ok(existsSync(join(DIST, relative("dist", path))), path);
  }
  assert.match(readFileSync(join(DIST, relative("dist", bin.parley)), "utf8"), /^#!\/usr\/bin\/env node\n/);
});
