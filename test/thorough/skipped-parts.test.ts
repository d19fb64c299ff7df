/** What browsers skip of a long answer as too far from view: it is not painted or watched meanwhile, and whole when it comes. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { Page } from "playwright-core";
import { openChat } from "../browser/chat-page.ts";
import { listen, untilHeard } from "../browser/listening.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say, wait } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

const BLOCKS = 300;

/** The number of one that is in view before the rest comes, and in a part that is skipped then. */
const EARLY = 48;

const blocks = Array.from(
  { length: BLOCKS },
  (_, index) => `\`\`\`ts\nconst number${index} = ${"1 + ".repeat(10)}1;\n\`\`\`\n`,
);

/**
 * A chat that has answered with as many blocks of code; every `ResizeObserver` of its page counts what it observes. With
 * `tools`, the tools of code come only when that resolves.
 */
async function longAnswer(t: TestContext, tools?: Promise<void>) {
  const rest = gate();
  const chat = await openChat(t, browser, {
    turns: [
      [say(blocks.slice(0, 50).join("")), wait(rest.opened), say(blocks.slice(50).join(""))],
      [say(blocks.join(""))],
    ],
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
  if (tools) {
    await page.route("**/chunks/tools*", async (route) => {
      await tools;
      await route.continue();
    });
  }
  await page.reload();
  await chat.say("Show me");
  if (!tools) await untilPainted(page, `number${EARLY} `);
  rest.open();
  await chat.send.waitFor();
  await chat.answer
    .locator("pre")
    .nth(BLOCKS - 1)
    .waitFor();
  return chat;
}

const watched = (page: Page) =>
  page.evaluate(() => (globalThis as unknown as { observed: Set<Element> }).observed.size);

const ranges = (page: Page) => page.evaluate(() => CSS.highlights.get("agent-chat-keyword")?.size ?? 0);

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
  assert.ok((await ranges(page)) < BLOCKS / 2, `${await ranges(page)} painted`);
  assert.ok((await watched(page)) < BLOCKS, `${await watched(page)} watched, two of each block`);
  await answer.locator("pre").nth(EARLY).scrollIntoViewIfNeeded();
  await untilPainted(page, `number${EARLY} `);
  await answer.locator("pre").last().scrollIntoViewIfNeeded();
  await untilPainted(page, `number${EARLY} `, false);
});

test("code is painted near view only, also in a part that is not skipped, and again where somebody scrolls back", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say(blocks.slice(0, 24).join(""))]],
    browser: { viewport: { width: 400, height: 400 } },
  });
  const { page, answer } = chat;
  await chat.say("Go");
  await chat.answered();
  await untilPainted(page, "number23 ");
  await untilPainted(page, "number0 ", false);
  assert.ok((await ranges(page)) < 20, `${await ranges(page)} painted`);
  // Also what is above and not in view yet.
  const above = await answer.evaluate((it) => {
    const top = it.closest(".scroller")?.getBoundingClientRect().top ?? 0;
    return [...(CSS.highlights.get("agent-chat-keyword") ?? [])].filter(({ startContainer }) => {
      const code = startContainer.parentElement;
      return code !== null && code.getBoundingClientRect().bottom < top - 100;
    }).length;
  });
  assert.ok(above > 0);
  await answer.locator("pre").first().scrollIntoViewIfNeeded();
  await untilPainted(page, "number0 ");
  await untilPainted(page, "number23 ", false);
});

test("what was skipped when its element left the page has its colours when that is back", async (t) => {
  const { page, answer } = await longAnswer(t);
  await untilPainted(page, `number${EARLY} `, false);
  const chat = await page.locator("agent-chat").elementHandle();
  await chat?.evaluate((it) => it.remove());
  await page.evaluate(() => new Promise(requestAnimationFrame));
  await chat?.evaluate((it) => document.body.append(it));
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

test("what was skipped before its tools came is not watched", async (t) => {
  const tools = gate();
  const { page, answer } = await longAnswer(t, tools.opened);
  tools.open();
  await answer.locator("pre").last().locator("xpath=..").getByText("Wrap lines").waitFor();
  assert.ok((await watched(page)) < BLOCKS, `${await watched(page)} watched, two of each block`);
});

test("what is added to code has the page laid out no further time, whatever is skipped of it", async (t) => {
  const { page, answer } = await longAnswer(t);
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const layouts = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "LayoutCount")?.value ?? Number.NaN;
  };
  await page.reload();
  await answer.locator("pre").first().getByText("number0 ").waitFor({ state: "attached" });
  await answer.locator("pre").last().locator("xpath=..").getByText("Wrap lines").waitFor();
  assert.ok((await layouts()) < BLOCKS / 2, `${await layouts()} layouts`);
});

test("a long message that comes back into view brings back only what is in view of it", async (t) => {
  const chat = await longAnswer(t);
  const { page, replies } = chat;
  const heard = await listen(page);
  await chat.say("Again");
  await chat.answered(2);
  await replies.nth(1).locator("pre").last().waitFor();
  // What is said of the answer has the chat drawn some more times, which keeps a reader at the end.
  await untilHeard(page, heard, `const number${BLOCKS - 1} = ${"1 + ".repeat(10)}1;`);
  await page.locator('[role="status"]:not(:has(p))').waitFor({ state: "attached" });
  await replies.nth(0).locator("pre").last().scrollIntoViewIfNeeded();
  await page.waitForFunction(
    (text) =>
      [...(CSS.highlights.get("agent-chat-keyword") ?? [])].some(
        ({ startContainer }) =>
          startContainer.textContent?.includes(text) &&
          !startContainer.parentElement?.closest(".message")?.matches(":last-child"),
      ),
    `number${BLOCKS - 1} `,
  );
  assert.ok((await ranges(page)) < BLOCKS, `${await ranges(page)} painted`);
  assert.ok((await watched(page)) < 2 * BLOCKS, `${await watched(page)} watched`);
});

test("with forced colours nothing is painted where somebody scrolls to, and on paper all is", async (t) => {
  const { page, answer } = await longAnswer(t);
  await untilPainted(page, `number${EARLY} `, false);
  const onPaper = await page.evaluateHandle(() => ({
    painted: new Promise<number>((done) => {
      addEventListener("afterprint", () => done(CSS.highlights.get("agent-chat-keyword")?.size ?? 0));
    }),
  }));
  await page.pdf();
  assert.equal(await onPaper.evaluate(({ painted }) => painted), BLOCKS);
  await untilPainted(page, `number${EARLY} `, false);
  await page.emulateMedia({ forcedColors: "active" });
  await page.waitForFunction(() => CSS.highlights.size === 0);
  await answer.locator("pre").nth(EARLY).scrollIntoViewIfNeeded();
  await page.evaluate(() => new Promise((done) => requestIdleCallback(done)));
  assert.equal(await ranges(page), 0);
});

test("an answer that takes the place of a skipped one has the tools of its code at once", async (t) => {
  const code = (line: string, count: number) => say(`\`\`\`ts\n${line.repeat(count)}\`\`\``);
  const chat = await openChat(t, browser, {
    turns: [[code("let early;\n", 1)], [say(blocks.join(""))], [code("let line;\n", 60)]],
  });
  const { page, input, answer, send } = chat;
  await chat.say("One");
  await untilPainted(page, "early");
  await send.waitFor();
  await page.locator("agent-chat").evaluate((it) => {
    it.shadowRoot?.addEventListener(
      "contentvisibilityautostatechange",
      (event) => {
        const { target, skipped } = event as Event & { target: Element; skipped: boolean };
        if (target.textContent.includes("early")) document.body.ariaBusy = String(skipped);
      },
      true,
    );
  });
  await chat.say("Two");
  await chat.answered(2);
  await page.getByRole("button", { name: "Change this message" }).first().click();
  await answer.locator("pre").last().scrollIntoViewIfNeeded();
  await page.locator("body[aria-busy=true]").waitFor({ state: "attached" });
  await input.fill("One, changed");
  await input.press("Enter");
  await page.getByRole("button", { name: "Show all 60 lines" }).waitFor();
});
