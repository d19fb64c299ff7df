/** The table of layers in docs/architecture.md, held against every import. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { findCircle, importsOf, readImports } from "../support/import-graph.ts";

const GRAPH = readImports(["server", "widget"]);

/** Folder to the folders that it may import, as the document says. */
function readLayers(): Map<string, string[]> {
  const layers = new Map<string, string[]>();
  const rows = readFileSync("docs/architecture.md", "utf8").matchAll(
    /^\| `((?:server|widget)[^`]*)` *\|[^|]*\|([^|]*)\|$/gm,
  );
  for (const [, folder = "", cell = ""] of rows) {
    const text = cell.replaceAll("`", "").trim();
    const named = text === "nothing" ? [] : text.split(/,\s*/);
    const allowed = text === "all of the above" ? [...layers.keys()] : named.map(folderOf);
    layers.set(folder, allowed);
  }
  return layers;
}

function folderOf(name: string): string {
  return name.startsWith("server/") ? name : `server/${name}`;
}

/** The layer that a file belongs to: its folder's, or that of the files beside the folders. */
function layerOf(file: string, layers: ReadonlyMap<string, unknown>): string {
  if (/^server\/[^/]+$/.test(file)) return "server/*.ts";
  const layer = [...layers.keys()].find((folder) => file.startsWith(`${folder}/`));
  assert.ok(layer, `${file} is in no layer of docs/architecture.md`);
  return layer;
}

const isPackage = (target: string) => !/^(?:server|widget)\//.test(target);

test("the document's table names every folder, and only folders that are there", () => {
  const layers = readLayers();
  assert.ok(layers.size >= 8);
  for (const folder of layers.keys()) assert.ok(existsSync(folder.replace("/*.ts", "")), folder);
  for (const file of GRAPH.keys()) layerOf(file, layers);
});

test("every import stays in its layer or goes to one that the table allows", () => {
  const layers = readLayers();
  const wrong: string[] = [];
  for (const [file, targets] of GRAPH) {
    const layer = layerOf(file, layers);
    for (const target of targets.filter((name) => !isPackage(name))) {
      const other = layerOf(target, layers);
      if (other !== layer && !layers.get(layer)?.includes(other)) {
        wrong.push(`${file} imports ${target}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
});

test("no file imports in a circle, not even for types", () => {
  assert.equal(findCircle(GRAPH), undefined);
});

test("every relative import names a file that is there, with its ending", () => {
  for (const [file, targets] of GRAPH) {
    for (const target of targets.filter((name) => !isPackage(name))) {
      assert.ok(target.endsWith(".ts") && existsSync(target), `${file} imports ${target}`);
    }
  }
});

test("the protocol imports no package and no part of Node: both sides share it", () => {
  for (const [file, targets] of GRAPH) {
    if (file.startsWith("server/protocol/")) assert.deepEqual(targets.filter(isPackage), [], file);
  }
});

test("the widget imports nothing of Node", () => {
  for (const [file, targets] of GRAPH) {
    if (!file.startsWith("widget/")) continue;
    assert.deepEqual(
      targets.filter((target) => target.startsWith("node:")),
      [],
      file,
    );
  }
});

test("packages are those of package.json, and the server uses none that is for development", () => {
  const manifest = JSON.parse(readFileSync("package.json", "utf8"));
  const { dependencies, peerDependencies, optionalDependencies } = manifest;
  // The package's own name stands in the demo's Markdown, as code of a project.
  const known = {
    ...dependencies,
    ...peerDependencies,
    ...optionalDependencies,
    [manifest.name]: "",
  };
  for (const [file, targets] of GRAPH) {
    if (!file.startsWith("server/")) continue;
    for (const target of targets.filter((name) => isPackage(name) && !name.startsWith("node:"))) {
      const [first = "", second = ""] = target.split("/");
      const name = first.startsWith("@") ? `${first}/${second}` : first;
      assert.ok(name in known, `${file} imports ${name}`);
    }
  }
});

test("the command imports the server only", () => {
  for (const target of importsOf("cli.ts")) assert.match(target, /^(?:node:|server\/)/);
});

test("the graph sees type imports, dynamic ones and re-exports", () => {
  const found = GRAPH.get("server/project/import-module.ts") ?? [];
  assert.ok(found.includes("jiti"));
  assert.ok(GRAPH.get("server/parley-agent.ts")?.includes("server/agent/define.ts"));
  assert.ok(GRAPH.get("server/agent/runner.ts")?.includes("server/protocol/chat.ts"));
});
