/** What is installed and what is published: as little as possible, and nothing that runs by itself. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { REPOSITORY } from "../support/command.ts";

const read = (path: string) => readFileSync(join(REPOSITORY, path), "utf8");
const manifest = JSON.parse(read("package.json"));
const lock = JSON.parse(read("package-lock.json"));

test("every dependency is pinned to one version, which is that of the lock file", () => {
  const [root] = [lock.packages[""]];
  for (const kind of ["dependencies", "devDependencies"]) {
    assert.deepEqual(root[kind], manifest[kind], kind);
    for (const [name, version] of Object.entries<string>(manifest[kind])) {
      assert.match(version, /^\d+\.\d+\.\d+$/, name);
      assert.equal(lock.packages[`node_modules/${name}`]?.version, version, name);
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

test("installing the package runs nothing of ours", () => {
  const scripts = ["preinstall", "install", "postinstall", "prepare", "prepublish", "preuninstall"];
  for (const script of scripts) assert.equal(manifest.scripts[script], undefined, script);
});

test("the published package holds what runs, its types and its licence, and no sources, tests or settings", () => {
  const packed = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
    cwd: REPOSITORY,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [{ files }] = JSON.parse(packed);
  const paths: string[] = files.map(({ path }: { path: string }) => path);
  for (const needed of [
    "package.json",
    "README.md",
    "LICENSE",
    "dist/cli.js",
    "dist/parley-agent.js",
  ]) {
    assert.ok(paths.includes(needed), needed);
  }
  assert.ok(paths.some((path) => path.startsWith("dist/public/")));
  const allowed =
    /^(?:package\.json|README\.md|LICENSE|CHANGELOG\.md|SECURITY\.md|custom-elements\.json|dist\/)/;
  assert.deepEqual(
    paths.filter((path) => !allowed.test(path) || /(?:^|\/)\.env|\/test\/|\/bench\//.test(path)),
    [],
  );
});

test("SECURITY.md names tests that are there", () => {
  const named = [...read("SECURITY.md").matchAll(/`(test\/[^`]+)`/g)].map(([, path = ""]) => path);
  assert.ok(named.length > 15);
  assert.deepEqual(
    named.filter((path) => !existsSync(join(REPOSITORY, path))),
    [],
  );
});
