/** A draft survives next to a waiting message or an earlier draft. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { AgentChat } from "../../widget/element/public-types.ts";
import { type ChatPage, contents, holdInfo, openChat } from "../browser/chat-page.ts";
import { goBack, holdKept, kept, leave } from "../browser/kept.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say, wait } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

/** Presses Enter twice, each time after entering a text, before the next frame. */
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
  const answer = await holdInfo(chat.page);
  await chat.page.reload();
  await sendTwo(chat, "First", "Second");
  answer();
  await chat.keyField.fill("open-sesame");
  await chat.keyField.press("Enter");
  await chat.replies.getByText("One.").waitFor();
  assert.equal(await chat.input.inputValue(), "Second");
  await chat.send.click();
  await chat.replies.getByText("Two.").waitFor();
  assert.deepEqual(contents(chat, 1), ["First", "One.", "Second"]);
});

test("a draft stays while the message before it waits for the connection", async (t) => {
  const chat = await openChat(t, browser, {
    proxy: { upgrades: "pass" },
    expectedComplaints: /^WebSocket connection to|^Failed to load resource: net::/,
    turns: [[say("One.")]],
  });
  await chat.greeting.waitFor();
  // The part that renders messages loads while the page is idle.
  await chat.page.evaluate(() => customElements.whenDefined("agent-chat-message").then(() => undefined));
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

test("a browser that ends right behind Enter has kept a message and no draft of it", async (t) => {
  const rest = gate();
  t.after(rest.open);
  const chat = await openChat(t, browser, { turns: [[say("One.")], [wait(rest.opened)]] });
  await chat.ask("First", "One.");
  await chat.say("Second");
  await chat.stop.waitFor();
  assert.doesNotMatch(await chat.page.evaluate(() => Object.values(sessionStorage).join()), /Second/);
  assert.match(await kept(chat.page), /Second/);
});

test("a text of the page's own takes the place of an earlier page's draft", async (t) => {
  const chat = await openChat(t, browser, { turns: [] });
  await chat.input.fill("Half a thought");
  await chat.page.addInitScript(`customElements.whenDefined("agent-chat").then(() => {
    document.querySelector("agent-chat").setDraft("The page's");
  });`);
  await chat.page.reload();
  await chat.page.waitForFunction(`document.querySelector("agent-chat").shadowRoot.querySelector("textarea").value`);
  assert.equal(await chat.input.inputValue(), "The page's");
});

test("what another page of the tab has in its composer stands above what was written here before", async (t) => {
  const chat = await openChat(t, browser, { turns: [] });
  await chat.input.fill("Written there");
  await leave(chat.page, "there");
  await chat.input.fill("Written here");
  await goBack(chat.page, "there");
  await chat.input.and(chat.page.locator("[data-tall] > *")).waitFor();
  assert.equal(await chat.input.inputValue(), "Written there\n\nWritten here");
});

test("what the page offers is sent into the conversation that is kept", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")], [say("Two.")]] });
  await chat.ask("First", "One.");
  const release = await holdKept(chat.page);
  await chat.page.reload();
  await chat.page.getByRole("button", { name: "Attach files" }).and(chat.page.locator(":enabled")).waitFor();
  const offered = chat.page.locator('[part="suggestion"]');
  await chat.page.locator("agent-chat").evaluate(async (it) => {
    (it as AgentChat).suggest(["Second"]);
    await (it as AgentChat).updateComplete;
  });
  assert.equal(await offered.count(), 0);
  await release();
  await offered.click();
  await chat.replies.getByText("Two.").waitFor();
  assert.deepEqual(contents(chat, 1), ["First", "One.", "Second"]);
});
