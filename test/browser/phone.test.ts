import assert from "node:assert/strict";
import { after } from "node:test";
import type { BrowserContextOptions, Locator, Page } from "playwright-core";
import { ApiError } from "../../server/protocol/errors.ts";
import { MARKDOWN_SAMPLE } from "../../server/providers/demo/demo.ts";
import type { AgentChat } from "../../widget/element/agent-chat.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { it, test } from "../support/rows.ts";
import { call, fail, say } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";
import { define, echo } from "../support/test-tools.ts";
import { chatIn, openChat, standsAt, untilSettled } from "./chat-page.ts";
import { visit } from "./launcher-page.ts";

const browser = await launchBrowser({ after });

const phone = (width: number, height: number): BrowserContextOptions => ({
  viewport: { width, height },
  isMobile: true,
  hasTouch: true,
  deviceScaleFactor: 2,
});

const WIDE = `${MARKDOWN_SAMPLE}\n\n${"Donaudampfschifffahrt".repeat(12)} https://example.org/${"long/".repeat(40)}\n\n| ${"wide column | ".repeat(12)}\n|${"---|".repeat(12)}\n| ${"some cell | ".repeat(12)}\n`;

/** Overflow beyond the screen; code and tables scroll in boxes of their own. */
function overflow(page: Page): Promise<{ document: number; transcript: number }> {
  return page.locator('[part="messages"]').evaluate((scroller) => ({
    document: document.documentElement.scrollWidth - innerWidth,
    transcript: scroller.scrollWidth - scroller.clientWidth,
  }));
}

/** Whether the element, or the box around it, can be scrolled sideways. */
function scrollsAside(wide: Locator): Promise<boolean> {
  return wide.evaluate((element) =>
    [element, element.parentElement].some((box) => {
      box?.scrollTo({ left: 40 });
      return box !== null && box.scrollLeft > 0 && getComputedStyle(box).overflowX === "auto";
    }),
  );
}

test("at 320 px nothing is wider than the screen and the composer is in view", async (t) => {
  const chat = await openChat(t, browser, {
    agent: {
      tools: [echo],
      chat: { suggestions: ["A first message that is rather long for a button"] },
    },
    turns: [[call("c1", "echo", { text: "x".repeat(300) })], [say(WIDE)]],
    browser: phone(320, 568),
  });
  await chat.greeting.waitFor();
  assert.deepEqual(await overflow(chat.page), { document: 0, transcript: 0 });
  await chat.say("w".repeat(200));
  await chat.replies.getByText("some cell").first().waitFor();
  await chat.send.waitFor();
  await chat.tools.getByRole("button").tap();
  await chat.tools.locator("pre").first().waitFor();
  assert.deepEqual(await overflow(chat.page), { document: 0, transcript: 0 });
  for (const wide of [chat.answer.locator("pre").first(), chat.answer.locator("table").last()]) {
    assert.equal(await scrollsAside(wide), true, "what is wide can be scrolled by itself");
  }
  for (const control of [chat.input, chat.send]) {
    const box = await control.boundingBox();
    assert.ok(box && box.x >= 0 && box.x + box.width <= 320 && box.y + box.height <= 568);
  }
});

test("on a touch screen the text field does not make the page zoom, Enter makes a line, and the button or Ctrl or ⌘ and Enter send", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("Hi.")], [say("Yes.")], [say("No.")]],
    browser: phone(390, 844),
  });
  const size = await chat.input.evaluate((field) => Number.parseFloat(getComputedStyle(field).fontSize));
  // Safari on iOS zooms into fields with smaller text.
  assert.ok(size >= 16, `the text field has ${size} px`);
  await chat.input.fill("one");
  await chat.input.press("Enter");
  await chat.input.pressSequentially("two");
  assert.equal(await chat.input.inputValue(), "one\ntwo");
  await chat.send.tap();
  await chat.replies.getByText("Hi.").waitFor();
  assert.equal(chat.server.model.asked[0]?.start.message, "one\ntwo");
  for (const [modifier, reply] of [
    ["Control", "Yes."],
    ["Meta", "No."],
  ] as const) {
    await chat.input.fill("More");
    await chat.input.press(`${modifier}+Enter`);
    await chat.replies.getByText(reply).waitFor();
  }
});

it("the composer stays above a keyboard that covers the page, and a zoom by two fingers moves nothing", async (t) => {
  const chat = await openChat(t, browser, { turns: [], browser: phone(390, 844) });
  await chat.greeting.waitFor();
  /** Simulates the keyboard of iOS: the page keeps its size, and is shifted to show the field. */
  const report = (height: number, offsetTop: number, scale: number) =>
    chat.page.evaluate(
      (values) => {
        for (const [name, value] of Object.entries(values)) {
          Object.defineProperty(visualViewport, name, { configurable: true, value });
        }
        visualViewport?.dispatchEvent(new Event("resize"));
      },
      { height, offsetTop, scale },
    );
  const place = async () => {
    const header = await chat.page.locator('[part="header"]').boundingBox();
    const composer = await chat.page.locator('[part="composer"]').boundingBox();
    return { top: header?.y, bottom: (composer?.y ?? 0) + (composer?.height ?? 0) };
  };
  const before = await place();
  assert.equal(before.top, 0);
  await report(500, 40, 1);
  assert.deepEqual(await place(), { top: 40, bottom: before.bottom - 844 + 540 });
  await report(200, 300, 2);
  assert.deepEqual(await place(), { top: 40, bottom: before.bottom - 844 + 540 });
  await report(844, 0, 1);
  assert.deepEqual(await place(), before);
});

it("page and panel keep clear of a phone's notch and bar, and a chat inside of a page takes no room for them", async (t) => {
  const server = await startServer(t, { turns: [] });
  const site = await startSite(t, {
    "/": sitePage(`<script src="${server.url}/widget.js"></script>`),
    "/inside": sitePage(
      `<agent-chat server="${server.url}" style="block-size: 400px"></agent-chat><script src="${server.url}/widget.js"></script>`,
    ),
  });
  const { page } = await openPage(t, browser, phone(390, 844));
  const device = await page.context().newCDPSession(page);
  const insets = { top: 47, bottom: 34, left: 11, right: 13 };
  await device.send("Emulation.setSafeAreaInsetsOverride", { insets });
  /** Distances of header and composer from the edges of a box. */
  const room = async (box: Locator) => {
    const around = await box.boundingBox();
    const header = await page.locator('[part="header"]').boundingBox();
    const composer = await page.locator('[part="composer"]').boundingBox();
    assert.ok(around && header && composer);
    return {
      top: header.y - around.y,
      left: header.x - around.x,
      right: around.x + around.width - header.x - header.width,
      bottom: Math.round(around.y + around.height - composer.y - composer.height),
    };
  };
  const chat = page.locator("agent-chat");
  await page.goto(server.url);
  await chatIn(page).greeting.waitFor();
  assert.deepEqual(await room(chat), { ...insets, bottom: 16 + insets.bottom });
  await page.goto(site.url);
  await page.getByRole("button", { name: "Open chat" }).tap();
  await chatIn(page).greeting.waitFor();
  const panel = page.getByRole("dialog", { name: "Chat" });
  await panel.evaluate((it) => Promise.all(it.getAnimations().map(({ finished }) => finished)));
  assert.deepEqual(await room(panel), { ...insets, bottom: 16 + insets.bottom });
  await page.goto(`${site.url}/inside`);
  await chatIn(page).greeting.waitFor();
  assert.deepEqual(await room(chat), { top: 0, bottom: 16, left: 0, right: 0 });
});

test("on a phone the widget's panel fills the screen and closes by its own button", async (t) => {
  const chat = await visit(t, browser, {
    turns: [[say(WIDE)]],
    browser: { ...phone(390, 844), reducedMotion: "no-preference" },
  });
  const { page } = chat;
  await page.getByRole("button", { name: "Open chat" }).tap();
  const panel = page.getByRole("dialog", { name: "Chat" });
  await chat.say("Wide");
  await chat.replies.getByText("some cell").first().waitFor();
  await chat.send.waitFor();
  // Waits for the end of the opening animation.
  await panel.evaluate((it) => Promise.all(it.getAnimations().map(({ finished }) => finished)));
  assert.deepEqual(await panel.boundingBox(), { x: 0, y: 0, width: 390, height: 844 });
  assert.deepEqual(await overflow(page), { document: 0, transcript: 0 });
  await page.getByRole("button", { name: "Close chat" }).tap();
  await panel.waitFor({ state: "hidden" });
  assert.equal(await page.getByRole("button", { name: "Open chat" }).isVisible(), true);
});

it("the buttons of the card stand in one row that is as wide as it, and a time stands nearer to its message than to the answer", async (t) => {
  const pay = define("pay", () => "", { needsApproval: true });
  const chat = await openChat(t, browser, {
    agent: { tools: [pay] },
    turns: [[say("Gladly."), call("c1", "pay")]],
    browser: phone(390, 844),
  });
  await chat.say("Pay");
  await untilSettled(chat.page.locator('[part="approve"]'));
  const boxOf = async (selector: string) => (await chat.page.locator(selector).boundingBox()) ?? assert.fail(selector);
  // Waits until the sent message has scrolled to the top.
  await standsAt(chat.messages);
  const [card, more, decline, approve] = [
    await boxOf(".asked"),
    await boxOf('[part="show-arguments"]'),
    await boxOf('[part="decline"]'),
    await boxOf('[part="approve"]'),
  ];
  assert.equal(decline.y, approve.y);
  assert.ok(Math.abs(more.y + more.height / 2 - approve.y - approve.height / 2) <= 1, "in the same row");
  // Between the card's paddings: the button for more, whose icon aligns with the text above, and two gaps.
  const widths = [more.width - 8, 8, decline.width, 8, approve.width];
  assert.ok(Math.abs(card.width - 2 * 16 - widths.reduce((sum, width) => sum + width)) <= 1, String(widths));
  assert.ok(more.width >= 44 && more.height >= 44 && decline.height >= 44, "for fingers");
  const [bubble, time, answer] = [await boxOf(".bubble"), await boxOf(".said .time"), await boxOf(".markdown")];
  const [above, below] = [time.y - bubble.y - bubble.height, answer.y - time.y - time.height];
  assert.ok(above >= 0 && below >= 2 * above, `${above} px above, ${below} px below`);
});

test("the buttons of a wide table stand behind the name of its last column", async (t) => {
  const table =
    "| Order | Article number | Description of it | Status today | Arrives on |\n|---|---|---|---|---|\n| 1 | 2 | 3 | 4 | 5 |\n";
  const chat = await openChat(t, browser, { turns: [[say(table)]], browser: phone(390, 844) });
  await chat.say("Where are they?");
  await chat.answered();
  const enlarge = chat.page.getByRole("button", { name: "Enlarge" });
  await enlarge.waitFor();
  const [name, button] = await chat.page.locator(".table").evaluate((box) => {
    box.scrollTo({ left: box.scrollWidth });
    const name = document.createRange();
    name.selectNodeContents(box.querySelector("th:last-child") as Element);
    return [name, box.querySelector(".enlarge") as Element].map((it) => it.getBoundingClientRect().toJSON() as DOMRect);
  });
  assert.ok(name && button && name.right <= button.left, `${name?.right}, ${button?.left}`);
});

test("a last column of words has all of its width, and one of numbers ends where its name does", async (t) => {
  const table = (side: string) => `| Where | What |\n|---|---${side}|\n| Lima | 2 |\n`;
  const chat = await openChat(t, browser, {
    turns: [[say(`${table("")}\n\n${table(":")}`)]],
    browser: phone(390, 844),
  });
  await chat.say("Where are they?");
  await chat.answered();
  const [words, numbers] = await chat.page
    .locator(".table")
    .evaluateAll((tables) =>
      tables.map((table) =>
        [...table.querySelectorAll("tr > :last-child")].map((it) =>
          Number.parseFloat(getComputedStyle(it).paddingRight),
        ),
      ),
    );
  assert.ok(words && numbers && Number(words[1]) < 14 && Number(words[0]) >= 36, `${words}`);
  assert.ok(numbers[0] === numbers[1] && Number(numbers[0]) >= 36, `${numbers}`);
});

test("what can be done about a failure stands below its words, in one row", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[fail(new ApiError("internal", "A fault in the server."))]],
    browser: phone(390, 844),
  });
  await chat.say("Where is my order?");
  const boxes = ["p", "button >> nth=0", "button >> nth=1"].map((it) => chat.error.locator(it).boundingBox());
  const [words, first, second] = await Promise.all(boxes);
  assert.ok(words && first && second);
  assert.ok(first.y >= words.y + words.height && first.y === second.y, JSON.stringify([words, first, second]));
});

test("an empty chat greets right above what it offers and asks for", async (t) => {
  const chat = await openChat(t, browser, {
    agent: { chat: { suggestions: ["My order"] } },
    turns: [],
    browser: phone(390, 844),
  });
  const [greeting, offer] = await Promise.all([chat.greeting, chat.page.locator('[part="suggestion"]')].map(standsAt));
  const gap = (offer?.top ?? 0) - (greeting?.bottom ?? 0);
  assert.ok(gap > 0 && gap <= 80, `${gap} px`);
});

test("what a page offers to ask next is one row that is pushed sideways, and leaves the answer its place", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")]], browser: phone(320, 568) });
  await chat.ask("First", "One.");
  await chat.page.locator("agent-chat").evaluate((node) => {
    (node as AgentChat).suggest(["What else can you tell me about it?", "Why?", "And tomorrow?"]);
  });
  const offers = chat.page.locator('[part="suggestion"]');
  await offers.first().waitFor();
  const tops = await offers.evaluateAll((all) => all.map((one) => one.getBoundingClientRect().top));
  assert.deepEqual(new Set(tops).size, 1, String(tops));
  await offers.last().focus();
  const box = await offers.last().boundingBox();
  assert.ok(box !== null && box.x >= 0 && box.x + box.width <= 320, JSON.stringify(box));
  assert.deepEqual(await overflow(chat.page), { document: 0, transcript: 0 });
});
