/** Sources of answers: marks in the text, their cards, the list below, copies, exports and reloads. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { BrowserContextOptions } from "playwright-core";
import type { AgentChat } from "../../widget/element/agent-chat.ts";
import { axeFindings } from "../support/axe.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { type Step, say, wait } from "../support/scripted-provider.ts";
import { type ChatPage, isFocused, openChat } from "./chat-page.ts";

const browser = await launchBrowser({ after });

const PAGE = { title: "Delivery", url: "https://acme.example/delivery", quote: "Two days in the city." };
const source = (found: object): Step => ({ type: "source", source: found as never });

const TURN = [
  say("It takes **two days.**"),
  source({ ...PAGE, back: 0 }),
  say("\n\n| City | Days |\n| --- | --- |\n| Lima 👩‍🚀"),
  source({ title: "terms.pdf", file: "terms.pdf", back: 0 }),
  say(" | 2 |\n\nThat is all."),
  source({ title: "All", url: "http://all.example/" }),
];

async function openAnswer(t: TestContext, options: BrowserContextOptions = {}, turn = TURN): Promise<ChatPage> {
  const chat = await openChat(t, browser, { turns: [turn], browser: { reducedMotion: "reduce", ...options } });
  await chat.say("How long?");
  return chat;
}

const mark = ({ page }: ChatPage, name: string) => page.getByRole("button", { name });
const card = ({ page }: ChatPage) => page.locator('[part="source-card"]:popover-open');

test("a mark opens a card in the top layer by pointer and keyboard, Escape closes it, and the focus returns", async (t) => {
  const chat = await openAnswer(t);
  const first = mark(chat, "Source 1: Delivery");
  await chat.page.emulateMedia({ colorScheme: "dark" });
  await first.click();
  const [inFront, behind] = [card(chat), chat.page.locator(".chat")].map((it) =>
    it.evaluate((box) => getComputedStyle(box).backgroundColor),
  );
  assert.notEqual(
    await inFront,
    await behind,
    "in the dark, where no shadow is seen, it is lighter than what is behind",
  );
  assert.equal(await card(chat).innerText(), "Delivery\nacme.example\nTwo days in the city.");
  const link = card(chat).getByRole("link", { name: "Delivery" });
  assert.equal(await link.getAttribute("href"), PAGE.url);
  assert.match(`${await link.getAttribute("rel")}`, /noopener noreferrer/);
  await first.click();
  await card(chat).waitFor({ state: "detached" });
  const inTable = mark(chat, "Source 2: terms.pdf");
  await inTable.focus();
  await inTable.press("Enter");
  const [box, table] = await Promise.all([card(chat).boundingBox(), chat.page.locator('[part="table"]').boundingBox()]);
  assert.ok(box && table && box.y + box.height > table.y + table.height, "the table does not cut it off");
  await chat.page.keyboard.press("Escape");
  await card(chat).waitFor({ state: "detached" });
  await chat.page.waitForFunction(
    () => document.querySelector("agent-chat")?.shadowRoot?.activeElement?.textContent === "2",
  );
  await inTable.press(" ");
  await mark(chat, "Source 1: Delivery").click();
  await card(chat).getByText("acme.example").waitFor();
});

test("a finger opens it, within the window of a phone", async (t) => {
  const chat = await openAnswer(t, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  await mark(chat, "Source 2: terms.pdf").tap();
  const box = await card(chat).boundingBox();
  assert.ok(box && box.x >= 8 && box.x + box.width <= 382);
  await chat.page.touchscreen.tap(5, 5);
  await card(chat).waitFor({ state: "detached" });
});

test("all stand in a list below, which opens, and after a reload; an export has them as footnotes; nothing is requested", async (t) => {
  const chat = await openAnswer(t);
  const requests: string[] = [];
  chat.page.on("request", (request) => requests.push(request.url()));
  for (const when of ["", "after a reload"]) {
    await chat.page.locator('[part="sources"] summary').click();
    const items = chat.page.locator('[part="sources"] li');
    const texts = ["Delivery\nacme.example\nTwo days in the city.", "terms.pdf", "All\nall.example"];
    assert.deepEqual(await items.allInnerTexts(), texts, when);
    assert.deepEqual(await chat.page.locator('[part="source-mark"]').allInnerTexts(), ["1", "2"], when);
    if (when === "") await chat.page.reload();
  }
  const markdown = await chat.page.evaluate(() =>
    (document.querySelector("agent-chat") as AgentChat).exportTranscript("markdown"),
  );
  for (const part of ["**two days.**[^1]", "| Lima 👩‍🚀[^2] |", "[^1]: Delivery, https://acme.example/delivery"])
    assert.ok(markdown.includes(part), markdown);
  assert.equal(requests.filter((url) => /(?:acme|all)\.example/.test(url)).length, 0);
});

test("an open card and the open list have no barriers, in light and dark colours", async (t) => {
  const chat = await openAnswer(t);
  await chat.page.locator('[part="sources"] summary').click();
  await mark(chat, "Source 1: Delivery").click();
  await card(chat).waitFor();
  for (const colorScheme of ["light", "dark"] as const) {
    await chat.page.emulateMedia({ colorScheme });
    assert.deepEqual(await axeFindings(chat.page), [], colorScheme);
  }
});

test("a copy has them as footnotes, and as a list where it is pasted with its looks", async (t) => {
  const chat = await openAnswer(t, { permissions: ["clipboard-read", "clipboard-write"] });
  await chat.page.locator('[part="sources"]').waitFor();
  await chat.page.getByRole("button", { name: "Copy answer" }).click();
  await chat.page.getByRole("button", { name: "Copied" }).waitFor();
  const [plain, html] = await chat.page.evaluate(async () => {
    const [item] = await navigator.clipboard.read();
    return Promise.all(["text/plain", "text/html"].map(async (type) => (await item?.getType(type))?.text()));
  });
  assert.ok(
    plain?.startsWith("It takes **two days.**[^1]\n\n") && plain.endsWith("[^3]: All, http://all.example/"),
    plain,
  );
  assert.match(`${html}`, /<strong>two days\.<\/strong><sup>1<\/sup>/);
  assert.match(`${html}`, /<ol><li>\s*<a href="https:\/\/acme\.example\/delivery">Delivery<\/a>/);
});

test("a mark that comes late is drawn alone: what stands is the same, and keeps its selection and place", async (t) => {
  const [late, rest] = [gate(), gate()];
  const code = "```js\nconst a = 1;\n```\n\n";
  const turn = [
    say(`One.\n\n${code}Two is here. `),
    wait(late.opened),
    source({ ...PAGE, back: 1 }),
    wait(rest.opened),
    say("End."),
  ];
  const chat = await openAnswer(t, {}, turn);
  await chat.page.getByText("Two is here.").waitFor();
  const blocks = await chat.page.locator('[part="markdown"]').evaluateHandle((it) => [...it.querySelectorAll("*")]);
  const places = () => blocks.evaluate((all) => all.map((it) => [it.isConnected, it.getBoundingClientRect().top]));
  await chat.page.locator(".code-header .wrap").waitFor({ state: "attached" });
  const before = await places();
  late.open();
  await mark(chat, "Source 1: Delivery").focus();
  assert.deepEqual(await places(), before);
  rest.open();
  await chat.send.waitFor();
  assert.equal(await isFocused(mark(chat, "Source 1: Delivery")), true);
});
