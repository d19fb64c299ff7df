/** Long answers: no work outside of them, the same look in each section, and colours for code in view. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { openChat } from "../browser/chat-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say, wait } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

test("while an answer streams, no attribute around it is written, which would style all of it anew", async (t) => {
  const [rest, end] = [gate(), gate()];
  const tokens = Array.from({ length: 50 }, (_, index) => say(` Word ${index}.`));
  const chat = await openChat(t, browser, {
    turns: [[say("It begins."), wait(rest.opened), ...tokens, wait(end.opened), say(" The end.")]],
  });
  await chat.say("Go");
  await chat.answer.getByText("It begins.").waitFor();
  const records = await chat.page.evaluateHandle(() => {
    const targets: Node[] = [];
    const observer = new MutationObserver((more) => targets.push(...more.map(({ target }) => target)));
    const root = document.querySelector("agent-chat")?.shadowRoot;
    // Reports every write, even of an unchanged value.
    for (const node of root ? [document, root] : []) observer.observe(node, { attributes: true, subtree: true });
    return targets;
  });
  rest.open();
  await chat.answer.getByText("Word 49.").waitFor();
  const written = await records.evaluate((targets) =>
    targets.filter((target) => !(target as Element).closest(".markdown, .composer")).map(({ nodeName }) => nodeName),
  );
  assert.deepEqual(written, []);
  end.open();
  await chat.send.waitFor();
});

/** Alternating headings and paragraphs: both begin and end sections of 32 blocks, and both follow each other. */
const LONG = Array.from({ length: 75 }, (_, index) =>
  (index % 32) % 3 === 0 ? `## Heading ${index}` : `Paragraph ${index}.`,
).join("\n\n");

test("blocks of a long answer stand as far apart where a section begins as elsewhere", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say(LONG)]] });
  await chat.say("Show me");
  await chat.answer.getByText("Paragraph 74.").waitFor();
  const gaps = await chat.answer.evaluate((root) => {
    const blocks = [...root.querySelectorAll("h2, p")];
    // Blocks out of view have no layout of their own.
    for (const section of root.querySelectorAll<HTMLElement>(".section")) section.style.contentVisibility = "visible";
    return blocks.slice(1).map((block, index) => {
      const before = blocks[index];
      const gap = block.getBoundingClientRect().top - (before?.getBoundingClientRect().bottom ?? 0);
      return `${before?.localName} ${block.localName} ${Math.round(gap)}`;
    });
  });
  assert.equal(await chat.answer.locator(".section").count(), 2);
  assert.deepEqual([...new Set(gaps)].sort(), ["h2 p 8", "p h2 20", "p p 12"]);
});

test("what is left out of a long answer keeps the height that it had", async (t) => {
  const rest = gate();
  const first = LONG.slice(0, LONG.indexOf("Paragraph 70."));
  const more = `${LONG.slice(first.length)}\n\n${LONG}`;
  const chat = await openChat(t, browser, {
    turns: [[say(first), wait(rest.opened), say(more)]],
    path: "/?follow=end",
  });
  await chat.say("Show me");
  await chat.answer.getByText("Paragraph 68.").waitFor();
  const section = chat.answer.locator(".section").first();
  const height = await section.evaluate((node) => node.getBoundingClientRect().height);
  assert.equal(await section.evaluate((node) => getComputedStyle(node).contentVisibility), "visible");
  rest.open();
  await chat.send.waitFor();
  await chat.answer.locator(".section").nth(3).waitFor();
  await chat.messages.evaluate((scroller) => scroller.scrollTo(0, scroller.scrollHeight));
  assert.equal(await section.evaluate((node) => getComputedStyle(node).contentVisibility), "auto");
  await chat.page.waitForFunction(
    (node) => node?.querySelector("p")?.checkVisibility({ contentVisibilityAuto: true }) === false,
    await section.elementHandle(),
  );
  assert.equal(await section.evaluate((node) => node.getBoundingClientRect().height), height);
});

test("a list whose numbers are years has room for them beside its items", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("1998. one\n1999. two\n2000. three")]] });
  await chat.ask("Years", "one\n\ntwo\n\nthree");
  const { room, number } = await chat.page.locator(".markdown ol").evaluate((list) => {
    const item = list.querySelector("li") as Element;
    const pen = document.createElement("canvas").getContext("2d") as CanvasRenderingContext2D;
    pen.font = getComputedStyle(item).font;
    return {
      room: item.getBoundingClientRect().left - list.getBoundingClientRect().left,
      number: pen.measureText("2000. ").width,
    };
  });
  assert.ok(room >= number, `${room} pixels for ${number}`);
});

const BLOCKS = 150;

const code = Array.from({ length: BLOCKS }, (_, index) => `\`\`\`ts\nconst number${index} = 1;\n\`\`\`\n`).join("");

/** Scrolls to a block of code, and waits until it is coloured. */
async function scrollTo(page: Page, index: number): Promise<void> {
  await page.locator("pre").nth(index).scrollIntoViewIfNeeded();
  await untilPainted(page, index);
}

const countPainted = (page: Page) => page.evaluate(() => CSS.highlights.get("agent-chat-keyword")?.size ?? 0);

async function untilPainted(page: Page, index: number, isPainted = true): Promise<void> {
  await page.waitForFunction(
    ([source, expected]) =>
      [...(CSS.highlights.get("agent-chat-keyword") ?? [])].some((range) =>
        range.startContainer.textContent?.includes(source),
      ) === expected,
    [`number${index} `, isPainted] as const,
  );
}

test("code is coloured near what is in view, and on paper; the first block, too wide by then, is a stop of the keyboard there", async (t) => {
  const wide = code.replace("number0 = 1", `number0 = ${"1 + ".repeat(12)}1`);
  const chat = await openChat(t, browser, { turns: [[say(wide)]] });
  const { page } = chat;
  await chat.say("Show me");
  await chat.answered();
  await scrollTo(page, BLOCKS - 1);
  await untilPainted(page, 0, false);
  assert.ok((await countPainted(page)) < BLOCKS / 2);
  const onPaper = await page.evaluateHandle(() => ({
    painted: new Promise<number>((done) => {
      addEventListener("afterprint", () => done(CSS.highlights.get("agent-chat-keyword")?.size ?? 0));
    }),
  }));
  await page.pdf();
  assert.equal(await onPaper.evaluate(({ painted }) => painted), BLOCKS);
  await untilPainted(page, 0, false);
  await page.setViewportSize({ width: 320, height: 640 });
  await scrollTo(page, 0);
  await page.locator("pre").first().and(page.locator("[tabindex='0']")).waitFor();
  await untilPainted(page, BLOCKS - 1, false);
  const element = await page.locator("agent-chat").elementHandle();
  await element?.evaluate((it) => it.remove());
  await page.waitForFunction(() => CSS.highlights.get("agent-chat-keyword")?.size === 0);
  await element?.evaluate((it) => document.body.append(it));
  await scrollTo(page, 40);
});
