/** Reasons why a file could not be loaded, from its error and a request to its address, by browser and bundler. */

import "../support/dom.ts";
import assert from "node:assert/strict";
import { test } from "node:test";

const { lazy } = await import("../../widget/loading/lazy.ts");
const { missingParts } = await import("../../widget/loading/missing.ts");

const FILE = "https://site.example/assets/part-1.js";
const OWN = "https://chat.example/chunks/chat-1.js";

const CHROMIUM = new TypeError(`Failed to fetch dynamically imported module: ${FILE}`);
const FIREFOX = new TypeError(`error loading dynamically imported module: ${FILE}`);
const SAFARI = new TypeError("Importing a module script failed.");
const WEBPACK = Object.assign(new Error(`Loading chunk 5 failed.\n(error: ${FILE})`), { name: "ChunkLoadError" });
const VITE = new Error("Unable to preload CSS for /assets/part-1.css");

const missing = () => new Response("not found", { status: 404 });
const page = () => new Response("<!doctype html>", { headers: { "content-type": "text/html" } });
const script = () => new Response("1", { headers: { "content-type": "text/javascript" } });
const down = () => new Response("", { status: 503 });
const nothing = () => Promise.reject(new TypeError("Failed to fetch"));

type Row = [error: Error, answer: () => Response | Promise<Response>, ownFile?: string];

/** Loads a part whose file is available from the fourth attempt on. */
async function load([error, answer, ownFile = ""]: Row) {
  missingParts.ownFile = ownFile;
  const asked: string[] = [];
  globalThis.fetch = async (url) => {
    asked.push(String(url));
    return answer();
  };
  let tries = 0;
  const said: unknown[] = [];
  const part = lazy(async () => {
    tries += 1;
    said.push(missingParts.why);
    if (tries < 4) throw error;
    return { part: tries };
  });
  const module = await part.loadEventually();
  return { module, tries, asked, said, part };
}

test("a file that its browser names no address for, or that is there, or whose server is down, is tried again, and said to be blocked from the third failure on until it comes", async (t) => {
  t.mock.method(Math, "random", () => 0);
  const rows: Row[] = [
    [SAFARI, missing],
    [SAFARI, script, OWN],
    [VITE, missing],
    [WEBPACK, script],
    [WEBPACK, down],
    [WEBPACK, nothing],
  ];
  for (const row of rows) {
    const { module, said } = await load(row);
    assert.deepEqual([module, said], [{ part: 4 }, [undefined, undefined, undefined, "blocked"]], String(row));
    assert.equal(missingParts.why, undefined);
  }
});

test("a file that is gone is asked for once, looked at once, and never again", async () => {
  const rows: Row[] = [
    [CHROMIUM, missing],
    [FIREFOX, missing],
    [WEBPACK, page],
    [SAFARI, missing, OWN],
  ];
  for (const row of rows) {
    const { module, tries, asked, part } = await load(row);
    assert.deepEqual([module, tries, asked], [undefined, 1, [row[2] ?? FILE]], String(row));
    await assert.rejects(part.load(), row[0]);
    assert.equal(await part.loadEventually(), undefined);
    assert.equal(asked.length, 1);
    assert.equal(missingParts.why, "gone");
  }
});
