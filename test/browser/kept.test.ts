/** When the tab keeps a conversation. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { launchBrowser } from "../support/browser.ts";
import { say, wait } from "../support/scripted-provider.ts";
import { canCopy, openChat } from "./chat-page.ts";

const browser = await launchBrowser({ after });

test("a message is kept as soon as it is sent, for a browser that ends without a word", async (t) => {
  const never = new Promise<void>(() => {});
  const chat = await openChat(t, browser, { turns: [[say("One.")], [wait(never)]] });
  await chat.ask("First", "One.");
  // What is written once a second is never written.
  await chat.page.evaluate(
    "{ const later = setTimeout; setTimeout = (run, ms) => (ms === 1000 ? 0 : later(run, ms)); }",
  );
  await chat.say("Second");
  await chat.stop.waitFor();
  const kept = await chat.page.evaluate(() => Object.values(sessionStorage).join());
  assert.match(kept, /Second/);
});

test("what was being written outlives a reload in the middle of changing a message", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")]] });
  await chat.ask("First", "One.");
  await chat.input.fill("Half a thou");
  await canCopy(chat.page);
  await chat.page.getByRole("button", { name: "Change this message" }).click();
  assert.equal(await chat.input.inputValue(), "First");
  await chat.page.reload();
  await chat.replies.getByText("One.").waitFor();
  assert.equal(await chat.input.inputValue(), "Half a thou");
});
