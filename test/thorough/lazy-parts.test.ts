/** Lazy parts of the chat: if one could not be loaded, it is requested again automatically. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { chatIn, openChat, untilLoaded } from "../browser/chat-page.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { say } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";

const browser = await launchBrowser({ after });

const expectedComplaints = /ERR_FAILED/;

/** Aborts the first requests for a chunk, or those while a condition holds. Returns the number of requests. */
async function refuse(page: Page, name: string, refuses: number | (() => boolean)): Promise<() => number> {
  let asked = 0;
  await page.route(`**/chunks/${name}-*`, (route) => {
    if (route.request().resourceType() === "fetch") return route.abort();
    asked += 1;
    const isRefused = typeof refuses === "number" ? asked <= refuses : refuses();
    return isRefused ? route.abort() : route.continue();
  });
  return () => asked;
}

/** From now on, a pause lasts until the network returns, or until the end of the test. */
const PAUSE_FOR_LONG = `
  Math.random = () => 1_000;
  window.addEventListener = function (type, ...others) {
    if (type === "online" && !others[1]) window.pauses = (window.pauses ?? 0) + 1;
    return EventTarget.prototype.addEventListener.call(this, type, ...others);
  };
`;

/** Waits until the page has noticed so many failures, then goes online: an earlier event would end no pause. */
async function comeOnline(page: Page, refused = 1): Promise<void> {
  await page.waitForFunction(`window.pauses >= ${refused}`);
  await page.evaluate(() => window.dispatchEvent(new Event("online")));
}

test("a language that cannot be loaded is English, in which the chat works, and is spoken as soon as it can", async (t) => {
  const server = await startServer(t, { turns: [[say("Still here.")]] });
  const place = '<agent-chat lang="de" style="height: 300px"></agent-chat>';
  const site = await startSite(t, { "/": sitePage(`<script src="${server.url}/widget.js"></script>${place}`) });
  const { page } = await openPage(t, browser);
  const asked = await refuse(page, "de", 1);
  await page.addInitScript(PAUSE_FOR_LONG);
  await page.goto(site.url);
  const english = page.getByRole("textbox", { name: "Message" });
  await chatIn(page).ask("Hi", "Still here.");
  await comeOnline(page);
  await page.getByRole("textbox", { name: "Nachricht" }).waitFor();
  assert.equal(await english.count(), 0);
  assert.equal(asked(), 2);
});

test("code that was drawn without its tools can be copied, and gets them, as tables do, as soon as the network is there again", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("```\nx\n```\n\n|A|\n|-|\n|1|")]],
    browser: { permissions: ["clipboard-read", "clipboard-write"] },
    expectedComplaints,
  });
  // Code and table may request the part one after the other.
  let isOnline = false;
  const asked = await refuse(chat.page, "code-blocks", () => !isOnline);
  await chat.page.evaluate(PAUSE_FOR_LONG);
  const refused = chat.page.waitForEvent("requestfailed");
  await chat.say("Show me");
  await refused;
  await chat.replies.and(chat.page.locator('[aria-busy="false"]')).waitFor();
  assert.equal(await chat.page.locator(".tools, .enlarge").count(), 0);
  await chat.answer.getByRole("button", { name: "Copy", exact: true }).click();
  await chat.answer.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(await chat.page.evaluate(() => navigator.clipboard.readText()), "x");
  const before = asked();
  isOnline = true;
  await comeOnline(chat.page, before);
  await chat.page.locator(".code-header > .enlarge").waitFor({ state: "attached" });
  await chat.page.getByRole("button", { name: "Copy: Table" }).waitFor();
  assert.equal(asked(), before + 1);
});

test("thumbs whose code could not be loaded are on the answer as soon as the network is there again", async (t) => {
  const server = await startServer(t, { turns: [[say("Rate me.")]] });
  const place = '<agent-chat feedback style="height: 300px"></agent-chat>';
  const site = await startSite(t, { "/": sitePage(`<script src="${server.url}/widget.js"></script>${place}`) });
  const { page } = await openPage(t, browser);
  const asked = await refuse(page, "feedback", 1);
  await page.addInitScript(PAUSE_FOR_LONG);
  await page.goto(site.url);
  const refused = page.waitForEvent("requestfailed");
  await chatIn(page).ask("Hi", "Rate me.");
  await refused;
  await comeOnline(page);
  await page.locator('[part="rate-up"]').waitFor();
  assert.equal(asked(), 2);
});

test("a conversation needs nothing of the server's files any more once an empty chat has loaded what it does while it is idle", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")], [say("Two.")]], expectedComplaints });
  await chat.greeting.waitFor();
  await untilLoaded(chat);
  await chat.page.route("**/chunks/*", (route) => route.abort());
  await chat.ask("First", "One.");
  await chat.input.press("ArrowUp");
  assert.equal(await chat.edited.inputValue(), "First");
  await chat.edited.fill("First, changed");
  await chat.edited.press("Enter");
  await chat.replies.getByText("Two.").waitFor();
});

for (const [what, chunk] of [
  ["reader", "read-file"],
  ["drawing", "files"],
] as const) {
  test(`a file whose ${what} could not be loaded is refused by name, and taken the next time`, async (t) => {
    const chat = await openChat(t, browser, { turns: [], expectedComplaints });
    const asked = await refuse(chat.page, chunk, 1);
    const picker = chat.page.locator('input[type="file"]');
    const file = { name: "a.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.7\n") };
    await chat.greeting.waitFor();
    await picker.setInputFiles(file);
    await chat.page.locator('[part="refusals"]').getByText("a.pdf").waitFor();
    await picker.setInputFiles(file);
    await chat.page.locator('[part="composer"] [part="attachment"]').getByText("a.pdf").waitFor();
    assert.equal(asked(), 2);
  });
}

test("the files of a kept message are shown as soon as their drawing can be loaded", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Read.")]], expectedComplaints });
  const file = { name: "a.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.7\n") };
  await chat.page.locator('input[type="file"]').setInputFiles(file);
  await chat.page.locator('[part="composer"] [part="attachment"]').waitFor();
  await chat.ask("Read it", "Read.");
  const asked = await refuse(chat.page, "files", 1);
  await chat.page.reload();
  await chat.page.locator('[part~="user"] [part="attachment"]').getByText("a.pdf").waitFor();
  assert.equal(asked(), 2);
});
