/**
 * The package in frameworks and bundlers, built as users build it and run in a real browser: `npm run test:frameworks`
 * for all, `npm run test:frameworks react next-16` for some.
 */

import assert from "node:assert/strict";
import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { after, type TestContext, test } from "node:test";
import type { Page } from "playwright-core";
import { chatIn, failOnComplaints } from "../browser/chat-page.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { listen } from "../support/listen.ts";
import { call, say, type Turn } from "../support/scripted-provider.ts";
import { startServer, type TestServer } from "../support/start-server.ts";
import { define } from "../support/test-tools.ts";
import { command, NAMES, pack, prepare, serveCommand } from "./project.ts";

const wanted = process.argv.slice(2);
const unknown = wanted.find((name) => !NAMES.includes(name));
if (unknown !== undefined) throw new Error(`There is no test of "${unknown}", but of ${NAMES.join(", ")}.`);

// One after the other: unpacking Chromium temporarily changes the folder for temporary files.
const tarball = await pack({ after });
const browser = await launchBrowser({ after });

const weather = define("get_weather", () => ({ city: "Paris", celsius: 20 }));
const TURNS: Turn[] = [[call("c1", "get_weather", { city: "Paris" })], [say("It is mild.")]];

/** A server whose agent looks up the weather, for `count` conversations. */
const startAgent = (t: TestContext, count: number): Promise<TestServer> =>
  startServer(t, { turns: Array.from({ length: count }, () => TURNS).flat(), agent: { tools: [weather] } });

async function open(t: TestContext, url: string, expected?: RegExp): Promise<{ page: Page; printed: string[] }> {
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints, expected);
  const printed: string[] = [];
  page.on("console", (message) => message.type() === "log" && printed.push(message.text()));
  await page.goto(url);
  return { page, printed };
}

/** Checks the documented component: the chat works, the page renders the tool call, and an event arrives. */
async function converses(t: TestContext, url: string): Promise<Page> {
  const { page, printed } = await open(t, url);
  await chatIn(page).ask("How is the weather?", "It is mild.");
  await page.getByText("Paris: 20 °C").waitFor();
  assert.equal(await page.locator('[part~="tool"]').count(), 0);
  // Console messages may arrive later than changes to the page.
  const isPrinted = () => printed.includes("It is mild.");
  if (!isPrinted()) await page.waitForEvent("console", isPrinted);
  return page;
}

/** Checks that a part that failed to load once is loaded from the bundle again. */
async function recovers(t: TestContext, url: string): Promise<void> {
  const { page } = await open(t, url, /ERR_FAILED/);
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  let failed = 0;
  await page.route(/\.m?js(?:[?#]|$)/, (route) => (failed++ === 0 ? route.abort() : route.continue()));
  await page.evaluate(() => document.documentElement.setAttribute("lang", "de"));
  await page.getByRole("textbox", { name: "Nachricht" }).waitFor();
  assert.ok(failed > 1, `${failed} requests`);
}

/** Checks that the page's component in a rendering keeps its state when the page around it renders again. */
async function keepsState(t: TestContext, url: string): Promise<void> {
  const page = await converses(t, url);
  await page.getByRole("button", { name: "Paris: 20 °C" }).click();
  await page.getByRole("button", { name: "Paris: 68 °F" }).waitFor();
}

/** Checks that objects in a template, which are new for each token, do not cause elements to be replaced. */
async function survivesInlineObjects(t: TestContext, site: string): Promise<void> {
  const { page } = await open(t, `${site}/?inline`);
  const chat = chatIn(page);
  await page.getByRole("button", { name: "Ask the shop" }).waitFor();
  await chat.say("How is the weather?");
  const field = page.getByRole("textbox", { name: "City" });
  await field.waitFor();
  await chat.answered();
  await field.fill("Rome");
  await page.getByRole("button", { name: "Rename" }).click();
  await page.getByRole("button", { name: "Ask us" }).waitFor();
  assert.equal(await field.inputValue(), "Rome");
}

const TYPES: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };

/** Serves the files of a folder. Returns the address. */
function serveFiles(t: TestContext, folder: string): Promise<string> {
  const server = createServer(({ url = "/" }, response) => {
    const { pathname } = new URL(url, "http://localhost");
    const path = join(folder, pathname === "/" ? "index.html" : pathname);
    if (!statSync(path, { throwIfNoEntry: false })?.isFile()) {
      response.writeHead(404).end();
      return;
    }
    response.setHeader("content-type", TYPES[extname(path)] ?? "application/octet-stream");
    createReadStream(path).pipe(response);
  });
  return listen(t, server);
}

/** Builds a project. Asserts that there are no warnings, which users would see, too. */
async function build(folder: string, script = "build"): Promise<void> {
  const printed = await command(folder, "npm", "run", "--silent", script);
  assert.deepEqual(
    printed.split("\n").filter((line) => /\bwarning(?!s)|⚠|can't resolve/i.test(line)),
    [],
    printed,
  );
}

/** Tests a project that is built to static files. */
async function becomesFiles(t: TestContext, name: string, output = "dist"): Promise<{ folder: string; site: string }> {
  const { url } = await startAgent(t, 4);
  const folder = await prepare(t, name, tarball, url);
  await build(folder);
  const site = await serveFiles(t, join(folder, output));
  await converses(t, site);
  // Parcel's modules register themselves, so only Parcel itself could request one again under another address.
  if (name !== "parcel") await recovers(t, site);
  return { folder, site };
}

/** Tests Next with each of its bundlers, and in development, where React compares its elements with the server's. */
async function isServedByNext(t: TestContext, name: string): Promise<void> {
  const { url } = await startAgent(t, 6);
  const folder = await prepare(t, name, tarball, url);
  for (const bundler of (process.env.BUNDLERS ?? "turbopack webpack").split(" ")) {
    await t.test(`built by ${bundler}`, async (t) => {
      await build(folder, `build:${bundler}`);
      const site = await serveCommand(t, folder, "next", "start", "-p", "0");
      await keepsState(t, site);
      // The Turbopack of Next 15 never requests a failed chunk again.
      if (`${name} ${bundler}` !== "next-15 turbopack") await recovers(t, site);
      await isRendered(t, site);
      const { page } = await open(t, `${site}/tag`);
      await page.getByRole("button", { name: "Ask us" }).click();
      await chatIn(page).input.waitFor();
    });
  }
  await t.test("in development", async (t) => {
    const site = await serveCommand(t, folder, "next", "dev", "-p", "0");
    // Next compiles the page on the first request, which can take longer than a browser waits.
    await (await fetch(site)).text();
    await converses(t, site);
    await isRendered(t, site);
  });
}

/** Checks an element rendered on the server: it has its attributes, and hydrates without errors. */
async function isRendered(t: TestContext, site: string): Promise<void> {
  assert.match(await (await fetch(`${site}/rendered`)).text(), /<agent-chat server="[^"]+" accent="#7c3aed">/);
  const { page } = await open(t, `${site}/rendered`);
  await chatIn(page).input.waitFor();
}

const FRAMEWORKS: Record<string, (t: TestContext) => Promise<unknown>> = {
  react: async (t) => {
    const { folder, site } = await becomesFiles(t, "react");
    await keepsState(t, site);
    await t.test("in development, where StrictMode mounts everything twice", async (t) => {
      await keepsState(t, await serveCommand(t, folder, "vite", "--port", "0"));
    });
    await t.test("objects in the template", (t) => survivesInlineObjects(t, site));
  },
  vue: (t) => becomesFiles(t, "vue"),
  svelte: (t) => becomesFiles(t, "svelte"),
  webpack: (t) => becomesFiles(t, "webpack", "."),
  parcel: (t) => becomesFiles(t, "parcel"),
  "next-15": (t) => isServedByNext(t, "next-15"),
  "next-16": (t) => isServedByNext(t, "next-16"),
};

for (const name of wanted.length > 0 ? wanted : NAMES) {
  test(
    `${name}: the package builds without a warning, and its element takes objects, fires events and loads its parts`,
    FRAMEWORKS[name],
  );
}
