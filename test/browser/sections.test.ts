import assert from "node:assert/strict";
import { after, test } from "node:test";
import { launchBrowser } from "../support/browser.ts";
import { say } from "../support/scripted-provider.ts";
import { openChat } from "./chat-page.ts";

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
