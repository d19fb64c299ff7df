import assert from "node:assert/strict";
import { after, test } from "node:test";
import { openChat } from "../browser/chat-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say, wait } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

/** A heading and a paragraph in turns, so that both begin and end sections of 32 blocks, and both follow each other. */
const LONG = Array.from({ length: 75 }, (_, index) =>
  (index % 32) % 3 === 0 ? `## Heading ${index}` : `Paragraph ${index}.`,
).join("\n\n");

test("blocks of a long answer stand as far apart where a section begins as elsewhere", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say(LONG)]] });
  await chat.say("Show me");
  await chat.answer.getByText("Paragraph 74.").waitFor();
  const gaps = await chat.answer.evaluate((root) => {
    const blocks = [...root.querySelectorAll("h2, p")];
    // What is out of view has no place of its own.
    for (const section of root.querySelectorAll<HTMLElement>(".section")) {
      section.style.contentVisibility = "visible";
    }
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
  const [first, second] = [LONG.slice(0, LONG.indexOf("Paragraph 70.")), LONG];
  const more = `${second.slice(first.length)}\n\n${LONG}`;
  const chat = await openChat(t, browser, { turns: [[say(first), wait(rest.opened), say(more)]] });
  await chat.say("Show me");
  await chat.answer.getByText("Paragraph 68.").waitFor();
  const section = chat.answer.locator(".section").first();
  const height = await section.evaluate((node) => node.getBoundingClientRect().height);
  assert.equal(await section.evaluate((node) => getComputedStyle(node).contentVisibility), "visible");
  rest.open();
  await chat.send.waitFor();
  await chat.answer.locator(".section").nth(3).waitFor();
  assert.equal(await section.evaluate((node) => getComputedStyle(node).contentVisibility), "auto");
  const seen = await section
    .locator("p")
    .first()
    .evaluate((p) => p.checkVisibility({ contentVisibilityAuto: true }));
  assert.equal(seen, false);
  assert.equal(await section.evaluate((node) => node.getBoundingClientRect().height), height);
});
