/** What the script tag says about the chat in the corner's panel. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { launchBrowser } from "../support/browser.ts";
import { call, say, think } from "../support/scripted-provider.ts";
import { echo } from "../support/test-tools.ts";
import { button, panel, visit } from "./launcher-page.ts";

const browser = await launchBrowser({ after });

test("data-thinking, data-tools and data-persist hold for the chat in the panel", async (t) => {
  const chat = await visit(t, browser, {
    script: 'data-thinking="open" data-tools="hidden" data-persist="none"',
    agent: { tools: [echo] },
    turns: [[think("First this."), call("c1", "echo", { text: "ping" })], [say("Done.")]],
  });
  await button(chat.page).click();
  await chat.ask("Go", "Done.");
  assert.equal(await chat.thinking.getByText("First this.").isVisible(), true);
  assert.equal(await chat.tools.count(), 0);
  await chat.page.reload();
  await chat.greeting.waitFor();
  assert.equal(await chat.questions.count(), 0, "nothing was kept");
});

test("a reader who had scrolled up finds the same place when the panel is opened again", async (t) => {
  const long = Array.from({ length: 60 }, (_, index) => `Paragraph ${index}.`).join("\n\n");
  const chat = await visit(t, browser, { turns: [[say(long)]] });
  await button(chat.page).click();
  await chat.say("Go");
  await chat.send.waitFor();
  await chat.messages.focus();
  await chat.page.keyboard.press("Home");
  const jump = chat.page.locator('[part="jump"]');
  await jump.waitFor();
  const place = () => chat.messages.evaluate((box) => box.scrollTop);
  // Somewhere in the middle, where neither an end nor a new beginning is taken for the place.
  await chat.messages.evaluate((box) => box.scrollTo({ top: 300, behavior: "instant" }));
  assert.equal(await place(), 300);
  await chat.page.keyboard.press("Escape");
  await panel(chat.page).waitFor({ state: "hidden" });
  await button(chat.page).click();
  await jump.waitFor();
  // Until it is drawn, the panel's new size is told to nobody.
  await chat.page.evaluate(
    () => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next))),
  );
  assert.equal(await place(), 300);
  assert.equal(await jump.count(), 1);
});
