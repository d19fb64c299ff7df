import assert from "node:assert/strict";
import { after, test } from "node:test";
import { launchBrowser, openPage } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say, wait } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { chatIn, isFocused, openChat } from "./chat-page.ts";

const browser = await launchBrowser({ after });

const CLIPBOARD = { permissions: ["clipboard-read", "clipboard-write"] };

const lines = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => `line ${from + index}\n`).join("");

test("long lines wrap by a button that Tab reaches, and say so", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say(`\`\`\`\n${"wide ".repeat(100)}\n\`\`\``)]],
  });
  await chat.say("Show me");
  const wrap = chat.answer.getByRole("button", { name: "Wrap lines" });
  await wrap.waitFor();
  const pre = chat.answer.locator("pre");
  const overflows = () => pre.evaluate((it) => it.scrollWidth > it.clientWidth);
  assert.equal(await overflows(), true);
  await chat.answer.getByRole("button", { name: "Copy" }).focus();
  await chat.page.keyboard.press("Tab");
  assert.equal(await isFocused(wrap), true);
  await chat.page.keyboard.press("Enter");
  assert.equal(await wrap.getAttribute("aria-pressed"), "true");
  assert.equal(await overflows(), false);
});

test("code over 40 lines is folded while it streams, keeps what the reader chose, and is copied whole", async (t) => {
  const [more, rest] = [gate(), gate()];
  const chat = await openChat(t, browser, {
    turns: [
      [
        say(`\`\`\`\n${lines(1, 60)}`),
        wait(more.opened),
        say(lines(60, 101)),
        wait(rest.opened),
        say("```\n\nDone."),
      ],
    ],
    browser: CLIPBOARD,
  });
  await chat.say("Show me");
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

test("short code has no fold", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say(`\`\`\`\n${lines(1, 41)}\`\`\`\n`)]] });
  await chat.say("Show me");
  await chat.answer.getByRole("button", { name: "Wrap lines" }).waitFor();
  assert.equal(await chat.answer.locator("[aria-expanded]").count(), 0);
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
  const csv = chat.answer.getByRole("button", { name: "Copy as CSV" });
  await csv.waitFor({ state: "attached" });
  more.open();
  await chat.answer.getByText("Done.").waitFor();
  const copied = async (times: number) => {
    await chat.answer
      .getByRole("button", { name: "Copied" })
      .nth(times - 1)
      .waitFor();
    return (await chat.page.evaluate(() => navigator.clipboard.readText())).replace(/\r/g, "");
  };
  await csv.focus();
  await chat.page.keyboard.press("Enter");
  assert.equal(await copied(1), `a,b\n"x, y",1\n"""q""",-2\n'=1+1,a|b`);
  await chat.answer.getByRole("button", { name: "Copy as Markdown" }).press("Enter");
  assert.equal(
    await copied(2),
    '| a | b |\n| --- | ---: |\n| x, y | 1 |\n| "q" | -2 |\n| =1+1 | a\\|b |',
  );
});

test("the tools of a box are hidden until it is pointed at or holds the focus", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("| a |\n|---|\n| 1 |")]] });
  await chat.say("Show me");
  const tools = chat.answer.locator(".table > .tools");
  await tools.waitFor({ state: "attached" });
  const opacity = () => tools.evaluate((it) => getComputedStyle(it).opacity);
  await chat.page.mouse.move(0, 0);
  assert.equal(await opacity(), "0");
  await chat.answer.getByRole("cell", { name: "1" }).hover();
  assert.equal(await opacity(), "1");
  await chat.page.mouse.move(0, 0);
  await chat.answer.getByRole("region", { name: "Table" }).focus();
  assert.equal(await opacity(), "1");
});

test("without the tools code is whole and can be copied", async (t) => {
  const server = await startServer(t, { turns: [[say("```ts\nconst a = 1;\n```")]] });
  const { page } = await openPage(t, browser, CLIPBOARD);
  await page.route("**/chunks/*", (route) => route.abort());
  await page.goto(server.url);
  const chat = chatIn(page);
  await chat.ask("Show me", "ts\nCopy\nconst a = 1;");
  await chat.answer.getByRole("button", { name: "Copy" }).click();
  await chat.answer.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "const a = 1;");
});
