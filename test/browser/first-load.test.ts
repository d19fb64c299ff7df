/** What a visitor's browser loads until the chat is usable, and what waits for the first message. */

import assert from "node:assert/strict";
import { after } from "node:test";
import type { Page } from "playwright-core";
import { approval, asked, startAskingSite } from "../support/asking-agent.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { it, test } from "../support/rows.ts";
import { say, wait } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";
import { chatIn, openChat, shown } from "./chat-page.ts";
import { untilKept } from "./kept.ts";
import { listen, untilHeard } from "./listening.ts";

const browser = await launchBrowser({ after });

/** A page that is never idle until the test says so. */
const BUSY = `{
  const works = [];
  globalThis.requestIdleCallback = (work) => works.push(work);
  globalThis.beIdle = () => { for (const work of works.splice(0)) work(); };
}`;

/** Names of the chunks that the page requests, in order, without those that its start needs. */
function watchChunks(page: Page): string[] {
  const names: string[] = [];
  page.on("request", (request) => {
    const [, name] = /\/chunks\/([a-z-]+)-\w+\.js$/.exec(request.url()) ?? [];
    if (name && !/^(?:chat|chunk|page)$/.test(name)) names.push(name);
  });
  return names;
}

/** Delays a chunk until the gate opens. */
async function hold(page: Page, name: string, until: Promise<unknown>): Promise<void> {
  await page.route(`**/chunks/${name}-*`, async (route) => {
    await until;
    await route.continue();
  });
}

test("an empty chat asks for nothing but itself until the page is idle, and for a list when the first answer has ended", async (t) => {
  const rest = gate();
  const server = await startServer(t, { turns: [[say("**Hello"), wait(rest.opened), say("!**")]] });
  const { page } = await openPage(t, browser);
  await page.addInitScript(BUSY);
  const asked = watchChunks(page);
  const chat = chatIn(page);
  await page.goto(server.url);
  await chat.greeting.waitFor();
  await chat.send.waitFor();
  await page.waitForLoadState("networkidle");
  assert.deepEqual(asked, []);
  const loaded = page.waitForResponse(/\/chunks\/talk-/);
  await page.evaluate("beIdle()");
  await loaded;
  await chat.say("Hi");
  await chat.answer.getByText("Hello").waitFor();
  await untilKept(page, /Hello/);
  assert.deepEqual(asked, ["talk", "indexed-db"]);
  rest.open();
  await page.getByRole("button", { name: "Conversations" }).waitFor();
  assert.equal(await shown(chat.answer), "Hello!");
  assert.deepEqual(asked, ["talk", "indexed-db", "all-conversations", "conversation-list"]);
});

test("while the code that draws messages is still on its way, the question is seen; then its answer, whole and spoken", async (t) => {
  const [arrives, rest] = [gate(), gate()];
  const server = await startServer(t, { turns: [[say("First **wo"), wait(rest.opened), say("rd**.")]] });
  const { page } = await openPage(t, browser);
  await hold(page, "talk", arrives.opened);
  const chat = chatIn(page);
  await page.goto(server.url);
  await chat.say("What is <b>?");
  await chat.messages.getByText("What is <b>?").waitFor();
  await chat.stop.waitFor();
  assert.ok(await chat.input.evaluate((field) => field === (field.getRootNode() as ShadowRoot).activeElement));
  const drawn = page.evaluate(async () => {
    const element = document.querySelector("agent-chat");
    await element?.updateComplete;
    return element?.shadowRoot?.querySelector(".markdown")?.textContent;
  });
  arrives.open();
  assert.equal(await drawn, "First wo", "`updateComplete` waits for it");
  rest.open();
  await chat.answered();
  assert.equal(await shown(chat.answer), "First word.");
  assert.equal(await chat.questions.count(), 1);
  await page.getByRole("status").getByText("First word.").waitFor();
});

it("an answer that has ended before it could be drawn is drawn, anchored and spoken", async (t) => {
  const arrives = gate();
  const server = await startServer(t, { turns: [[say("All of it.")]] });
  const { page } = await openPage(t, browser);
  await hold(page, "talk", arrives.opened);
  const chat = chatIn(page);
  await page.goto(server.url);
  await chat.greeting.waitFor();
  const done = page.evaluate(
    () => new Promise((resolve) => document.addEventListener("agent-chat-done", () => resolve(true), { once: true })),
  );
  await chat.say("Hi");
  await done;
  assert.equal(await shown(chat.messages), "Hi");
  arrives.open();
  await chat.answered();
  await page.getByRole("status").getByText("All of it.").waitFor();
  assert.equal(await page.locator(".exchange.anchored").count(), 1);
});

it("what is asked before it could be drawn is drawn and spoken", async (t) => {
  const arrives = gate();
  const { agent, url } = await startAskingSite(t);
  const { page } = await openPage(t, browser);
  await hold(page, "talk", arrives.opened);
  const chat = chatIn(page);
  await page.goto(url);
  await chat.say("Cancel it");
  const heard = await listen(page);
  (await agent.turn()).send(approval("1", "Cancel order 4711?"), asked());
  await page.getByPlaceholder("Decide above").waitFor();
  arrives.open();
  await page.locator('[part~="approve"]').waitFor();
  await untilHeard(page, heard, "! Cancel order 4711?");
});

it("a tab with a conversation asks for what draws it beside what has been kept", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Kept.")]] });
  await chat.ask("Hi", "Kept.");
  await chat.page.addInitScript(BUSY);
  await chat.page.reload();
  assert.equal(await shown(chat.answer), "Kept.");
});

it("an element in a page asks for it when a person goes into its field, and a preview for neither chat nor panel", async (t) => {
  const server = await startServer(t, { turns: [[say("Here.")]], env: { PARLEY_ALLOWED_ORIGINS: "*" } });
  const script = (attributes: string) => `<script src="${server.url}/widget.js" ${attributes}></script>`;
  const site = await startSite(t, {
    "/": sitePage(`${script("")}<agent-chat style="height: 300px"></agent-chat>`),
    "/preview": sitePage(script('data-preview="Hello!" data-preview-after="0"')),
  });
  const { page } = await openPage(t, browser);
  const asked = watchChunks(page);
  const chat = chatIn(page);
  await page.goto(site.url);
  await chat.greeting.waitFor();
  await page.waitForLoadState("networkidle");
  assert.deepEqual(asked, []);
  const loaded = page.waitForResponse(/\/chunks\/talk-/);
  await chat.input.click();
  await loaded;
  await chat.ask("Hi", "Here.");
  asked.length = 0;
  await page.goto(`${site.url}/preview`);
  await page.locator('[part="preview"]').waitFor();
  await page.waitForLoadState("networkidle");
  assert.deepEqual(asked, ["greeting"]);
});
