/** Installed packages and published files: as few as possible, and none that runs on its own. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { DIST, REPOSITORY } from "../support/command.ts";

const read = (path: string) => readFileSync(join(REPOSITORY, path), "utf8");
const manifest = JSON.parse(read("package.json"));
const lock = JSON.parse(read("package-lock.json"));

test("every dependency is pinned to one version, which is that of the lock file", () => {
  const [root] = [lock.packages[""]];
  for (const kind of ["dependencies", "devDependencies"]) {
    assert.deepEqual(root[kind], manifest[kind], kind);
    for (const [name, version] of Object.entries<string>(manifest[kind])) {
      // An alias precedes the version of another package.
      const [, pinned] = /^(?:npm:[\w/@-]+@)?(\d+\.\d+\.\d+)$/.exec(version) ?? [];
      assert.ok(pinned, name);
      assert.equal(lock.packages[`node_modules/${name}`]?.version, pinned, name);
    }
  }
});

test("every package of the lock file is known by its hash", () => {
  const installed = Object.entries<{ link?: boolean; integrity?: string }>(lock.packages);
  assert.ok(installed.length > 50);
  for (const [path, { link, integrity }] of installed) {
    if (path === "" || link) continue;
    assert.match(integrity ?? "", /^sha512-/, path);
  }
});

test("installing the package runs nothing of ours, nor of its dependencies", () => {
  // npm runs `prepare` in clones and for repository URLs, never for installations from the registry.
  const scripts = ["preinstall", "install", "postinstall", "prepublish", "preuninstall"];
  for (const script of scripts) assert.equal(manifest.scripts[script], undefined, script);
  for (const name of Object.keys(manifest.dependencies)) {
    assert.equal(lock.packages[`node_modules/${name}`]?.hasInstallScript, undefined, name);
  }
});

test("SECURITY.md names tests that are there", () => {
  const named = [...read("SECURITY.md").matchAll(/`(test\/[^`]+)`/g)].map(([, path = ""]) => path);
  assert.ok(named.length > 15);
  assert.deepEqual(
    named.filter((path) => !existsSync(join(REPOSITORY, path))),
    [],
  );
});

// What Node gets when it imports the package's element, on a server and in tests of a site.

const run = promisify(execFile);
const { exports } = JSON.parse(readFileSync("package.json", "utf8"));

/** The file that `import "parley-agent/widget"` resolves to under a condition. */
const packageEntry = (condition: string) =>
  pathToFileURL(join(DIST, relative("dist", exports["./widget"][condition]))).href;

test("in Node with a document that knows no media queries, as jsdom's, importing the widget defines the elements", async () => {
  const script = `
    const { GlobalRegistrator } = await import("@happy-dom/global-registrator");
    GlobalRegistrator.register({ url: "https://shop.example/" });
    delete globalThis.matchMedia;
    await import(${JSON.stringify(packageEntry("node"))});
    await customElements.whenDefined("agent-chat-launcher");
    console.log("toolRenderers" in document.createElement("agent-chat"));
    await window.happyDOM.abort();
  `;
  const { stdout, stderr } = await run(process.execPath, ["--input-type=module", "-e", script]);
  assert.deepEqual([stdout.trim(), stderr], ["true", ""]);
});

test("on a server, where there is no document, importing the widget does nothing and throws nothing", async () => {
  const url = packageEntry("node");
  const { stdout, stderr } = await run(process.execPath, [
    "--input-type=module",
    "-e",
    `await import(${JSON.stringify(url)}); console.log(typeof customElements)`,
  ]);
  assert.deepEqual([stdout.trim(), stderr], ["undefined", ""]);
});
