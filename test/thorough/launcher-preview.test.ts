/** The bubble next to the closed launcher: the site's text, or the agent's latest message. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { ApiError } from "../../server/protocol/errors.ts";
import type { AgentChatLauncher } from "../../widget/element/public-types.ts";
import { hasFocus } from "../browser/chat-page.ts";
import { button, panel, preview, script, visit } from "../browser/launcher-page.ts";
import { allHeard, listen } from "../browser/listening.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { fail, hang, say, type Turn, wait } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

const launcherIn = (page: Page) => page.locator(".launcher-root");
const LONG_PAGE = "<p>Text of the site.</p>".repeat(80);

/** Listens to the launcher's own live region; it has no alerts. */
const listenTo = (page: Page) => listen(page, launcherIn(page), ["status"]);

const set = (page: Page, properties: Partial<AgentChatLauncher>) =>
  page.locator("agent-chat-launcher").evaluate((launcher, it) => void Object.assign(launcher, it), properties);

test("a site's few words are shown at their moment without marks of Markdown, spoken once a session, and open the chat", async (t) => {
  const { page, input } = await visit(t, browser, {
    script: 'data-preview="Questions **about** [flowers](https://shop.example/flowers)?" data-preview-after="86400000"',
  });
  const heard = await listenTo(page);
  assert.equal(await preview(page).count(), 0);
  await set(page, { previewAfter: 0 });
  await preview(page).waitFor();
  await allHeard(page);
  assert.deepEqual(heard, ["Questions about flowers?"]);
  await page.goto(new URL("/next", page.url()).href);
  await preview(page).waitFor();
  const status = launcherIn(page).getByRole("status");
  assert.equal((await status.textContent())?.trim(), "", "it was spoken before");
  await page.getByRole("button", { name: "Questions about flowers?" }).click();
  await input.waitFor();
  await hasFocus(input);
  assert.equal(await preview(page).count(), 0);
  await page.keyboard.press("Escape");
  await panel(page).waitFor({ state: "hidden" });
  assert.equal(await preview(page).count(), 0, "the chat is known");
});

for (const [key, press] of [
  ["its button", ["Tab", "Tab", "Enter"]],
  ["Escape", ["Tab", "Escape"]],
] as const) {
  test(`dismissed by ${key} it does not come again, and nothing opens by itself any more`, async (t) => {
    const { page } = await visit(t, browser, {
      script: 'data-preview="Questions?" data-preview-after="0" data-auto-open="86400000"',
    });
    await preview(page).waitFor();
    for (const it of press) await page.keyboard.press(it);
    await preview(page).waitFor({ state: "detached" });
    await hasFocus(button(page), "the focus is on what the bubble pointed at");
    await page.goto(new URL("/next", page.url()).href);
    await page.locator('.launcher-root > [role="status"]').waitFor({ state: "attached" });
    // The page changes the times, which no longer concern the launcher.
    await set(page, { autoOpen: 0, previewAfter: 1 });
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 2)));
    assert.equal(await preview(page).count(), 0);
    assert.equal(await panel(page).isVisible(), false);
  });
}

test("data-auto-open opens at its time and not before", async (t) => {
  const chat = await visit(t, browser, { script: 'data-auto-open="86400000"' });
  await chat.page.locator('.launcher-root > [role="status"]').waitFor({ state: "attached" });
  assert.equal(await panel(chat.page).isVisible(), false);
  await set(chat.page, { autoOpen: 1 });
  await chat.input.waitFor();
});

const ANSWER =
  "**We** deliver on `Sundays` <img src=x onerror=alert(1)> too,\n\n- to the city\n- to everywhere else, if one asks in time, which means a day before, or a week in spring, when all want flowers";

for (const [what, turn, expected] of [
  [
    "an answer",
    (closed: Promise<void>): Turn => [say("**We**"), wait(closed), say(ANSWER.slice(6))],
    "We deliver on Sundays <img src=x onerror=alert(1)> too, to the city to everywhere else, if one asks in time, which means a day before, or a…",
  ],
  [
    "a failure",
    (closed: Promise<void>): Turn => [
      say("**We**"),
      wait(closed),
      fail(new ApiError("provider_error", "The model is ill.")),
    ],
    "The model is ill.",
  ],
  [
    "an answer with few spaces",
    (closed: Promise<void>): Turn => [say("We "), wait(closed), say("語".repeat(200))],
    `We ${"語".repeat(137)}…`,
  ],
] as const) {
  test(`the beginning of ${what} that came while the panel was closed is shown and spoken, with the number`, async (t) => {
    const closed = gate();
    const chat = await visit(t, browser, { turns: [turn(closed.opened)] });
    const { page } = chat;
    await button(page).click();
    await chat.say("Go");
    await chat.replies.getByText("We").waitFor();
    await page.getByRole("button", { name: "Close chat" }).last().click();
    await panel(page).waitFor({ state: "hidden" });
    const heard = await listenTo(page);
    closed.open();
    await preview(page).waitFor();
    assert.equal(await preview(page).innerText(), expected);
    await allHeard(page);
    assert.equal(heard.join(" "), `1 new message ${expected}`);
    assert.equal(await page.locator('[part="unread"]').textContent(), "1");
    await page.getByRole("button", { name: "Open chat, 1 new message" }).click();
    await page.locator('[part="unread"]').waitFor({ state: "detached" });
    assert.equal(await preview(page).count(), 0);
  });
}

test("an answer that the person has stopped is no news, and what says nothing is no bubble", async (t) => {
  const { page, ...chat } = await visit(t, browser, {
    turns: [[say("One.")], [hang]],
    script: 'data-preview=" " data-preview-after="0"',
  });
  await button(page).click();
  await chat.ask("First", "One.");
  await chat.say("Second");
  await chat.stop.waitFor();
  await page.locator("agent-chat-launcher").evaluate(async (launcher) => {
    const over = new Promise((resolve) => {
      launcher.addEventListener("agent-chat-done", resolve, { once: true });
    });
    const { chat } = launcher as AgentChatLauncher;
    chat?.stop();
    (launcher as AgentChatLauncher).close();
    await over;
    await chat?.updateComplete;
    await (launcher as AgentChatLauncher).updateComplete;
  });
  await page.getByRole("button", { name: "Open chat", exact: true }).waitFor();
  assert.equal(await page.locator('[part="unread"]').count(), 0);
  assert.equal(await preview(page).count(), 0);
});

test("what comes while another tab is in front is shown and spoken when the page is", async (t) => {
  const { page } = await visit(t, browser, { body: "<p>Here</p>" });
  // Loads the code for the bubble and its announcement.
  await button(page).hover();
  const heard = await listenTo(page);
  await page.evaluate(async () => {
    Object.defineProperty(document, "visibilityState", { configurable: true, value: "hidden" });
    const launcher = document.querySelector("agent-chat-launcher");
    if (launcher) Object.assign(launcher, { preview: "Questions?", previewAfter: 0 });
    await launcher?.updateComplete;
    // Runs after the bubble's timer, which was set first.
    await new Promise((resolve) => setTimeout(resolve));
    if (launcher?.shadowRoot?.querySelector(".preview")) throw new Error("it was shown in a hidden page");
    Reflect.deleteProperty(document, "visibilityState");
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await preview(page).waitFor();
  await allHeard(page);
  assert.deepEqual(heard, ["Questions?"]);
});

test("the bubble stays inside the narrowest screen, and moves nothing of the page", async (t) => {
  const { page } = await visit(t, browser, {
    script: `data-preview="${"Donaudampfschifffahrt ".repeat(9)}" data-preview-after="0" data-label="Ask us"`,
    body: LONG_PAGE,
    browser: { viewport: { width: 320, height: 568 }, hasTouch: true },
  });
  await preview(page).waitFor();
  const box = await preview(page).boundingBox();
  assert.ok(box && box.x >= 20 && box.x + box.width <= 300, JSON.stringify(box));
  assert.ok(box.height < 568 / 4, `${box.height} pixels of the page are covered`);
  const shifts = await script(
    page,
    `new Promise((resolve) => {
       new PerformanceObserver((list) => resolve(list.getEntries().length)).observe({ type: "layout-shift", buffered: true });
       requestAnimationFrame(() => requestAnimationFrame(() => resolve(0)));
     })`,
  );
  assert.equal(shifts, 0);
});

test("with forced colours button, bubble and panel keep an edge", async (t) => {
  const { page } = await visit(t, browser, {
    script: 'data-preview="Questions?" data-preview-after="0"',
    browser: { forcedColors: "active" },
  });
  const edge = (part: Locator) => part.evaluate((it) => getComputedStyle(it).borderTopWidth);
  await preview(page).waitFor();
  assert.deepEqual(await Promise.all([preview, button].map((it) => edge(it(page)))), ["1px", "1px"]);
  await button(page).click();
  await panel(page).waitFor();
  assert.equal(await edge(panel(page)), "1px");
});
