/** What browsers skip of a long answer as too far from view: it is not painted or watched meanwhile, and whole when it comes. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { Page } from "playwright-core";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say, wait } from "../support/scripted-provider.ts";
import { openChat } from "./chat-page.ts";

const browser = await launchBrowser({ after });

const BLOCKS = 300;

/** The number of one that is in view before the rest comes, and in a part that is skipped then. */
const EARLY = 48;

const blocks = Array.from(
  { length: BLOCKS },
  (_, index) => `\`\`\`ts\nconst number${index} = ${"1 + ".repeat(10)}1;\n\`\`\`\n`,
);

/** A chat that has answered with as many blocks of code; every `ResizeObserver` of its page counts what it observes. */
async function longAnswer(t: TestContext) {
  const rest = gate();
  const chat = await openChat(t, browser, {
    turns: [[say(blocks.slice(0, 50).join("")), wait(rest.opened), say(blocks.slice(50).join(""))]],
  });
  const { page } = chat;
  await page.addInitScript(() => {
    const observed = new Set<Element>();
    const { observe, unobserve } = ResizeObserver.prototype;
    ResizeObserver.prototype.observe = function (target, ...options) {
      observed.add(target);
      observe.call(this, target, ...options);
    };
    ResizeObserver.prototype.unobserve = function (target) {
      observed.delete(target);
      unobserve.call(this, target);
    };
    Object.assign(globalThis, { observed });
  });
  await page.reload();
  await chat.say("Show me");
  await untilPainted(page, `number${EARLY} `);
  rest.open();
  await chat.send.waitFor();
  await chat.answer
    .locator("pre")
    .nth(BLOCKS - 1)
    .waitFor();
  return chat;
}

/** Waits until code is painted, or no longer. */
async function untilPainted(page: Page, text: string, isPainted = true): Promise<void> {
  await page.waitForFunction(
    ([source, expected]) =>
      [...(CSS.highlights.get("agent-chat-keyword") ?? [])].some((range) =>
        range.startContainer.textContent?.includes(source),
      ) === expected,
    [text, isPainted] as const,
  );
}

test("of a long answer only what is near is painted and watched, and all of it where somebody scrolls to", async (t) => {
  const { page, answer } = await longAnswer(t);
  const last = `number${BLOCKS - 1} `;
  await untilPainted(page, last);
  await untilPainted(page, `number${EARLY} `, false);
  const ranges = () => page.evaluate(() => CSS.highlights.get("agent-chat-keyword")?.size ?? 0);
  const atEnd = await ranges();
  assert.ok(atEnd < BLOCKS / 2, `${atEnd} painted`);
  const watched = await page.evaluate(
    () => (globalThis as unknown as { observed: Set<Element> }).observed.size,
  );
  assert.ok(watched < BLOCKS, `${watched} watched, two of each block that is not skipped`);
  await answer.locator("pre").nth(EARLY).scrollIntoViewIfNeeded();
  await untilPainted(page, `number${EARLY} `);
  await answer.locator("pre").last().scrollIntoViewIfNeeded();
  await untilPainted(page, `number${EARLY} `, false);
});

test("what was skipped when its element left the page has its colours when that is back", async (t) => {
  const { page, answer } = await longAnswer(t);
  await untilPainted(page, `number${EARLY} `, false);
  await page.locator("agent-chat").evaluate((chat) => {
    const { parentNode } = chat;
    chat.remove();
    parentNode?.append(chat);
  });
  await answer.locator("pre").nth(EARLY).scrollIntoViewIfNeeded();
  await untilPainted(page, `number${EARLY} `);
});

test("code that came to be too wide while it was skipped is a stop of the keyboard when it comes into view", async (t) => {
  const { page, answer } = await longAnswer(t);
  const early = answer.locator("pre").nth(EARLY);
  await untilPainted(page, `number${EARLY} `, false);
  await answer.locator("pre:not([tabindex])").last().waitFor();
  await page.setViewportSize({ width: 320, height: 640 });
  await answer.locator("pre[tabindex]").last().waitFor();
  assert.equal(await early.getAttribute("tabindex"), null);
  await early.scrollIntoViewIfNeeded();
  await early.and(answer.locator("[tabindex='0']")).waitFor();
});
