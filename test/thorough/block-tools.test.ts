import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Locator } from "playwright-core";
import { hasFocus, openChat, standsAt } from "../browser/chat-page.ts";
import { axeFindings } from "../support/axe.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { call, say, wait } from "../support/scripted-provider.ts";
import { define } from "../support/test-tools.ts";

const browser = await launchBrowser({ after });

const CLIPBOARD = { permissions: ["clipboard-read", "clipboard-write"] };

const lines = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => `line ${from + index}\n`).join("");

test("lines that are too long, and no others, wrap by a button that Tab reaches, and say so", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say(`\`\`\`\n${"wide ".repeat(100)}\n\`\`\`\n\n\`\`\`\nnpm install\n\`\`\``)]],
  });
  await chat.say("Show me");
  const wrap = chat.answer.getByRole("button", { name: "Wrap lines" });
  await wrap.waitFor();
  await chat.answered();
  assert.equal(await wrap.count(), 1);
  const pre = chat.answer.locator("pre").first();
  const overflows = () => pre.evaluate((it) => it.scrollWidth > it.clientWidth);
  assert.equal(await overflows(), true);
  await chat.answer.getByRole("button", { name: "Copy" }).first().focus();
  await chat.page.keyboard.press("Shift+Tab");
  await chat.page.keyboard.press("Shift+Tab");
  await hasFocus(wrap);
  await chat.page.keyboard.press("Enter");
  assert.equal(await wrap.getAttribute("aria-pressed"), "true");
  assert.equal(await overflows(), false);
});

test("the tools of a table stay as they are when a card asks for approval", async (t) => {
  const cancel = define("cancel_order", () => "cancelled", { needsApproval: true });
  const chat = await openChat(t, browser, {
    turns: [[say("| Order |\n| --- |\n| 4711 |\n\nShall I?"), call("a", "cancel_order", {})]],
    agent: { tools: [cancel] },
  });
  await chat.say("Cancel it");
  const copy = chat.page.locator(".table > .tools button").first();
  await copy.waitFor({ state: "attached" });
  await chat.page.locator('[part="approval"]').waitFor();
  assert.deepEqual(
    await copy.evaluate((it) => {
      const icon = getComputedStyle(it.querySelector(".icon") as Element);
      return [getComputedStyle(it).marginInlineStart, icon.strokeWidth];
    }),
    ["0px", "1.75px"],
  );
});

test("code of 40 lines has no fold; longer code is folded while it streams, keeps what the reader chose, and is copied whole", async (t) => {
  const [longer, more, rest] = [gate(), gate(), gate()];
  const chat = await openChat(t, browser, {
    turns: [
      [
        say(`\`\`\`\n${lines(1, 41)}`),
        wait(longer.opened),
        say(lines(41, 60)),
        wait(more.opened),
        say(lines(60, 101)),
        wait(rest.opened),
        say("```\n\nDone."),
      ],
    ],
    browser: CLIPBOARD,
  });
  await chat.say("Show me");
  await chat.answer.getByText("line 40").waitFor();
  await chat.answer.locator(".code-header > .enlarge").waitFor({ state: "attached" });
  assert.equal(await chat.answer.locator("[aria-expanded]").count(), 0);
  longer.open();
  await chat.answer.getByRole("button", { name: "Show all 59 lines" }).waitFor();
  const pre = chat.answer.locator("pre");
  const height = () => pre.evaluate((it) => it.clientHeight);
  const folded = await height();
  more.open();
  const open = chat.answer.getByRole("button", { name: "Show all 100 lines" });
  await open.waitFor();
  assert.equal(await height(), folded, "what follows does not move");
  await open.click();
  assert.ok((await height()) > 2 * folded);
  rest.open();
  await chat.answer.getByText("Done.").waitFor();
  assert.ok((await height()) > 2 * folded, "it stays open");
  const close = chat.answer.getByRole("button", { name: "Show fewer lines" });
  assert.equal(await close.getAttribute("aria-expanded"), "true");
  await close.click();
  assert.equal(await height(), folded);
  await chat.answer.getByRole("button", { name: "Copy" }).click();
  await chat.answer.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(
    (await chat.page.evaluate(() => navigator.clipboard.readText())).replace(/\r/g, ""),
    lines(1, 101).trim(),
  );
});

test("a table is copied as CSV and as Markdown, also when it has grown under its buttons", async (t) => {
  const more = gate();
  const chat = await openChat(t, browser, {
    turns: [
      [
        say("| a | b |\n|---|--:|\n| x, *y* | 1 |\n"),
        wait(more.opened),
        say('| "q" | -2 |\n| =1+1 | a\\|b |\n\nDone.'),
      ],
    ],
    browser: CLIPBOARD,
  });
  await chat.say("Show me");
  const copy = chat.answer.getByRole("button", { name: "Copy: Table" });
  await copy.waitFor({ state: "attached" });
  more.open();
  await chat.answer.getByText("Done.").waitFor();
  const button = chat.answer.locator(".table .copy");
  const copyAs = async (form: string) => {
    await button.press("Enter");
    await chat.answer.getByRole("button", { name: `Copy as ${form}` }).press("Enter");
    // The button says so for a moment.
    await button.and(chat.answer.getByRole("button", { name: "Copied" })).waitFor();
    return (await chat.page.evaluate(() => navigator.clipboard.readText())).replace(/\r/g, "");
  };
  assert.equal(await copyAs("CSV"), `a,b\n"x, y",1\n"""q""",-2\n'=1+1,a|b`);
  assert.equal(await copyAs("Markdown"), '| a | b |\n| --- | ---: |\n| x, y | 1 |\n| "q" | -2 |\n| =1+1 | a\\|b |');
});

test("Escape closes the ways to copy a table, leads back to their button, and does not stop the answer", async (t) => {
  const end = gate();
  const chat = await openChat(t, browser, {
    turns: [[say("| a |\n|---|\n| 1 |\n\nIt is one.\n\nMore"), wait(end.opened), say(" and more.")]],
  });
  await chat.say("Show me");
  const copy = chat.answer.getByRole("button", { name: "Copy: Table" });
  await copy.focus();
  await chat.page.keyboard.press("Enter");
  const markdown = chat.answer.getByRole("button", { name: "Copy as Markdown" });
  await markdown.waitFor();
  assert.deepEqual(await axeFindings(chat.page), []);
  await chat.page.keyboard.press("Tab");
  await hasFocus(markdown);
  await chat.page.keyboard.press("Escape");
  await markdown.waitFor({ state: "hidden" });
  await hasFocus(copy);
  end.open();
  await chat.answer.getByText("More and more.").waitFor();
});

test("the buttons of code and tables are icons at the end of their heads, there for who points at one or holds the focus, and always on touch; no text stands below them", async (t) => {
  const turns = [[say("```\ncode\n```\n\n| a | number |\n|---|--:|\n| 1 | 1,899.00 € |")]];
  for (const viewport of [
    { width: 700, height: 900 },
    { width: 390, height: 844 },
  ]) {
    const isTouch = viewport.width < 480;
    const chat = await openChat(t, browser, { turns, browser: { viewport, isMobile: isTouch, hasTouch: isTouch } });
    await chat.say("Show me");
    await chat.answer.locator(".table .copy").waitFor({ state: "attached" });
    for (const box of await chat.answer.locator(".code, .table").all()) {
      const copy = box.locator(".copy");
      const opacity = () => copy.evaluate((it) => getComputedStyle(it).opacity);
      if (!isTouch) {
        await chat.page.mouse.move(0, 0);
        assert.equal(await opacity(), "0");
        await box.hover();
        assert.equal(await opacity(), "1");
        await chat.page.mouse.move(0, 0);
        await copy.focus();
      }
      assert.deepEqual([await opacity(), await copy.innerText()], ["1", ""]);
      const [button, around] = [await copy.boundingBox(), await box.boundingBox()];
      assert.ok(button && around && button.y - around.y <= 10, "it stands at the top");
      const gap = (around?.x ?? 0) + (around?.width ?? 0) - (button?.x ?? 0) - (button?.width ?? 0);
      assert.ok(gap >= 0 && gap <= 10, `${gap} px from the end`);
    }
    const [button, head] = await Promise.all(
      [".copy", "th:last-child"].map((name) => chat.answer.locator(`.table ${name}`).boundingBox()),
    );
    const [text] = await chat.answer.locator("td:last-child").evaluateAll(([cell]) => {
      const range = document.createRange();
      range.selectNodeContents(cell as Element);
      return [range.getBoundingClientRect().right];
    });
    assert.ok(button && head && text !== undefined && text <= button.x, `${text} ${button?.x}`);
    assert.ok(button.y >= head.y - 1 && button.y + button.height <= head.y + head.height + 1, "within the head");
  }
});

/** A table with so many columns and rows, whose first column is narrow. */
const table = (columns: number, rows: number, word = "column") =>
  [word, "---", ...Array.from({ length: rows }, (_, row) => `row ${row}`)]
    .map(
      (first) =>
        `|${first}|${Array.from({ length: columns }, () => (first === "---" ? "---" : "some words")).join("|")}|\n`,
    )
    .join("");

for (const [word, side] of [
  ["column", "left"],
  ["عمود", "right"],
] as const) {
  test(`a wide table keeps its first column in view, at the ${side}, and opens in the whole window, where it goes on growing`, async (t) => {
    const more = gate();
    const chat = await openChat(t, browser, {
      turns: [[say(`${table(12, 30, word)}`), wait(more.opened), say("| last |\n\nDone.")]],
      browser: { viewport: { width: 900, height: 600 } },
    });
    await chat.say("Show me");
    const enlarge = chat.answer.getByRole("button", { name: "Enlarge" });
    await enlarge.waitFor({ state: "attached" });
    const edges = (box: Locator) =>
      box.evaluate((it) => {
        it.scrollLeft = getComputedStyle(it).direction === "rtl" ? -it.scrollWidth : it.scrollWidth;
        const [around, ...cells] = [it, ...it.querySelectorAll("tr > :first-child")].map((one) =>
          one.getBoundingClientRect(),
        );
        return cells.map((cell) => ({
          left: cell.left - (around?.left ?? 0),
          right: (around?.right ?? 0) - cell.right,
        }));
      });
    const isPinned = async (box: Locator) => {
      for (const edge of await edges(box)) assert.ok(Math.abs(edge[side]) <= 2, `${JSON.stringify(edge)}`);
    };
    await isPinned(chat.answer.locator(".table"));
    await enlarge.focus();
    await chat.page.keyboard.press("Enter");
    const large = chat.page.getByRole("dialog", { name: "Table" });
    const box = large.getByRole("group", { name: "Table" });
    await box.and(chat.page.locator(":focus")).waitFor();
    await isPinned(box);
    more.open();
    await large.getByRole("cell", { name: "last" }).waitFor();
    await chat.answered();
    const before = await chat.messages.evaluate((it) => it.scrollTop);
    await box.evaluate((it) => it.scrollTo(0, it.scrollHeight));
    const head = await large.getByRole("columnheader").first().boundingBox();
    const around = await box.boundingBox();
    assert.ok(head && around && Math.abs(head.y - around.y) <= 1, "its head stays in view");
    assert.ok(around && around.width > 800 && around.height > 400);
    assert.deepEqual(await axeFindings(chat.page), []);
    await chat.page.keyboard.press("Escape");
    await large.waitFor({ state: "detached" });
    await enlarge.and(chat.page.locator(":focus")).waitFor();
    assert.equal(await chat.messages.evaluate((it) => it.scrollTop), before);
  });
}

test("a table that fits, or whose first column takes the room, keeps no column in view; wide code opens large in its colours", async (t) => {
  const sentence = "A first column of so many words that nothing would be seen beside it";
  const code = `const name = "${"wide ".repeat(60)}";`;
  const chat = await openChat(t, browser, {
    turns: [[say(`${table(2, 1)}\n${table(12, 1, sentence)}\n\`\`\`ts\n${code}\n\`\`\`\n`)]],
    browser: { viewport: { width: 390, height: 800 } },
  });
  await chat.say("Show me");
  const enlarge = chat.answer.getByRole("button", { name: "Enlarge" });
  await enlarge.nth(1).waitFor({ state: "attached" });
  await chat.answered();
  assert.equal(await enlarge.count(), 2);
  assert.equal(await chat.answer.locator("[data-ui-pinned]").count(), 0);
  await enlarge.last().click();
  const large = chat.page.getByRole("dialog", { name: "ts" });
  await large.getByText(code).waitFor();
  await chat.page.waitForFunction(() =>
    [...(CSS.highlights.get("agent-chat-keyword") ?? [])].some(({ startContainer }) =>
      startContainer.parentElement?.closest("dialog"),
    ),
  );
  await large.getByRole("button", { name: "Close" }).click();
  await large.waitFor({ state: "detached" });
});

test("folded code opens when something in it is found, which stays in view, and by its button without moving the reader", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say(`\`\`\`\n${lines(1, 300)}\`\`\`\n\nAfter.`)]],
    browser: { viewport: { width: 700, height: 600 } },
  });
  await chat.say("Show me");
  const open = chat.answer.getByRole("button", { name: "Show all 299 lines" });
  await open.waitFor();
  await chat.send.waitFor();
  const top = await chat.answer.locator("pre").evaluate(async (pre) => {
    const range = new Range();
    const walker = document.createTreeWalker(pre, NodeFilter.SHOW_TEXT);
    let text = walker.nextNode() as Text;
    while (!text.data.includes("line 200\n")) text = walker.nextNode() as Text;
    range.setStart(text, text.data.indexOf("line 200\n"));
    range.setEnd(text, range.startOffset + 8);
    // Like the browser's "find in page".
    const opened = new Promise((resolve) => pre.parentElement?.addEventListener("toggle", resolve));
    pre.scrollTop = range.getBoundingClientRect().top - 300;
    await opened;
    await new Promise(requestAnimationFrame);
    return range.getBoundingClientRect().top;
  });
  assert.ok(Math.abs(top - 300) < 30, `line 200 is at ${top}`);
  await chat.answer.getByRole("button", { name: "Show fewer lines" }).click();
  await open.waitFor();
  await chat.messages.evaluate((scroller) => scroller.scrollTo(0, scroller.scrollHeight));
  await open.click();
  await chat.answer.getByRole("button", { name: "Show fewer lines" }).waitFor();
  const after = await chat.answer.getByText("After.").boundingBox();
  assert.ok(after && after.y > 600, "the end of the code has not come into view");
});

const HEAD = "| number | name |\n|--:|---|\n";
const rows = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => `| ${from + index} | name ${from + index} |\n`).join("");

test("a table over 100 rows is folded while it streams, opens, and is found, copied and printed whole", async (t) => {
  const [more, end] = [gate(), gate()];
  const chat = await openChat(t, browser, {
    turns: [[say(HEAD + rows(1, 100)), wait(more.opened), say(rows(100, 301)), wait(end.opened), say("\nAfter.")]],
    browser: { ...CLIPBOARD, viewport: { width: 700, height: 600 } },
  });
  await chat.say("Show me");
  await chat.answer.getByText("name 99", { exact: true }).waitFor();
  const table = chat.answer.locator(".table");
  const height = () => table.evaluate((it) => it.clientHeight);
  const copy = table.getByRole("button", { name: "Copy: Table" });
  await copy.waitFor();
  assert.equal(await table.locator("[aria-expanded]").count(), 0, "100 rows and less are shown");
  more.open();
  const open = table.getByRole("button", { name: "Show all 300 rows" });
  await open.waitFor();
  const folded = await height();
  assert.ok(folded < 900, `${folded}`);
  end.open();
  await chat.answer.getByText("After.").waitFor();
  // Like the browser's "find in page": the row comes into view, and the table is expanded.
  await table.evaluate(async (it) => {
    const opened = new Promise((resolve) => it.addEventListener("toggle", resolve, { once: true }));
    it.querySelectorAll("tr")[250]?.scrollIntoView();
    await opened;
  });
  const row = await standsAt(table.getByText("name 250", { exact: true }));
  assert.ok(row.top > 0 && row.top < 600, `row 250 is at ${row.top}`);
  assert.ok((await height()) > 3 * folded);
  const close = table.getByRole("button", { name: "Show fewer rows" });
  assert.equal(await close.getAttribute("aria-expanded"), "true");
  await close.click();
  assert.equal(await height(), folded);
  await copy.click();
  await table.getByRole("button", { name: "Copy as CSV" }).click();
  await table.getByRole("button", { name: "Copied" }).waitFor();
  const copied = await chat.page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied.split(/\r?\n/).length, 301);
  await chat.page.emulateMedia({ media: "print" });
  assert.ok((await height()) > 3 * folded, "paper has all rows");
});
