/** The reader's position in the conversation, and the space that remains for reading. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Locator } from "playwright-core";
import { type ChatPage, isFocused, openChat, standsAt } from "../browser/chat-page.ts";
import { button, PHONE, panel, visit } from "../browser/launcher-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { call, say, wait } from "../support/scripted-provider.ts";
import { echo } from "../support/test-tools.ts";

const browser = await launchBrowser({ after });

const LONG = Array.from(
  { length: 40 },
  (_, index) => `Paragraph ${index + 1}. ${"Some words that fill a line or two of it. ".repeat(4)}`,
).join("\n\n");

/** The label of the paragraph at the top of the view. */
const topParagraph = (messages: Locator) =>
  messages.evaluate((box) => {
    const { top } = box.getBoundingClientRect();
    const paragraphs = [...box.querySelectorAll("[part~=markdown] p")];
    return paragraphs.find((it) => it.getBoundingClientRect().bottom > top + 4)?.textContent?.split(".")[0];
  });

const showParagraph = (chat: ChatPage, number: number) =>
  chat.messages.evaluate((box, wanted) => {
    const found = [...box.querySelectorAll("[part~=markdown] p")].find((it) => it.textContent?.startsWith(wanted));
    const target = (found as Element).getBoundingClientRect().top - box.getBoundingClientRect().top;
    // Like a wheel, so that the chat attributes the scroll to the reader.
    box.dispatchEvent(new WheelEvent("wheel", { deltaY: -1 }));
    box.scrollTop += target;
  }, `Paragraph ${number}.`);

/** Waits until the chat has rendered and restored its scroll position. */
const settled = ({ messages }: ChatPage) => standsAt(messages);

test("a reader's place is kept when the window gets narrower and wider, and over a reload", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say(LONG)], [say("Short.")]],
    browser: { viewport: { width: 900, height: 600 } },
  });
  await chat.say("Long");
  await chat.answered();
  await showParagraph(chat, 17);
  await settled(chat);
  assert.equal(await topParagraph(chat.messages), "Paragraph 17");
  for (const [width, height] of [
    [400, 800],
    [844, 390],
    [900, 600],
  ] as const) {
    await chat.page.setViewportSize({ width, height });
    await chat.page.waitForFunction((it) => innerWidth === it, width);
    await settled(chat);
    assert.equal(await topParagraph(chat.messages), "Paragraph 17", `${width} px`);
  }
  await chat.page.reload();
  await chat.replies.getByText("Paragraph 17.").waitFor();
  await chat.page.locator('[part="jump"]').waitFor();
  await settled(chat);
  assert.equal(await topParagraph(chat.messages), "Paragraph 17");
  await chat.page.getByRole("button", { name: "Jump to latest" }).click();
  await settled(chat);
  await chat.page.reload();
  await chat.replies.getByText("Paragraph 40.").waitFor();
  await settled(chat);
  assert.equal(await chat.page.locator('[part="jump"]').count(), 0, "who was at the end is there again");
});

test("a reload leads back to a question of which all is in view until the rows of its tools are there", async (t) => {
  const calls = Array.from({ length: 12 }, (_, index) => call(`c${index}`, "echo", { text: `ping ${index}` }));
  const chat = await openChat(t, browser, {
    agent: { tools: [echo] },
    turns: [calls, [say("Pong.")]],
    browser: { viewport: { width: 900, height: 600 } },
  });
  const { page } = chat;
  await page.addInitScript(() => {
    document.addEventListener("DOMContentLoaded", () =>
      document.querySelector("agent-chat")?.setAttribute("tools", "open"),
    );
  });
  await page.reload();
  const question = () => chat.questions.evaluate((it) => Math.round(it.getBoundingClientRect().top));
  await chat.ask("Ping", "Pong.");
  await chat.tools.nth(11).waitFor();
  await settled(chat);
  const before = await question();
  const rows = gate();
  await page.route("**/chunks/steps-*", async (route) => {
    await rows.opened;
    await route.continue();
  });
  await page.reload();
  await chat.replies.getByText("Pong.").waitFor();
  await settled(chat);
  await page.setViewportSize({ width: 900, height: 590 });
  await settled(chat);
  rows.open();
  await chat.tools.nth(11).waitFor();
  await settled(chat);
  assert.equal(await question(), before);
});

test("a reload leads back to the same place in a chat that is shown later", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say(LONG)]], browser: { viewport: { width: 900, height: 600 } } });
  await chat.say("Long");
  await chat.answered();
  await showParagraph(chat, 17);
  await settled(chat);
  await chat.page.addInitScript(() => {
    document.addEventListener("DOMContentLoaded", () => {
      document.body.hidden = true;
    });
  });
  await chat.page.reload();
  await chat.replies.getByText("Paragraph 40.").waitFor({ state: "attached" });
  await settled(chat);
  await chat.page.evaluate(() => {
    document.body.hidden = false;
  });
  await chat.page.locator('[part="jump"]').waitFor();
  await settled(chat);
  assert.equal(await topParagraph(chat.messages), "Paragraph 17");
});

test("at 400 % zoom the answer's first line is anchored, most of the window is for reading, and the way to its end is an icon at the end of a line", async (t) => {
  const middle = gate();
  const chat = await openChat(t, browser, {
    turns: [[say(LONG), wait(middle.opened), say("\n\nThe end.")], [say(LONG)]],
    agent: { agent: "Ada", chat: { disclaimer: "Ada can be wrong." } },
    browser: { viewport: { width: 320, height: 256 }, reducedMotion: "reduce" },
  });
  await chat.say("A question that takes two lines at this width");
  await chat.replies.getByText("Paragraph 40.").waitFor();
  await settled(chat);
  const view = await chat.messages.boundingBox();
  assert.ok(view && view.y === 0 && view.height >= 180, `${view?.height} px to read in`);
  const first = await chat.replies.getByText("Paragraph 1.").boundingBox();
  assert.ok(first && first.y >= view.y && first.y <= view.y + 40, `${first?.y} below ${view.y}`);
  const jump = chat.page.getByRole("button", { name: "Ada is writing Jump to latest" });
  const pill = await jump.boundingBox();
  assert.ok(pill && pill.width <= 36 && pill.x > 260 && pill.height <= 32, JSON.stringify(pill));
  const header = async () => (await chat.page.locator('[part="header"]').boundingBox())?.y ?? Number.NaN;
  assert.ok((await header()) <= -40, "the header has gone with what stands before");
  await chat.page.getByRole("button", { name: "New conversation" }).focus();
  assert.equal(await header(), 0, "it is there for the focus");
  await chat.input.focus();
  assert.equal(await chat.page.locator('[part="disclaimer"]').isVisible(), false);
  middle.open();
  await chat.answered();
  await chat.page.getByRole("button", { name: "Jump to latest", exact: true }).waitFor();
  await chat.messages.press("Home");
  await chat.page.waitForFunction(
    (it) => it && it.getBoundingClientRect().y === 0,
    await chat.page.locator('[part="header"]').elementHandle(),
  );
  const question = await chat.questions.boundingBox();
  assert.ok(question && question.y >= 40, `the question at ${question?.y} is below the header`);
  await chat.page.clock.setFixedTime(Date.now() + 60 * 60_000);
  await chat.say("A question after an hour, which has its time above it");
  await chat.answered(2);
  await settled(chat);
  const next = await chat.answer.getByText("Paragraph 1.").boundingBox();
  assert.ok(next && next.y >= view.y && next.y <= view.y + 40, `${next?.y} below ${view.y}`);
});

test("the arrow that takes the last message back brings it into view", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say(LONG)], [say("Short.")]],
    browser: { viewport: { width: 800, height: 500 } },
  });
  await chat.say("Long");
  await chat.answered();
  await chat.ask("The last one", "Short.");
  await showParagraph(chat, 3);
  await settled(chat);
  await chat.input.press("ArrowUp");
  assert.equal(await chat.edited.inputValue(), "The last one");
  await settled(chat);
  const [box, view] = [await chat.questions.last().boundingBox(), await chat.messages.boundingBox()];
  assert.ok(
    box && view && box.y >= view.y && box.y + box.height < view.y + view.height + 1,
    JSON.stringify([box, view]),
  );
});

test("on a touch screen sending, a suggestion, a button that goes and the launcher open no keyboard", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("One.")], [say("Two.")], [say("Three.")]],
    agent: { chat: { suggestions: ["Ask this"], disclaimer: "It may be wrong." } },
    browser: { ...PHONE, isMobile: true },
  });
  await chat.page.getByRole("button", { name: "Ask this" }).tap();
  await chat.answered();
  assert.equal(await isFocused(chat.input), false, "after a suggestion");
  const disclaimer = chat.page.locator('[part="disclaimer"]');
  await chat.input.tap();
  assert.equal(await disclaimer.isVisible(), true);
  // The height above a screen keyboard.
  await chat.page.setViewportSize({ width: 390, height: 420 });
  await disclaimer.waitFor({ state: "hidden" });
  await chat.input.fill("And?");
  await chat.send.tap();
  await chat.answered(2);
  assert.equal(await isFocused(chat.input), false, "after sending");
  await disclaimer.waitFor();
  await chat.page.getByRole("button", { name: "Answer again" }).tap();
  await chat.messages.and(chat.page.locator(":focus:not(:focus-visible)")).waitFor();

  const { page, input } = await visit(t, browser, { browser: { ...PHONE, isMobile: true } });
  await button(page).tap();
  await panel(page).and(page.locator(":focus")).waitFor();
  assert.equal(await isFocused(input), false, "after opening the launcher");
});
