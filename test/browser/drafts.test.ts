/** A draft is kept with what it is written beside: a message that waits, an earlier page's draft, the page's own words. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say, wait } from "../support/scripted-provider.ts";
import { type ChatPage, openChat } from "./chat-page.ts";

const browser = await launchBrowser({ after });

const contents = ({ server }: ChatPage, turn: number) =>
  server.model.asked[turn]?.messages.map(({ content }) => content);

/** Presses Enter twice, each time behind a text, before the browser draws again. */
const sendTwo = ({ input }: ChatPage, first: string, second: string) =>
  input.evaluate(
    (field: HTMLTextAreaElement, texts) => {
      for (const text of texts) {
        field.value = text;
        field.dispatchEvent(new InputEvent("input", { bubbles: true, composed: true }));
        const enter = { key: "Enter", bubbles: true, composed: true, cancelable: true };
        field.dispatchEvent(new KeyboardEvent("keydown", enter));
      }
    },
    [first, second],
  );

test("a draft stays while the message before it waits for a key", async (t) => {
  const chat = await openChat(t, browser, {
    env: { PARLEY_CHAT_KEY: "open-sesame" },
    turns: [[say("One.")], [say("Two.")]],
    expectedComplaints: /WebSocket|401/,
  });
  const asked = gate();
  await chat.page.route("**/api/info", async (route) => {
    await asked.opened;
    await route.continue();
  });
  await chat.page.reload();
  await sendTwo(chat, "First", "Second");
  asked.open();
  await chat.keyField.fill("open-sesame");
  await chat.keyField.press("Enter");
  await chat.replies.getByText("One.").waitFor();
  assert.equal(await chat.input.inputValue(), "Second");
  await chat.send.click();
  await chat.replies.getByText("Two.").waitFor();
  assert.deepEqual(contents(chat, 1), ["First", "One.", "Second"]);
});

test("a draft stays while the message before it waits for the connection, and over a reload", async (t) => {
  const chat = await openChat(t, browser, {
    proxy: { upgrades: "pass" },
    expectedComplaints: /^WebSocket connection to|^Failed to load resource: net::/,
    turns: [[say("One.")]],
  });
  await chat.greeting.waitFor();
  await chat.proxy.down();
  await sendTwo(chat, "First", "Second");
  await chat.page.locator('[part="queued"]').waitFor();
  assert.equal(await chat.input.inputValue(), "Second");
  await chat.proxy.up();
  await chat.page.reload();
  await chat.replies.getByText("One.").waitFor();
  assert.equal(await chat.input.inputValue(), "Second");
  assert.equal(await chat.questions.count(), 1);
});

test("a browser that ends without a word right behind Enter has kept the message, and no draft of it", async (t) => {
  const rest = gate();
  t.after(rest.open);
  const chat = await openChat(t, browser, { turns: [[say("One.")], [wait(rest.opened)]] });
  await chat.ask("First", "One.");
  await sendTwo(chat, "Second", "");
  const kept = await chat.page.evaluate(() => Object.values(sessionStorage).join());
  assert.equal(kept.match(/Second/g)?.length, 1);
});
