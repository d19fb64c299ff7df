/** The chat before the first message. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { checkAgent } from "../../server/agent/define.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { startServer } from "../support/start-server.ts";
import { chatIn, openChat, shown, watchAddresses, watchShifts } from "./chat-page.ts";
import { PHONE } from "./launcher-page.ts";

const browser = await launchBrowser({ after });

test("a chat whose owner says nothing greets by the reader's hour", async (t) => {
  const chat = await openChat(t, browser, { turns: [] });
  for (const [hour, greeting] of [
    [4, "Good evening."],
    [5, "Good morning."],
    [12, "Good afternoon."],
    [18, "Good evening."],
  ] as const) {
    await chat.page.clock.setFixedTime(new Date(2026, 0, 15, hour));
    await chat.page.reload();
    await chat.greeting.waitFor();
    assert.deepEqual(await chat.greeting.locator("p").allInnerTexts(), [greeting, "How can I help?"]);
  }
});

for (const [name, profile] of [
  ["a phone", PHONE],
  ["a desktop", { viewport: { width: 1280, height: 800 } }],
] as const) {
  test(`on ${name} the page at / is complete when it is first painted: it asks nothing, and nothing shifts`, async (t) => {
    const server = await startServer(t, {
      turns: [],
      agent: {
        chat: {
          welcome: "Hello! I am Ada.",
          suggestions: ["Where is my order?", "What does a new chain cost?", "How do I send something back?"],
          disclaimer: "Ada is a machine and can be wrong. Please check what is important to you before you rely on it.",
        },
      },
    });
    const { page } = await openPage(t, browser, profile);
    const { requests } = watchAddresses(page);
    const shifted = await watchShifts(page);
    await page.goto(server.url);
    const chat = chatIn(page);
    await chat.input.waitFor();
    const parts = { greeting: chat.greeting, suggestions: page.locator('[part="suggestions"]') };
    for (const part of Object.values(parts)) assert.ok(await part.isVisible());
    assert.ok(await page.locator('[part="disclaimer"]').isVisible());
    assert.ok(await page.getByRole("button", { name: "Attach files" }).isEnabled());
    // Late changes would be visible by the second frame after the last request.
    await page.waitForLoadState("networkidle");
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    const shift = await shifted();
    assert.ok(shift <= 0.01, `shifted by ${shift}`);
    assert.deepEqual(
      requests.filter((url) => url.endsWith("/api/info")),
      [],
    );
  });
}

const WELCOME =
  "Hello, I am **Ada** of the *Acme* bicycle shop! I know our [catalogue](https://shop.example/catalogue?from=chat&a-rather-long-address=that-goes-on-and-on-without-a-space) and your orders. Ask me about chains, tyres or `SKU-123`, and I will look them up. What would you like to know?";

test("a greeting of four sentences is read from its start at every size, whole where there is room, with the text field in view", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [],
    agent: {
      chat: {
        welcome: WELCOME,
        suggestions: ["Where is my order?", "What does a new chain cost?", "How do I send something back?"],
        disclaimer: "Ada can be wrong. See our **[privacy policy](https://acme.example/privacy)**.",
      },
    },
    browser: { reducedMotion: "reduce" },
  });
  await chat.greeting.waitFor();
  const sizes = [
    [1280, 800, "whole"],
    [320, 568, "whole"],
    [844, 390, "whole"],
    [640, 400, "whole"],
    [320, 256, "cut"],
  ] as const;
  for (const [width, height, wanted] of sizes) {
    await chat.page.setViewportSize({ width, height });
    await chat.page.reload();
    await chat.greeting.waitFor();
    const { top, hidden, sideways } = await chat.messages.evaluate((box) => ({
      top: box.scrollTop,
      hidden: box.scrollHeight - box.clientHeight,
      sideways: box.scrollWidth - box.clientWidth,
    }));
    const size = `${width}x${height}`;
    assert.deepEqual([top, sideways, hidden > 0], [0, 0, wanted === "cut"], size);
    const heading = await chat.page.getByText("Hello, I am Ada").boundingBox();
    const header = await chat.page.locator('[part="header"]').boundingBox();
    assert.ok(heading && header && heading.y >= header.y + header.height, size);
    const field = await chat.input.boundingBox();
    assert.ok(field && field.y + field.height <= height, size);
    const marks = [chat.greeting.locator(".mark"), chat.page.locator(".avatar")];
    const seen = await Promise.all(marks.map((mark) => mark.isVisible()));
    assert.deepEqual(seen, [height >= 480, height < 480], `${size}: one mark, not two`);
  }
});

test("the greeting's first sentence is its heading, the rest is text, and both know bold, code and links", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [],
    agent: {
      chat: { welcome: WELCOME, disclaimer: "See our **[privacy policy](https://acme.example/privacy)**, <b>." },
    },
  });
  const [heading = "", text = ""] = await chat.greeting.locator("p").allInnerTexts();
  assert.equal(heading, "Hello, I am Ada of the Acme bicycle shop!");
  assert.match(text, /^I know our catalogue and your orders\. .* SKU-123, .*know\?$/);
  const sizes = await chat.greeting.locator("p").evaluateAll((all) => all.map((it) => getComputedStyle(it).fontSize));
  assert.deepEqual(sizes, ["28px", "16px"]);
  const disclaimer = chat.page.locator('[part="disclaimer"]');
  assert.equal(await shown(disclaimer), "See our privacy policy, <b>.");
  const link = disclaimer.getByRole("link", { name: "privacy policy" });
  assert.equal(await link.getAttribute("href"), "https://acme.example/privacy");
  assert.match((await link.getAttribute("rel")) ?? "", /noopener/);
  for (const [welcome, first] of [
    ["こんにちは。ご注文について何でも聞いてください。", "こんにちは。"],
    ["您好！我是**小艾。**有什么可以帮您？", "您好！"],
    ["Hello,\nwhat can I do?", "Hello,"],
    ["**Good morning. And** good night", "Good morning."],
    ["How can I help", "How can I help"],
  ] as const) {
    await chat.server.server.replaceAgent({ agent: checkAgent({ name: "A", model: "demo", chat: { welcome } }) });
    await chat.page.reload();
    assert.equal(await shown(chat.greeting.locator("p").first()), first);
  }
});
