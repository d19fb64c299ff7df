/** A long block that goes on is drawn from where it goes on: the chunk that cuts it comes, and does so. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { openChat } from "../browser/chat-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say, type Turn, wait } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

/** Blocks with as many parts as asked for, each part with a number and some elements. */
const BLOCKS: Record<string, { begin: string; part: (number: number) => string }> = {
  "a list": { begin: "", part: (number) => `- **item** \`${number}.\`\n` },
  "a nested list": { begin: "- top\n", part: (number) => `  - **item** \`${number}.\`\n` },
  "a table": {
    begin: "| a | b |\n|---|---|\n",
    part: (number) => `| **row** | \`${number}.\` |\n`,
  },
  "a quote": { begin: "", part: (number) => `> **words** \`${number}.\`\n>\n` },
  "a paragraph": { begin: "", part: (number) => `Some **words** and \`${number}.\` in a row. ` },
};

const BEGUN = 400;

/** What a frame may draw: the last part, and of a paragraph the last sentences. */
const FEW = 400;

for (const [name, { begin, part }] of Object.entries(BLOCKS)) {
  test(`of ${name} of ${BEGUN} parts only the end is drawn again when it grows`, async (t) => {
    const parts = Array.from({ length: BEGUN }, (_, number) => part(number));
    const steps = Array.from({ length: 60 }, () => gate());
    t.after(() => {
      for (const step of steps) step.open();
    });
    function* growing(): Turn {
      yield say(begin + parts.join(""));
      for (const [index, step] of steps.entries()) {
        yield wait(step.opened);
        yield say(part(BEGUN + index));
      }
    }
    const chat = await openChat(t, browser, { turns: [growing()] });
    const chunk = chat.page.waitForResponse(/\/chunks\/cut-/);
    await chat.say("Go");
    assert.equal((await chunk).status(), 200);
    await chat.answer.getByText(`${BEGUN - 1}.`, { exact: true }).waitFor();
    const drawn = await chat.page.evaluateHandle(() => {
      const count = { elements: 0 };
      const create = document.createElement.bind(document);
      document.createElement = (tag: string) => {
        count.elements += 1;
        return create(tag);
      };
      return count;
    });
    const first = await chat.answer.locator("strong").first().elementHandle();
    const counts: number[] = [];
    for (const [index, step] of steps.entries()) {
      const before = await drawn.evaluate(({ elements }) => elements);
      step.open();
      await chat.answer.getByText(`${BEGUN + index}.`, { exact: true }).waitFor();
      counts.push((await drawn.evaluate(({ elements }) => elements)) - before);
      // The chunk runs a moment after it has come, and then the block is drawn whole once more.
      if (counts.length >= 3 && counts.slice(-3).every((count) => count < FEW)) break;
    }
    assert.ok(
      counts.slice(-3).every((count) => count < FEW),
      `elements drawn with each part: ${counts}`,
    );
    assert.equal(await first?.evaluate((element) => element.isConnected), true);
  });
}
