/** What Node gets of the package's element, on a server and in tests of a site. */

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

/** The file that `import "parley-agent/widget"` finds under a condition. */
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
