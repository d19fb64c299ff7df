/** Parts of the script that come when they are needed: one that could not be had is asked for again, by itself. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page, Route } from "playwright-core";
import { canCopy, chatIn, openChat } from "../browser/chat-page.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { RED_PIXEL } from "../support/files.ts";
import { call, say } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";
import { echo } from "../support/test-tools.ts";

const browser = await launchBrowser({ after });

const expectedComplaints = /ERR_FAILED|ERR_CONNECTION|WebSocket/;

/** Refuses a chunk as often as given; gives how often it was asked for. */
async function refuse(page: Page, name: string, times: number): Promise<() => number> {
  let asked = 0;
  await page.route(`**/chunks/${name}-*`, (route) => {
    asked += 1;
    return asked > times ? route.continue() : route.abort();
  });
  return () => asked;
}

/** From now on a pause lasts until the network is there again, or for the rest of the test. */
const pauseForLong = (page: Page) => page.evaluate("Math.random = () => 1_000");

const comeOnline = (page: Page) => page.evaluate(() => window.dispatchEvent(new Event("online")));

test("what draws the steps of an answer is asked for until it comes, and earlier answers get it, too", async (t) => {
  const chat = await openChat(t, browser, {
    agent: { tools: [echo] },
    turns: [[call("c1", "echo", { text: "ping" })], [say("Pong.")]],
    expectedComplaints,
  });
  const asked = await refuse(chat.page, "steps", 2);
  await chat.ask("Ping", "Pong.");
  await chat.tools.getByRole("button").waitFor();
  assert.equal(asked(), 3);
});

test("a conversation is kept, and shown after a reload, also where what keeps it came late", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Noted.")]], expectedComplaints });
  await refuse(chat.page, "keep", 1);
  await chat.page.reload();
  await chat.ask("My name is Ann", "Noted.");
  await chat.page.waitForFunction(() => Object.values(sessionStorage).some((text) => text.includes("Ann")));
  await chat.page.unrouteAll();
  await refuse(chat.page, "keep", 1);
  await chat.page.reload();
  await chat.replies.getByText("Noted.").waitFor();
});

test("what is sent before what keeps the conversation was asked for again goes on with the earlier one", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("One.")], [say("Two.")]],
    expectedComplaints,
  });
  await chat.ask("First", "One.");
  await refuse(chat.page, "keep", 1);
  await chat.page.reload();
  await chat.say("Second");
  await chat.replies.getByText("Two.").waitFor();
  const { messages } = chat.server.model.asked[1] ?? { messages: [] };
  assert.deepEqual(
    messages.map(({ content }) => content),
    ["First", "One.", "Second"],
  );
  assert.equal(await chat.questions.count(), 2);
});

test("a language that could not be had at once is spoken as soon as it can", async (t) => {
  const server = await startServer(t, { turns: [] });
  const site = await startSite(t, {
    "/": sitePage(
      `<script src="${server.url}/widget.js"></script><agent-chat lang="de" style="height: 400px"></agent-chat>`,
    ),
  });
  const { page } = await openPage(t, browser);
  await refuse(page, "locale-de", 1);
  await page.goto(site.url);
  await chatIn(page).greeting.waitFor();
  await page.getByRole("textbox", { name: "Nachricht" }).waitFor();
});

test("code and tables that were drawn without their tools get them as soon as the network is there again", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("```\nx\n```\n\n|A|\n|-|\n|1|")]],
    expectedComplaints,
  });
  const asked = await refuse(chat.page, "tools", 1);
  await pauseForLong(chat.page);
  const refused = chat.page.waitForEvent("requestfailed");
  await chat.say("Show me");
  await refused;
  await chat.replies.and(chat.page.locator('[aria-busy="false"]')).waitFor();
  assert.equal(await chat.page.locator(".tools").count(), 0);
  await comeOnline(chat.page);
  await chat.page.getByRole("button", { name: "Wrap lines" }).waitFor();
  await chat.page.getByRole("button", { name: "Copy as CSV" }).waitFor();
  assert.equal(asked(), 2);
});

test("all who wait for the same part wait together, also who came later", async (t) => {
  const server = await startServer(t, { turns: [] });
  const tag = '<agent-chat lang="de" style="height: 300px"></agent-chat>';
  const site = await startSite(t, {
    "/": sitePage(`<script src="${server.url}/widget.js"></script>${tag}`),
  });
  const { page } = await openPage(t, browser);
  const asked = await refuse(page, "locale-de", 2);
  await page.addInitScript("Math.random = () => 1_000");
  await page.goto(site.url);
  const english = page.getByRole("textbox", { name: "Message" });
  await english.waitFor();
  const refused = page.waitForEvent("requestfailed");
  await comeOnline(page);
  await refused;
  await page.evaluate((html) => document.body.insertAdjacentHTML("beforeend", html), tag);
  await english.nth(1).waitFor();
  assert.equal(asked(), 2);
  await comeOnline(page);
  await page.getByRole("textbox", { name: "Nachricht" }).nth(1).waitFor();
  assert.equal(await english.count(), 0);
  assert.equal(asked(), 3);
});

test("what can only be asked for with the next need is asked for at each, also while others would wait", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")]], expectedComplaints });
  const asked = await refuse(chat.page, "export", 1);
  await pauseForLong(chat.page);
  await chat.ask("First", "One.");
  const exported = () =>
    chat.page.evaluate(() => document.querySelector("agent-chat")?.exportTranscript("markdown").catch(String));
  assert.match(String(await exported()), /cannot be reached/);
  assert.match(String(await exported()), /One\./);
  assert.equal(asked(), 2);
});

const DOT = { name: "dot.png", mimeType: "image/png", buffer: RED_PIXEL };

test("files that cannot be looked at yet are named and kept, and attached as soon as they can", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("A dot.")]], expectedComplaints });
  const asked = await refuse(chat.page, "files", 1);
  await pauseForLong(chat.page);
  await chat.files.setInputFiles(DOT);
  await chat.error.getByText("The chat server cannot be reached.").waitFor();
  const composer = chat.page.locator('[part="composer"]');
  await composer.getByText("dot.png").waitFor();
  assert.equal(await chat.send.isDisabled(), true, "there is nothing to send yet");
  await chat.input.fill("What is it?");
  assert.equal(asked(), 1, "typing asks for nothing");
  await comeOnline(chat.page);
  await composer.getByRole("button", { name: "Remove dot.png" }).waitFor();
  assert.equal(await chat.error.count(), 0);
  await chat.ask("What is it?", "A dot.");
  assert.match(JSON.stringify(chat.server.model.asked[0]?.messages), /What is it\?.*image_url/);
});

test("files that wait come with another try, and are named after a reload that has lost them", async (t) => {
  const chat = await openChat(t, browser, { turns: [], expectedComplaints });
  await refuse(chat.page, "files", 1);
  await pauseForLong(chat.page);
  await chat.files.setInputFiles(DOT);
  await chat.retry.click();
  await chat.page.getByRole("button", { name: "Remove dot.png" }).click();
  await chat.page.unrouteAll();
  await chat.page.reload();
  await refuse(chat.page, "files", 1);
  await pauseForLong(chat.page);
  await chat.files.setInputFiles(DOT);
  await chat.error.waitFor();
  await chat.page.reload();
  await chat.page.locator('[part="refusals"]').getByText("dot.png is no longer here").waitFor();
});

test("what changes a message is there before anybody wants to: ↑ needs no server", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")]], expectedComplaints });
  const loaded = chat.page.waitForResponse("**/chunks/actions-*");
  await chat.ask("First", "One.");
  await (await loaded).finished();
  await chat.page.route("**", (route) => route.abort());
  await chat.input.press("ArrowUp");
  assert.equal(await chat.input.inputValue(), "First");
});

test("a message that cannot be changed yet is said to be so, the draft stays, and another try changes it", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("One.")], [say("Two.")]],
    expectedComplaints,
  });
  await refuse(chat.page, "actions", 2);
  await pauseForLong(chat.page);
  await chat.ask("First", "One.");
  await chat.input.fill("A draft that waits");
  await chat.page.getByRole("button", { name: "Change this message" }).click();
  await chat.error.getByText("The chat server cannot be reached.").waitFor();
  assert.equal(await chat.input.inputValue(), "A draft that waits");
  await chat.retry.click();
  await chat.page.locator('[part="editing"]').waitFor();
  assert.equal(await chat.error.count(), 0);
  assert.equal(await chat.input.inputValue(), "First");
  await chat.say("First, changed");
  await chat.replies.getByText("Two.").waitFor();
  assert.equal(await chat.questions.count(), 1);
  assert.equal(await chat.input.inputValue(), "A draft that waits");
});

test("who writes on, or presses Escape, is not interrupted by the message that was to be changed", async (t) => {
  const turns = [[say("One.")]];
  for (const meanwhile of ["I am writing some", "Escape"]) {
    const chat = await openChat(t, browser, { turns, expectedComplaints });
    await refuse(chat.page, "actions", 1);
    await pauseForLong(chat.page);
    const refused = chat.page.waitForEvent("requestfailed");
    await chat.ask("First", "One.");
    await refused;
    const held = new Promise<Route>((resolve) => {
      void chat.page.route("**/chunks/actions-*", resolve);
    });
    await chat.page.getByRole("button", { name: "Change this message" }).click();
    const slow = await held;
    if (meanwhile === "Escape") await chat.page.keyboard.press(meanwhile);
    else await chat.input.pressSequentially(meanwhile);
    await slow.continue();
    await canCopy(chat.page);
    assert.notEqual(await chat.input.inputValue(), "First");
    assert.equal(await chat.page.locator('[part="editing"]').count(), 0);
  }
});

test("a message that waits for the connection is taken back without what changes the others", async (t) => {
  const chat = await openChat(t, browser, { expectedComplaints, proxy: {} });
  await refuse(chat.page, "actions", Number.POSITIVE_INFINITY);
  await chat.greeting.waitFor();
  await chat.proxy.down();
  await chat.say("First");
  await chat.input.fill("Second");
  await chat.page.getByRole("button", { name: "Change", exact: true }).click();
  assert.equal(await chat.input.inputValue(), "First\n\nSecond");
  assert.equal(await chat.questions.count(), 0);
});
