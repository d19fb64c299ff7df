/** `/launcher.js`: the button in the corner before anything else is loaded. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, type TestContext, test } from "node:test";
import type { Page } from "playwright-core";
import { launchBrowser, openPage } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";
import { chatIn, failOnComplaints, isFocused } from "./chat-page.ts";
import { button, panel, preview, type VisitOptions, visit } from "./launcher-page.ts";

const browser = await launchBrowser({ after });
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const early = (t: TestContext, options: VisitOptions = {}) => visit(t, browser, { file: "launcher.js", ...options });

/** What the page has loaded of the chat's server. */
const loaded = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    performance
      .getEntriesByType("resource")
      .map(({ name }) => new URL(name).pathname)
      .filter((path) => path !== "/favicon.ico"),
  );

test("the button stands there with /launcher.js alone, and one click opens the chat with the cursor in it", async (t) => {
  const chat = await early(t, { turns: [[say("Hello.")]] });
  const { page, input } = chat;
  const opener = page.getByRole("button", { name: "Open chat", expanded: false });
  await opener.waitFor();
  assert.deepEqual(await loaded(page), ["/launcher.js"]);
  await opener.click();
  await panel(page).waitFor();
  await input.waitFor();
  await page.waitForFunction(() => document.activeElement?.localName === "agent-chat-launcher");
  assert.equal(await isFocused(input), true);
  assert.equal(await button(page).count(), 1, "the early button is gone");
  await chat.ask("Hi", "Hello.");
  await page.keyboard.press("Escape");
  await panel(page).waitFor({ state: "hidden" });
  assert.equal(await isFocused(button(page)), true);
});

for (const [what, script, html] of [
  ["nothing", "", ""],
  ["label and size", 'data-label="Ask us" data-size="large" data-accent="#ffe600"', ""],
  ["icon, corners and position", 'data-icon="spark" data-corners="sharp" data-position="top-start"', ""],
  ["a small question in the dark", 'data-icon="question" data-size="small" data-theme="dark"', ""],
  ["German", "", 'lang="de"'],
  ["Arabic on the page", 'data-label="اسألنا"', 'lang="ar"'],
] as const) {
  test(`with ${what} the early button looks, stands and is called as the launcher's own`, async (t) => {
    const seen: { name: string | null; picture: string; box: unknown }[] = [];
    for (const file of ["launcher.js", "widget.js"] as const) {
      const { page } = await visit(t, browser, { file, script, html });
      await button(page).waitFor();
      seen.push({
        name: await button(page).getAttribute("aria-label"),
        box: await button(page).boundingBox(),
        picture: (await page.screenshot()).toString("base64"),
      });
    }
    assert.deepEqual(seen[0], seen[1]);
  });
}

test("it follows the page's language and its own attributes, as the launcher does", async (t) => {
  const { page } = await early(t);
  await page.getByRole("button", { name: "Open chat" }).waitFor();
  await page.evaluate(() => document.documentElement.setAttribute("lang", "fr"));
  await page.getByRole("button", { name: "Ouvrir le chat" }).waitFor();
  await page.evaluate(() => document.querySelector("agent-chat-launcher")?.setAttribute("label", "Une question ?"));
  await page.getByRole("button", { name: "Une question ?" }).getByText("Une question ?").waitFor();
  assert.deepEqual(await loaded(page), ["/launcher.js"]);
});

test("a page opens the chat by the launcher's own method, hears of it, and what it has set is kept", async (t) => {
  const { page } = await early(t);
  const opened = await page.evaluate(async () => {
    const launcher = document.querySelector("agent-chat-launcher");
    if (!launcher) return "no launcher";
    let told = 0;
    launcher.addEventListener("agent-chat-open", () => told++);
    Object.assign(launcher, { strings: { composerLabel: "Your question" } });
    await launcher.open();
    return [told, launcher.opened, launcher.chat?.localName];
  });
  assert.deepEqual(opened, [1, true, "agent-chat"]);
  await page.getByRole("textbox", { name: "Your question" }).waitFor();
});

test("the keyboard opens it, and all else is asked for as soon as it has the focus", async (t) => {
  const { page, input } = await early(t);
  await button(page).waitFor();
  const asked = page.waitForRequest((request) => request.url().endsWith("/widget.js"));
  await page.keyboard.press("Tab");
  await asked;
  assert.equal(await page.evaluate(() => customElements.get("agent-chat")), undefined);
  await page.keyboard.press("Enter");
  await input.waitFor();
  assert.equal(await isFocused(input), true);
});

test("a chat that was open is open again on the next page; what opens or speaks by itself does", async (t) => {
  const { page, input } = await early(t);
  await button(page).click();
  await input.waitFor();
  await page.goto(new URL("/next", page.url()).href);
  await input.waitFor();
  const other = await early(t, { script: 'data-preview="Questions?" data-preview-after="0"' });
  await preview(other.page).getByText("Questions?").waitFor();
});

test("a script that could not be loaded comes by itself when it can, and the button says meanwhile that it waits", async (t) => {
  const { page, input, complaints } = await early(t);
  await page.route("**/widget.js", (route) => route.abort());
  const failed = page.waitForEvent("requestfailed");
  await button(page).click();
  await page.locator('[part="launcher"][aria-busy="true"]').waitFor();
  await failed;
  await page.unroute("**/widget.js");
  await input.waitFor();
  assert.equal(await isFocused(input), true);
  // The browser's words on what failed, and the script's.
  assert.ok(complaints.splice(0).every((text) => /ERR_FAILED|dynamically imported/.test(text)));
});

test("on a page with a chat of its own there is no button, and the chat is that of the script's server", async (t) => {
  const chat = await early(t, {
    body: '<agent-chat style="display: block; height: 400px"></agent-chat>',
    turns: [[say("Hello.")]],
  });
  await chat.ask("Hi", "Hello.");
  assert.equal(await button(chat.page).count(), 0);
});

test("a preview that the page sets later is shown, and a bubble that was seen has the next page load nothing before its time", async (t) => {
  const { page } = await early(t, { script: 'data-preview-after="0"' });
  await button(page).waitFor();
  await page.evaluate(() => {
    document.querySelector("agent-chat-launcher")?.setAttribute("preview", "Hello Ann");
  });
  await preview(page).getByText("Hello Ann").waitFor();
  await page.goto(new URL("/next", page.url()).href);
  await button(page).waitFor();
  assert.deepEqual(await loaded(page), ["/launcher.js"]);
});

test("who has gone on to another field by the time the chat could open is left there", async (t) => {
  const { page } = await early(t, { body: '<input id="name">' });
  const held = gate();
  // The last of what a panel needs.
  await page.route("**/chunks/launcher-*.js", async (route) => {
    await held.opened;
    await route.continue();
  });
  await button(page).dblclick();
  await page.waitForFunction(() => customElements.get("agent-chat-launcher"));
  const name = page.locator("#name");
  await name.fill("Ann");
  held.open();
  await page.locator('[part="launcher"]:not([aria-busy])').waitFor();
  assert.equal(await isFocused(name), true);
  assert.equal(await panel(page).isVisible(), false);
  await button(page).click();
  await panel(page).waitFor();
});

test("beside /widget.js, before or after it, there is one button that opens one chat", async (t) => {
  const server = await startServer(t, { turns: [] });
  const tags = ["launcher", "widget"].map((it) => `<script src="${server.url}/${it}.js"></script>`);
  for (const scripts of [tags, tags.toReversed()]) {
    const site = await startSite(t, { "/": sitePage(scripts.join("")) });
    const { page, complaints } = await openPage(t, browser);
    await page.goto(site.url);
    await page.waitForFunction(() => customElements.get("agent-chat-launcher"));
    await button(page).click();
    await chatIn(page.locator("agent-chat")).input.waitFor();
    assert.equal(await button(page).count(), 1);
    assert.deepEqual(complaints, []);
  }
});

test("a launcher that another server's script has put there keeps its server, and so its key", async (t) => {
  const [own, other] = [await startServer(t, { turns: [] }), await startServer(t, { turns: [] })];
  const tags = `<script src="${own.url}/widget.js" data-key="own"></script><script src="${other.url}/launcher.js"></script>`;
  const site = await startSite(t, { "/": sitePage(tags) });
  const { page } = await openPage(t, browser);
  await page.goto(site.url);
  await button(page).waitFor();
  const server = page
    .locator("agent-chat-launcher")
    .evaluate((it: HTMLElementTagNameMap["agent-chat-launcher"]) => it.server);
  assert.equal(await server, `${own.url}/`);
});

test("a policy that allows scripts with a nonce alone, with Trusted Types, is kept, and the site's key opens the chat", async (t) => {
  const server = await startServer(t, {
    turns: [[say("Hello.")]],
    env: { PARLEY_WIDGET_KEY: "site-key" },
  });
  const policy = [
    "default-src 'none'",
    "script-src 'nonce-r4nd0m'",
    `connect-src ${server.url} ${server.url.replace("http", "ws")}`,
    "require-trusted-types-for 'script'",
    "trusted-types lit-html",
  ];
  const tag = `<script src="${server.url}/launcher.js" data-key="site-key" nonce="r4nd0m"></script>`;
  const headers = { "content-security-policy": policy.join("; ") };
  const site = await startSite(t, { "/": { html: sitePage(tag), headers } });
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints);
  await page.goto(site.url);
  await button(page).click();
  await chatIn(page.locator("agent-chat")).ask("Hi", "Hello.");
});

test("a wrong attribute of the script tag is reported once, with those that there are", async (t) => {
  const { page, complaints } = await early(t, { script: 'data-colour="red" data-size="9"' });
  await button(page).click();
  await panel(page).waitFor();
  const reports = complaints.splice(0).sort();
  assert.equal(reports.length, 2, reports.join("\n"));
  assert.match(reports[0] ?? "", /data-colour must be one of .*data-position.*not "red"/);
  assert.match(reports[1] ?? "", /size must be one of medium, small, large, not "9"/);
});

test("axe finds nothing in it", async (t) => {
  const { page } = await early(t, { script: 'data-label="Ask us"' });
  await button(page).waitFor();
  await page.evaluate(AXE);
  const found = await page.evaluate("axe.run(document).then((it) => it.violations)");
  assert.deepEqual(found, []);
});
