/** The layout of texts, tables and suggestions, as measured in a browser. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Locator } from "playwright-core";
import { openChat, shown } from "../browser/chat-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { say } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

/** The edges of the texts in elements, and the number of lines of each. */
function texts(cells: Locator): Promise<{ left: number; right: number; lines: number }[]> {
  return cells.evaluateAll((elements) =>
    elements.map((element) => {
      const range = document.createRange();
      range.selectNodeContents(element);
      const { left, right } = range.getBoundingClientRect();
      const tops = new Set([...range.getClientRects()].map(({ bottom }) => Math.round(bottom)));
      return { left: Math.round(left), right: Math.round(right), lines: tops.size };
    }),
  );
}

test("the cells of a table's column stand at one side, numbers and prices do not break, and sentences have room", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [
      [say("| المنتج | العدد |\n|---|---|\n| دراجة | 12 |\n| Rain coat | 3 |\n")],
      [
        say(
          "| Name | Notes | More notes | Price |\n|---|---|---|--:|\n" +
            `| Bicycle | ${"light and quick, ".repeat(4)} | ${"for every day, ".repeat(4)} | 1,899.00 € |\n`,
        ),
      ],
    ],
    browser: PHONE,
  });
  await chat.say("In Arabic");
  await chat.answered(1);
  for (const column of [1, 2]) {
    const cells = await texts(chat.answer.locator(`:is(th, td):nth-child(${column})`));
    assert.equal(new Set(cells.map(({ right }) => right)).size, 1, `right edges: ${JSON.stringify(cells)}`);
  }
  await chat.say("Wide");
  await chat.answered(2);
  const cells = chat.answer.locator("td");
  const [, notes, , price] = await texts(cells);
  assert.equal(price?.lines, 1);
  assert.ok((notes?.lines ?? 9) <= 4, `${notes?.lines} lines`);
  const widths = await cells.evaluateAll((all) => all.map((cell) => cell.clientWidth));
  assert.ok((widths[1] ?? 0) >= 200, `${widths}`);
});

test("single line breaks of an answer are lines, and nothing else becomes one", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [
      [say("Best regards,\nBob\n\n- one\n  more\n\n  loose\n- two\n\nhard  \nbreak\n\n"), say("> 1\n> 2\n\nlast\n")],
    ],
  });
  await chat.say("Hi");
  await chat.answered();
  assert.equal(
    (await shown(chat.answer)).replace(/\n+/g, "\n"),
    "Best regards,\nBob\none\nmore\nloose\ntwo\nhard\nbreak\n1\n2\nlast",
  );
  const lines = await chat.answer
    .locator("p")
    .evaluateAll((all) =>
      all.map((p) => Math.round(p.getBoundingClientRect().height / Number.parseFloat(getComputedStyle(p).lineHeight))),
    );
  assert.deepEqual(lines, [2, 2, 1, 1, 2, 2, 1]);
});

test("a long suggestion has two lines in a box that holds it, and on a phone four are one row that is pushed sideways", async (t) => {
  const long = "Which of your bicycles would you recommend to somebody who rides in rain, ".repeat(4);
  const chat = await openChat(t, browser, {
    agent: { chat: { suggestions: [long, "Two", "Three", "Four"] } },
    browser: PHONE,
  });
  const offers = chat.page.locator('[part="suggestion"]');
  await offers.last().waitFor();
  const [radius, align] = await offers
    .first()
    .evaluate((pill) => [getComputedStyle(pill).borderRadius, getComputedStyle(pill).textAlign]);
  assert.deepEqual([radius, align], ["18px", "start"]);
  const boxes = await Promise.all((await offers.all()).map((offer) => offer.boundingBox()));
  assert.ok((boxes[0]?.height ?? 99) <= 56, `${boxes[0]?.height} pixels high`);
  const row = chat.page.locator('[part="suggestions"]');
  assert.ok(((await row.boundingBox())?.height ?? 99) <= 64, "one row");
  // Focusing the last suggestion scrolls it into view, and moves nothing else.
  const composer = () => chat.page.locator('[part="composer"]').boundingBox();
  const before = await composer();
  await offers.last().focus();
  const last = await offers.last().boundingBox();
  assert.ok(last && last.x >= 0 && last.x + last.width <= 390, JSON.stringify(last));
  assert.deepEqual(await composer(), before);
});

test("a selection of everything is the conversation alone, and the text field can be selected", async (t) => {
  const chat = await openChat(t, browser, {
    agent: { chat: { disclaimer: "It may be wrong." } },
    turns: [[say("Run\n\n```sh\nnpm install\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")]],
    browser: { permissions: ["clipboard-read", "clipboard-write"] },
  });
  await chat.say("How?");
  await chat.answered();
  await chat.answer.getByRole("button", { name: "Copy: Table" }).waitFor({ state: "attached" });
  const clipboard = () => chat.page.evaluate(() => navigator.clipboard.readText());
  await chat.answer.getByText("Run").click();
  await chat.page.keyboard.press("ControlOrMeta+A");
  await chat.page.keyboard.press("ControlOrMeta+C");
  assert.deepEqual((await clipboard()).split(/\s+/).filter(Boolean), "How? Run npm install a b 1 2".split(" "));
  await chat.input.fill("a draft");
  await chat.input.press("ControlOrMeta+A");
  await chat.input.press("ControlOrMeta+C");
  assert.equal(await clipboard(), "a draft");
});

test("the page's texts grow with the browser's font size, and those of an element on a site do not", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Hello.\n\n```\ncode\n```\n")]] });
  await chat.say("Hi");
  await chat.answered();
  const sizes = () =>
    chat.page.evaluate(() => {
      const root = document.querySelector("agent-chat")?.shadowRoot;
      return [".markdown p", "pre code", ".bubble", "textarea", ".agent"].map((name) => {
        const element = root?.querySelector(name);
        return element ? Number.parseFloat(getComputedStyle(element).fontSize) : Number.NaN;
      });
    });
  const before = await sizes();
  await chat.page.evaluate(() => {
    document.documentElement.style.fontSize = "200%";
  });
  assert.deepEqual(
    await sizes(),
    before.map((size) => size * 2),
  );
  await chat.page.locator("agent-chat").evaluate((element) => element.removeAttribute("page"));
  assert.deepEqual(await sizes(), before);
});
