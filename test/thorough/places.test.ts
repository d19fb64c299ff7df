/** Several chats of one server in one tab, in the page and its frames: each `id` has its own conversation. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { Frame, Page } from "playwright-core";
import { chatIn, failOnComplaints } from "../browser/chat-page.ts";
import { holdKept, kept, untilForgotten } from "../browser/kept.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";

const browser = await launchBrowser({ after });

const NAMES = ["one", "two", "three", "four"] as const;

/** A site with two chats in its page and one in each of two frames. */
async function openSite(t: TestContext) {
  const server = await startServer(t, { turns: NAMES.map((name) => [say(`It is ${name}.`)]) });
  const script = `<script src="${server.url}/widget.js"></script>`;
  const chat = (id: string) => `<agent-chat ${id} style="height: 250px"></agent-chat>`;
  const site = await startSite(t, {
    "/": sitePage(`${script}${chat("")}${chat("id=two")}<iframe src="/left"></iframe><iframe src="/right"></iframe>`),
    "/left": sitePage(script + chat("id=left")),
    "/right": sitePage(script + chat("id=right")),
    "/named": sitePage(script + chat("id=two")),
    "/same": sitePage(`${script}${chat("id=two")}<iframe src="/named"></iframe>`),
  });
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints);
  return { page, url: site.url };
}

const frame = async (page: Page, path: string): Promise<Frame> => {
  const element = await page.waitForSelector(`iframe[src="${path}"]`);
  return (await element.contentFrame()) as Frame;
};

/** The four chats, in the order of `NAMES`. */
const chatsIn = async (page: Page) => [
  chatIn(page.locator("agent-chat").nth(0)),
  chatIn(page.locator("agent-chat").nth(1)),
  chatIn(await frame(page, "/left")),
  chatIn(await frame(page, "/right")),
];

test("each chat of a page and its frames has its conversation after a reload, whichever is there first", async (t) => {
  const { page, url } = await openSite(t);
  await page.goto(url);
  for (const [index, chat] of (await chatsIn(page)).entries()) {
    await chat.ask(`I am ${NAMES[index]}`, `It is ${NAMES[index]}.`);
  }
  const left = gate();
  await page.route("**/left", async (route) => {
    await left.opened;
    await route.continue();
  });
  await page.reload({ waitUntil: "commit" });
  await chatIn(await frame(page, "/right"))
    .replies.getByText("It is four.")
    .waitFor();
  left.open();
  for (const [index, chat] of (await chatsIn(page)).entries()) {
    await chat.replies.getByText(`It is ${NAMES[index]}.`).waitFor();
    assert.equal(await chat.questions.count(), 1);
  }
});

test("each chat has its conversation after a reload, also when a frame's was the first to come", async (t) => {
  const { page, url } = await openSite(t);
  const come = gate();
  await page.route("**/chunks/*", async (route) => {
    if (route.request().frame() === page.mainFrame()) await come.opened;
    await route.continue();
  });
  await page.goto(url);
  const [first, second, left] = await chatsIn(page);
  await left?.ask("I am in a frame", "It is one.");
  come.open();
  await first?.ask("I am the first", "It is two.");
  await second?.ask("I am the second", "It is three.");
  await page.unroute("**/chunks/*");
  await page.reload();
  for (const [chat, text] of [
    [first, "It is two."],
    [second, "It is three."],
    [chatIn(await frame(page, "/left")), "It is one."],
  ] as const) {
    await chat?.replies.getByText(text).waitFor();
    assert.equal(await chat?.questions.count(), 1);
  }
});

test("a chat that is told to keep nothing before its conversation is there forgets that, and no other's", async (t) => {
  const { page, url } = await openSite(t);
  await page.goto(url);
  const [first, second] = await chatsIn(page);
  await first?.ask("I am one", "It is one.");
  await second?.ask("I am two", "It is two.");
  const release = await holdKept(page);
  await page.reload();
  const persist = (word: string) =>
    page
      .locator("agent-chat")
      .nth(1)
      .evaluate((element, it) => element.setAttribute("persist", it), word);
  await second?.input.waitFor();
  await persist("none");
  await second?.greeting.waitFor();
  await release();
  await first?.replies.getByText("It is one.").waitFor();
  await untilForgotten(page, /I am two/);
  await page
    .locator("agent-chat")
    .nth(1)
    .evaluate((it) => it.setAttribute("persist", "session"));
  await page.goto(`${url}/named`);
  await chatIn(page.locator("agent-chat")).greeting.waitFor();
  assert.match(await kept(page), /I am one/);
});

test("chats with the same id, in the page and in its frame, show one conversation, and each can go on with it", async (t) => {
  const { page, url } = await openSite(t);
  await page.goto(`${url}/same`);
  const [first, framed] = [chatIn(page.locator("agent-chat")), chatIn(await frame(page, "/named"))];
  await framed.greeting.waitFor();
  await framed.input.fill("I am three");
  await first.ask("I am one", "It is one.");
  await framed.replies.getByText("It is one.").waitFor();
  assert.equal(await framed.input.inputValue(), "I am three");
  await first.ask("I am two", "It is two.");
  await framed.replies.getByText("It is two.").waitFor();
  await framed.answered(2);
  await framed.ask("I am three", "It is three.");
  await first.replies.getByText("It is three.").waitFor();
  await page.reload();
  for (const chat of [first, chatIn(await frame(page, "/named"))]) {
    await chat.replies.getByText("It is three.").waitFor();
    assert.equal(await chat.questions.count(), 3);
  }
});

test("a draft that is saved in the frame before it hears of the page's first message takes nothing away", async (t) => {
  const { page, url } = await openSite(t);
  await page.addInitScript(`if (window !== top) {
    const heard = new Promise((resolve) => { window.hear = resolve; });
    Object.defineProperty(BroadcastChannel.prototype, "onmessage", {
      set(listener) { this.addEventListener("message", (event) => heard.then(() => listener(event))); },
    });
  }`);
  await page.goto(`${url}/same`);
  const inside = await frame(page, "/named");
  const [first, framed] = [chatIn(page.locator("agent-chat")), chatIn(inside)];
  await framed.greeting.waitFor();
  await first.ask("I am one", "It is one.");
  await framed.input.fill("I am two");
  await inside.waitForFunction(() => Object.values(sessionStorage).some((text) => text.includes("I am two")));
  await inside.evaluate("hear()");
  await framed.replies.getByText("It is one.").waitFor();
  assert.equal(await framed.input.inputValue(), "I am two");
  await page.reload();
  await first.replies.getByText("It is one.").waitFor();
});
