/** Small windows, large text and wide spacing: everything stays readable and usable (WCAG 1.4.4, 1.4.10, 1.4.12). */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { ApiError } from "../../server/protocol/errors.ts";
import { type ChatPage, openChat, openRows, untilTaken } from "../browser/chat-page.ts";
import { fillList } from "../browser/kept.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { RED_PIXEL } from "../support/files.ts";
import { call, fail, say, think, wait } from "../support/scripted-provider.ts";
import { broken, echo } from "../support/test-tools.ts";

const browser = await launchBrowser({ after });

const ANSWER = `# A title that takes its room

A word of **weight**, \`inline\`, and ![a chart](https://example.org/chart.png)

${"```"}ts
const line = "that is much longer than the window is wide, and can therefore be scrolled aside";
${"```"}

| ${"wide column | ".repeat(12)}
|${"---|".repeat(12)}
| ${"some cell | ".repeat(12)}
`;

/** The text spacing of WCAG 1.4.12, in the page and in every shadow root. */
const SPACING =
  "* { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important } p { margin-block-end: 2em !important }";

const openRich = (t: TestContext, options: BrowserContextOptions, failing: Promise<void>) =>
  openChat(t, browser, {
    agent: {
      tools: [echo, broken],
      chat: {
        welcome: "Hello! What would you like to know about the weather?",
        suggestions: ["A first message that is rather long for a button", "Another", "A third one"],
      },
    },
    turns: [
      [say("One.")],
      [think("Hm."), call("c1", "echo", { text: "x".repeat(300) }), call("c2", "broken")],
      [say(ANSWER)],
      [wait(failing), fail(new ApiError("provider_error", "The model is ill. Try again in a moment."))],
    ],
    browser: options,
  });

/**
 * Content that users cannot reach or read: controls outside of the window even after scrolling them into view, button
 * texts that are cut off, and boxes wider than their container.
 */
function losses(page: Page): Promise<string[]> {
  return page.locator("agent-chat").evaluate((chat) => {
    const lost: string[] = [];
    const root = chat.shadowRoot as ShadowRoot;
    const scroller = root.querySelector('[part="messages"]') as Element;
    for (const box of [document.documentElement, scroller]) {
      if (box.scrollWidth > box.clientWidth) lost.push(`${box.className || "page"} is too wide`);
    }
    for (const control of root.querySelectorAll<HTMLElement>("button, textarea, input, a")) {
      if (control.offsetParent === null || control.closest("[inert]")) continue;
      const name = control.getAttribute("aria-label") ?? control.textContent.trim() ?? control.tagName;
      // In a low window, the header is visible only at the conversation's start, or when it has the focus.
      const isInHeader = control.closest(".header") !== null;
      if (isInHeader) control.focus();
      control.scrollIntoView({ block: "nearest", inline: "nearest" });
      const { left, right, top, bottom } = control.getBoundingClientRect();
      const inView = left >= -0.5 && right <= innerWidth + 0.5 && top >= -0.5 && bottom <= innerHeight + 0.5;
      if (!inView) lost.push(`"${name}" is out of view: ${left}, ${top} to ${right}, ${bottom}`);
      const x = Math.min(right - 2, Math.max(left + 2, (left + right) / 2));
      // A long draft scrolls within its card.
      const card = control.matches("textarea") ? control.closest('[part="composer"]')?.getBoundingClientRect() : null;
      const hit = root.elementFromPoint(
        x,
        (Math.max(top, card?.top ?? 0) + Math.min(bottom, card?.bottom ?? bottom)) / 2,
      );
      if (inView && !(hit && (control.contains(hit) || hit.contains(control)))) {
        lost.push(`"${name}" is covered by ${hit?.className}`);
      }
      if (isInHeader) control.blur();
      const isText = control.tagName === "BUTTON" && control.textContent.trim() !== "";
      if (isText && control.scrollWidth > control.clientWidth + 1) lost.push(`"${name}" is cut`);
    }
    return lost;
  });
}

async function fill(chat: ChatPage, failNow: () => void): Promise<void> {
  await chat.ask("w".repeat(200), "One.");
  await chat.page.evaluate(fillList(12, 2));
  await chat.questions.locator(".bubble").click();
  await chat.questions.getByRole("button", { name: "Change this message" }).click();
  await chat.edited.press("End");
  await chat.edited.press("Control+Enter");
  await chat.page.getByText("2/2").waitFor();
  await chat.replies.getByText("some cell").first().waitFor();
  await chat.send.waitFor();
  await openRows(chat);
  await chat.say("Fail");
  await chat.questions.nth(1).waitFor();
  await chat.say("w".repeat(200));
  await chat.page.locator('[part="pending"]').waitFor();
  await untilTaken(chat);
  failNow();
  await chat.retry.waitFor();
  await chat.page.getByRole("button", { name: "Send anyway?" }).waitFor();
  await chat.files.setInputFiles([
    { name: "red.png", mimeType: "image/png", buffer: RED_PIXEL },
    {
      name: "a rather long name of an offer.pdf",
      mimeType: "application/pdf",
      buffer: Buffer.from("%PDF-1.7\n"),
    },
    { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") },
  ]);
  await chat.page.locator('[part="refusals"]').waitFor();
  await chat.input.fill("A draft\nof\nmany\nlines\nthat\ngoes\non\nand\non");
}

const touch = { isMobile: true, hasTouch: true };
const CASES: readonly [string, BrowserContextOptions][] = [
  ["at 280 px", { viewport: { width: 280, height: 500 } }],
  ["at 320 px", { viewport: { width: 320, height: 640 }, ...touch }],
  ["at 200 % of 1280 px", { viewport: { width: 640, height: 400 } }],
  ["at 400 % of 1280 px", { viewport: { width: 320, height: 256 } }],
  ["on a phone on its side", { viewport: { width: 640, height: 320 }, ...touch }],
  ["on a phone on its side with its keyboard", { viewport: { width: 640, height: 210 }, ...touch }],
  ["with wide spacing", { viewport: { width: 390, height: 844 } }],
];

for (const [name, options] of CASES) {
  test(`${name} nothing is out of reach, in the greeting and in a conversation, and the button that sends is in view`, async (t) => {
    const failing = gate();
    const chat = await openRich(t, { ...options, reducedMotion: "reduce" }, failing.opened);
    await chat.greeting.waitFor();
    if (name === "with wide spacing") {
      await chat.page.locator("agent-chat").evaluate((element, css) => {
        const sheet = new CSSStyleSheet();
        sheet.replaceSync(css);
        element.shadowRoot?.adoptedStyleSheets.push(sheet);
      }, SPACING);
    }
    await chat.page.getByRole("button", { name: "A third one" }).waitFor();
    assert.deepEqual(await losses(chat.page), [], "greeting");
    // With `follow="question"`, the jump button would cover the messages.
    await chat.page.locator("agent-chat").evaluate((element) => element.setAttribute("follow", "end"));
    await fill(chat, failing.open);
    assert.deepEqual(await losses(chat.page), [], "conversation");
    const left = await chat.messages.evaluate((box) => box.clientHeight);
    assert.ok(left >= 48, `${left} px are left to read in`);
    for (const block of ["start", "end"] as const) {
      await chat.input.evaluate((field, at) => field.scrollIntoView({ block: at }), block);
      const isInView = await chat.send.evaluate((button) => {
        const { x, y, width, height } = button.getBoundingClientRect();
        const root = button.getRootNode() as ShadowRoot;
        return button.contains(root.elementFromPoint(x + width / 2, y + height / 2));
      });
      assert.ok(isInView, `the button that sends, at the ${block} of a long draft`);
    }
    // By keyboard, because in a low window the header is only visible when focused.
    await chat.page.locator('[part="list"]').press("Enter");
    await chat.page
      .getByRole("button", { name: /^Options for/ })
      .first()
      .click();
    await chat.page.getByRole("button", { name: "Rename" }).waitFor();
    assert.deepEqual(await losses(chat.page), [], "list");
  });
}

for (const height of [400, 256]) {
  test(`the form that asks for a key scrolls below the header, ${height} px high`, async (t) => {
    const { page } = await openChat(t, browser, {
      turns: [],
      env: { PARLEY_CHAT_KEY: "c-1" },
      browser: { viewport: { width: 320, height }, reducedMotion: "reduce" },
      expectedComplaints: /401/,
    });
    const form = page.locator('[part="key-form"]');
    await form.waitFor();
    for (const [selector, block] of [
      ["h2", "start"],
      ["button", "end"],
    ] as const) {
      const isSeen = await form.locator(selector).evaluate((it, at) => {
        it.scrollIntoView({ block: at });
        const { left, top, width, height } = it.getBoundingClientRect();
        const hit = (it.getRootNode() as ShadowRoot).elementFromPoint(left + width / 2, top + height / 2);
        return hit === it && top >= 0 && top + height <= innerHeight + 1;
      }, block);
      assert.ok(isSeen, selector);
    }
    const [header, box] = await Promise.all(
      [page.locator('[part="header"]'), form.locator("xpath=..")].map((it) =>
        it.evaluate((node) => (node.closest(".dock") ?? node).getBoundingClientRect().toJSON()),
      ),
    );
    assert.ok(header.bottom <= box.top + 1, JSON.stringify([header, box]));
  });
}

for (const height of [480, 256]) {
  test(`many suggestions leave the text field whole, and can be scrolled, ${height} px high`, async (t) => {
    const suggestions = Array.from(
      { length: 8 },
      (_, at) => `A suggestion that takes three lines, since it says more than it would have to, with number ${at + 1}`,
    );
    const chat = await openChat(t, browser, {
      agent: { chat: { suggestions } },
      turns: [],
      browser: { viewport: { width: 320, height } },
    });
    await chat.page.getByRole("button", { name: "with number 8" }).waitFor();
    const cut = (part: string) =>
      chat.page
        .locator(`[part="${part}"]`)
        .evaluate((box) => Math.max(0, box.scrollHeight - box.clientHeight, box.scrollWidth - box.clientWidth));
    assert.equal(await cut("composer"), 0);
    assert.ok((await cut("suggestions")) > 0);
  });
}
