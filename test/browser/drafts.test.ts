/** A draft stays, whatever it is written beside: a message that waits, or an earlier draft. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { AgentChat } from "../../widget/agent-chat.ts";
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

test("a draft stays while the message before it waits for the connection", async (t) => {
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

test("a browser that ends right behind Enter has kept a message and no draft of it", async (t) => {
  const rest = gate();
  t.after(rest.open);
  const chat = await openChat(t, browser, { turns: [[say("One.")], [wait(rest.opened)]] });
  await chat.ask("First", "One.");
  await sendTwo(chat, "Second", "");
  const kept = await chat.page.evaluate(() => Object.values(sessionStorage).join());
  assert.equal(kept.match(/Second/g)?.length, 1);
});

/** Reloads the page with a draft. What is kept comes when the gate is opened. */
async function reloadInTwoSteps(chat: ChatPage, draft: string) {
  await chat.input.fill(draft);
  const kept = gate();
  await chat.page.route("**/chunks/keep-*", async (route) => {
    await kept.opened;
    await route.continue();
  });
  await chat.page.reload();
  await chat.page.getByRole("button", { name: "Attach files" }).and(enabled(chat)).waitFor();
  return kept;
}

const enabled = ({ page }: ChatPage) => page.locator(":enabled");

test("what is written before an earlier page's draft is there goes on behind it", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")]] });
  await chat.ask("First", "One.");
  const kept = await reloadInTwoSteps(chat, "Half a thought");
  await chat.input.pressSequentially("Another");
  kept.open();
  await chat.replies.getByText("One.").waitFor();
  assert.equal(await chat.input.inputValue(), "Half a thought\n\nAnother");
});

test("a text of the page's own takes the place of an earlier page's draft", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")]] });
  await chat.ask("First", "One.");
  const kept = await reloadInTwoSteps(chat, "Half a thought");
  await chat.page.locator("agent-chat").evaluate((it) => (it as AgentChat).setDraft("The page's"));
  kept.open();
  await chat.replies.getByText("One.").waitFor();
  assert.equal(await chat.input.inputValue(), "The page's");
});

test("an earlier page's draft stays beside what is written behind an early Enter", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")], [say("Two.")]] });
  await chat.ask("First", "One.");
  const kept = await reloadInTwoSteps(chat, "Half a thought");
  await chat.say("Second");
  await chat.input.pressSequentially("Third");
  kept.open();
  await chat.replies.getByText("Two.").waitFor();
  assert.equal(await chat.input.inputValue(), "Half a thought\n\nThird");
  assert.deepEqual(contents(chat, 1), ["First", "One.", "Second"]);
});

test("an earlier draft stays beside a message that an early Enter could not send", async (t) => {
  const rest = gate();
  t.after(rest.open);
  const turns = [[say("Half of"), wait(rest.opened), say(" it.")], [say("Two.")]];
  const chat = await openChat(t, browser, { turns });
  await chat.say("First");
  await chat.replies.getByText("Half of").waitFor();
  const kept = await reloadInTwoSteps(chat, "Half a thought");
  await chat.say("Second");
  kept.open();
  await chat.stop.waitFor();
  assert.equal(await chat.input.inputValue(), "Half a thought\n\nSecond");
  rest.open();
  await chat.replies.getByText("Half of it.").waitFor();
  await chat.send.click();
  await chat.replies.getByText("Two.").waitFor();
});

test("what the page offers is sent into the conversation that is kept", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")], [say("Two.")]] });
  await chat.ask("First", "One.");
  const kept = await reloadInTwoSteps(chat, "");
  const offered = chat.page.locator('[part="suggestion"]');
  await chat.page.locator("agent-chat").evaluate(async (it) => {
    (it as AgentChat).suggest(["Second"]);
    await (it as AgentChat).updateComplete;
  });
  assert.equal(await offered.count(), 0);
  kept.open();
  await offered.click();
  await chat.replies.getByText("Two.").waitFor();
  assert.deepEqual(contents(chat, 1), ["First", "One.", "Second"]);
});
