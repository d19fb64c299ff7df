/** What the script tag says about the chat in the corner's panel. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { launchBrowser } from "../support/browser.ts";
import { call, say, think } from "../support/scripted-provider.ts";
import { echo } from "../support/test-tools.ts";
import { button, visit } from "./launcher-page.ts";

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
