/** The conversation outlives the page: a reload loses no message, and reports nothing twice. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setImmediate as nextTick } from "node:timers/promises";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { RED_PIXEL as PNG } from "../support/files.ts";
import { call, say, think, wait } from "../support/scripted-provider.ts";
import { echo } from "../support/test-tools.ts";
import { type ChatPage, canCopy, contents, openChat, shown } from "./chat-page.ts";
import { changeKept, kept } from "./kept.ts";

const browser = await launchBrowser({ after });

const stored = ({ page }: ChatPage) => kept(page);

const reset = ({ page }: Pick<ChatPage, "page">) => page.getByRole("button", { name: "New conversation" });

const NOT_KEPT = "The browser does not keep this conversation";

test("after a reload everything is there as it was, nothing is spoken, and the conversation goes on", async (t) => {
  const chat = await openChat(t, browser, {
    agent: { tools: [echo] },
    turns: [[think("Hm."), call("c1", "echo", { text: "ping" })], [say("**Pong.**")], [say("Yes.")]],
  });
  await chat.ask("Ping", "Pong.");
  await chat.input.fill("Half a thou");
  // Rows are drawn by a part of the script that comes later.
  await chat.tools.waitFor();
  await chat.thinking.getByText("Hm.").waitFor({ state: "hidden" });
  const before = await shown(chat.messages);
  await chat.page.reload();
  await chat.replies.getByText("Pong.").waitFor();
  await chat.tools.waitFor();
  // Until the server has said the agent's name, answers bear none.
  await chat.page.getByText("Acme Support").first().waitFor();
  assert.equal(await chat.input.inputValue(), "Half a thou");
  assert.equal(await shown(chat.messages), before);
  assert.equal(
    await chat.page
      .locator('[role="status"]')
      .allInnerTexts()
      .then((all) => all.join("")),
    "",
  );
  await chat.ask("Really?", "Yes.");
  assert.deepEqual(contents(chat, 2)?.filter(Boolean), ["Ping", "ping", "**Pong.**", "Really?"]);
});

test("a reload after any event of an answer changes nothing of it, and the agent is asked no more often", async (t) => {
  const gates = Array.from({ length: 5 }, gate);
  const [first, second, third, fourth, fifth] = gates.map((it) => wait(it.opened));
  assert.ok(first && second && third && fourth && fifth);
  const ping = { text: "ping" };
  const chat = await openChat(t, browser, {
    agent: { tools: [echo] },
    turns: [
      [think("Let me see."), think(" Yes."), call("c1", "echo", ping)],
      [say("One, "), say("two, "), say("three.")],
      [think("Let me see."), first, think(" Yes."), second, call("c1", "echo", ping)],
      [third, say("One, "), fourth, say("two, "), fifth, say("three.")],
    ],
  });
  const transcript = async () => {
    const text = await chat.page.evaluate(() => document.querySelector("agent-chat")?.exportTranscript("json"));
    return String(text).replace(/"duration_ms": \d+/g, "");
  };
  const holds = (part: string) =>
    chat.page.waitForFunction(async (it) => {
      const text = await document.querySelector("agent-chat")?.exportTranscript("json");
      return text?.includes(it);
    }, part);
  await chat.ask("Go", "One, two, three.");
  const whole = await transcript();
  await reset(chat).click();
  await chat.greeting.waitFor();
  await chat.say("Go");
  const parts = ["Let me see.", " Yes.", '"status": "completed"', "One, ", "two, "];
  for (const [index, part] of parts.entries()) {
    await holds(part);
    await chat.page.reload();
    await holds(part);
    await chat.stop.waitFor();
    gates[index]?.open();
  }
  await holds("three.");
  await chat.send.waitFor();
  assert.equal(await transcript(), whole);
  assert.equal(chat.server.model.asked.length, 4);
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

test("New conversation leaves nothing behind", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Noted.")]] });
  await chat.ask("My name is Ann", "Noted.");
  await chat.page.reload();
  await chat.replies.getByText("Noted.").waitFor();
  assert.match(await stored(chat), /Ann/);
  await reset(chat).click();
  await chat.greeting.waitFor();
  // The database deletes it a moment later.
  while (/Ann|Noted/.test(await stored(chat))) await nextTick();
  await chat.page.reload();
  await chat.greeting.waitFor();
  assert.doesNotMatch(await stored(chat), /Ann|Noted/);
});

test("neither the key nor the bytes of a file are stored, and the file is still shown by its name", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("A dot.")], [say("I saw one.")]],
    env: { PARLEY_CHAT_KEY: "the-secret-key" },
  });
  await chat.keyField.fill("the-secret-key");
  await chat.keyField.press("Enter");
  await chat.files.setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: PNG });
  await chat.page.getByRole("button", { name: "Remove dot.png" }).waitFor();
  await chat.ask("What is it?", "A dot.");
  await chat.page.reload();
  await chat.questions.getByText("dot.png").waitFor();
  const text = await stored(chat);
  assert.doesNotMatch(text, /the-secret-key/);
  assert.equal(text.includes(PNG.toString("base64").slice(0, 40)), false);
  await chat.ask("Did you see it?", "I saw one.");
  const [first] = chat.server.model.asked[1]?.messages ?? [];
  assert.match(JSON.stringify(first?.content), /dot\.png.*no longer included|an image was attached/);
});

test("persist=none keeps nothing, and a row of an older version is ignored", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")], [say("Two.")]] });
  await chat.ask("First", "One.");
  await chat.page.reload();
  await chat.replies.getByText("One.").waitFor();
  await changeKept(chat.page, "row.version = 2;");
  await chat.page.reload();
  await chat.greeting.waitFor();
  await chat.page.evaluate(() => document.querySelector("agent-chat")?.setAttribute("persist", "none"));
  await chat.ask("Second", "Two.");
  await chat.page.reload();
  await chat.greeting.waitFor();
  assert.doesNotMatch(await stored(chat), /Second/);
});

/** Has the browser's database take so much in one row and no more. */
const limitRows = ({ page }: ChatPage, characters: number) =>
  page.evaluate(`{
    const put = IDBObjectStore.prototype.put;
    IDBObjectStore.prototype.put = function (row) {
      if (JSON.stringify(row).length > ${characters}) throw new DOMException("full", "QuotaExceededError");
      return put.call(this, row);
    };
  }`);

test("where storage is full the oldest messages go and the conversation stays", async (t) => {
  const long = "x".repeat(400_000);
  const chat = await openChat(t, browser, { turns: [[say(long)], [say("Two.")], [say("Three.")]] });
  await limitRows(chat, 1_000_000);
  await chat.say("First");
  await chat.answered();
  await chat.ask("Second", "Two.");
  // The state of the conversation alone takes 400,000 of them.
  await limitRows(chat, 500_000);
  await chat.ask("Third", "Three.");
  await chat.page.reload();
  await chat.replies.getByText("Three.").waitFor();
  await chat.page.getByText("Earlier messages are no longer shown here.").waitFor();
  assert.equal(await chat.replies.getByText("Two.").count(), 1);
  assert.equal(chat.server.model.asked[2]?.messages.length, 5, "the agent knows all of it");
  await limitRows(chat, 0);
  await chat.page.getByText(NOT_KEPT).waitFor({ state: "detached" });
});

for (const area of ["sessionStorage", "indexedDB"]) {
  test(`where the browser blocks ${area} the conversation lasts as long as the page, and says so`, async (t) => {
    const chat = await openChat(t, browser, { turns: [[say("One.")]] });
    await chat.page.addInitScript((name) => {
      Object.defineProperty(window, name, {
        get() {
          throw new DOMException("blocked", "SecurityError");
        },
      });
    }, area);
    await chat.page.reload();
    await chat.ask("First", "One.");
    await chat.page.getByText(NOT_KEPT).waitFor();
    await chat.page.reload();
    await chat.greeting.waitFor();
    assert.equal(await chat.page.getByText(NOT_KEPT).count(), 0, "there is nothing to lose");
  });
}

test("a conversation says that it will not be kept as long as storage has no room at all, and not with persist=none", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("One.")], [say("Two.")], [say("Three.")]],
  });
  await chat.page.evaluate(() => {
    for (let size = 2 ** 22; size >= 1; ) {
      try {
        sessionStorage.setItem(`site${sessionStorage.length}`, "y".repeat(size));
      } catch {
        size /= 2;
      }
    }
  });
  const note = chat.messages.getByText(NOT_KEPT);
  await chat.ask("First", "One.");
  await note.waitFor();
  const answer = await chat.replies.elementHandle();
  await chat.page.evaluate(() => sessionStorage.clear());
  await chat.ask("Second", "Two.");
  await note.waitFor({ state: "detached" });
  assert.ok(await answer?.evaluate((node) => node.isConnected), "it was not drawn anew");
  await chat.page.evaluate(() => {
    document.querySelector("agent-chat")?.setAttribute("persist", "none");
  });
  await chat.ask("Third", "Three.");
  assert.equal(await note.count(), 0);
});

test("of a draft a reload keeps the text, and says once which files are to be attached again", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Thank you.")]] });
  await chat.input.fill("See this");
  await chat.files.setInputFiles({ name: "red.png", mimeType: "image/png", buffer: PNG });
  await chat.page.getByRole("button", { name: "Remove red.png" }).waitFor();
  await chat.page.reload();
  const lost = chat.page.getByText("red.png: no longer here, please attach again.");
  await lost.first().waitFor();
  assert.equal(await chat.input.inputValue(), "See this");
  assert.equal(await chat.page.locator('[part="refusals"]').isVisible(), true);
  assert.doesNotMatch(await stored(chat), new RegExp(PNG.toString("base64").slice(0, 40)));
  await chat.ask("Only this, then", "Thank you.");
  await chat.page.reload();
  await chat.replies.getByText("Thank you.").waitFor();
  assert.equal(await lost.count(), 0);
});
