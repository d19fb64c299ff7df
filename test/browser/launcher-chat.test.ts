/** What the script tag says about the chat in the corner's panel. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { launchBrowser } from "../support/browser.ts";
import { call, say, think } from "../support/scripted-provider.ts";
import { echo } from "../support/test-tools.ts";
import { button, panel, type Visit, visit } from "./launcher-page.ts";

const browser = await launchBrowser({ after });

test("data-thinking, data-tools and data-persist hold for the chat in the panel", async (t) => {
  const chat = await visit(t, browser, {
    script: 'data-thinking="open" data-tools="hidden" data-persist="none"',
    agent: { tools: [echo] },
    turns: [[think("First this."), call("c1", "echo", { text: "ping" })], [say("Done.")]],
  });
  await button(chat.page).click();
  await chat.ask("Go", "Done.");
  await chat.thinking.getByText("First this.").waitFor();
  assert.equal(await chat.tools.count(), 0);
  await chat.page.reload();
  await chat.greeting.waitFor();
  assert.equal(await chat.questions.count(), 0, "nothing was kept");
});

/** How the panel is closed while its chat is scrolled to the middle. */
const closings = {
  "": async ({ page, messages }: Visit) => {
    await messages.evaluate(toMiddle);
    await page.keyboard.press("Escape");
  },
  // Before the browser has told of it: it does so with its next frame, when nothing of it is shown any more.
  " in the moment of scrolling": async ({ messages }: Visit) =>
    messages.evaluate(async (box) => {
      box.scrollTo({ top: 600, behavior: "instant" });
      await new Promise((next) => box.addEventListener("scroll", next, { once: true }));
      box.scrollTo({ top: 300, behavior: "instant" });
      document.querySelector("agent-chat-launcher")?.close();
    }),
};

/** Where neither an end nor a new beginning is taken for the place. */
function toMiddle(box: Element): void {
  box.scrollTo({ top: 300, behavior: "instant" });
}

for (const [moment, close] of Object.entries(closings)) {
  test(`a reader who had scrolled up finds the same place when the panel was closed${moment} and is opened again`, async (t) => {
    const long = Array.from({ length: 60 }, (_, index) => `Paragraph ${index}.`).join("\n\n");
    const chat = await visit(t, browser, { turns: [[say(long)]] });
    await button(chat.page).click();
    await chat.ask("Go", long);
    await chat.messages.focus();
    await chat.page.keyboard.press("Home");
    const jump = chat.page.locator('[part="jump"]');
    await jump.waitFor();
    await close(chat);
    await panel(chat.page).waitFor({ state: "hidden" });
    await button(chat.page).click();
    await jump.waitFor();
    // Until it is drawn, the panel's new size is told to nobody.
    await chat.page.evaluate(() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next))));
    assert.equal(await chat.messages.evaluate((box) => box.scrollTop), 300);
    assert.equal(await jump.count(), 1);
  });
}
