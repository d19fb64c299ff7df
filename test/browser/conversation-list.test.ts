/** Stored conversations: list, search, rename, delete and restore, on the page, in a site's panel, in two tabs. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after } from "node:test";
import type { Page } from "playwright-core";
import type { AgentChat } from "../../widget/element/agent-chat.ts";
import { axeFindings } from "../support/axe.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { RED_PIXEL } from "../support/files.ts";
import { it, test } from "../support/rows.ts";
import { hang, say, wait } from "../support/scripted-provider.ts";
import { type ChatPage, chatIn, hasFocus, isFocused, openChat, shown } from "./chat-page.ts";
import { fillList, keptName, untilKept } from "./kept.ts";
import { button, PHONE, visit } from "./launcher-page.ts";
import { listen, untilHeard } from "./listening.ts";

const browser = await launchBrowser({ after });

const rows = (page: Page) => page.locator('[part="conversation"]');
const row = (page: Page, title: string) => rows(page).filter({ hasText: title });
/** The titles in the list, by text content: rows that were never in view have no inner text. */
const titles = async (page: Page) => (await rows(page).allTextContents()).map((title) => title.trim());
const begin = (page: Page) => page.getByRole("button", { name: "New conversation" }).first().click();
const openList = (page: Page) => page.getByRole("button", { name: "Conversations" }).click();

/** Starts a conversation for each text; the answer is the text with "!". */
async function talk(chat: ChatPage, ...texts: string[]): Promise<void> {
  for (const text of texts) {
    await begin(chat.page);
    await chat.greeting.waitFor();
    await chat.ask(text, `${text}!`);
  }
}

const answers = (...texts: string[]) => texts.map((text) => [say(`${text}!`)]);

test("a new conversation ends nothing: the one before is in the list, goes on with its own state, and outlives the tab", async (t) => {
  const chat = await openChat(t, browser, { turns: answers("Apples", "Bread", "More apples") });
  const { page, server } = chat;
  // A greeting alone must not add a conversation to the list.
  await page.locator("agent-chat").evaluate((it) => (it as AgentChat).addMessage({ text: "Welcome back" }));
  await untilKept(page, /Welcome back/);
  await page.reload();
  await page.getByText("Welcome back").waitFor();
  assert.deepEqual(await rows(page).count(), 0);
  await chat.ask("Apples", "Apples!");
  await talk(chat, "Bread");
  await row(page, "Bread").waitFor();
  assert.deepEqual(await titles(page), ["Bread", "Apples"]);
  await row(page, "Apples").click();
  await chat.replies.getByText("Apples!").waitFor();
  await chat.ask("More apples", "More apples!");
  const texts = server.model.asked[2]?.messages.map(({ content }) => content);
  assert.deepEqual(texts, ["Apples", "Apples!", "More apples"]);
  // An open edit stays in its conversation. If another edit is opened elsewhere, its text moves to the text field.
  const change = page.getByRole("button", { name: "Change this message" }).first();
  await change.click();
  await chat.edited.fill("Pears");
  await row(page, "Bread").click();
  await chat.replies.getByText("Bread!").waitFor();
  assert.equal(await chat.edited.count(), 0);
  await row(page, "Apples").click();
  await chat.edited.waitFor();
  assert.equal(await chat.edited.inputValue(), "Pears");
  await row(page, "Bread").click();
  await chat.replies.getByText("Bread!").waitFor();
  await change.click();
  await chat.edited.waitFor();
  assert.deepEqual([await chat.edited.inputValue(), await chat.input.inputValue()], ["Bread", "Pears"]);
  const other = await page.context().newPage();
  await page.close();
  await other.goto(server.url);
  await rows(other).first().waitFor();
  assert.deepEqual(await titles(other), ["Apples", "Bread"]);
  await chatIn(other).greeting.waitFor();
  await row(other, "Apples").click();
  await chatIn(other).replies.getByText("More apples!").waitFor();
});

test("what is being written stays in its conversation, with its files, over a look elsewhere and an undone deletion, and but for the files over a reload", async (t) => {
  const chat = await openChat(t, browser, { turns: answers("One", "Two", "Dear Bob") });
  const { page, server } = chat;
  const dot = { name: "dot.png", mimeType: "image/png", buffer: RED_PIXEL };
  const sees = async (text: string, files = 0) => {
    await page.waitForFunction(([field, wanted]) => (field as HTMLTextAreaElement).value === wanted, [
      await chat.input.elementHandle(),
      text,
    ] as const);
    await chat.drafts.nth(files).waitFor({ state: "detached" });
    if (files > 0) await chat.drafts.nth(files - 1).waitFor();
  };
  const open = async (title: string, text: string, files = 0) => {
    await row(page, title).click();
    await chat.replies.getByText(`${title}!`).waitFor();
    await sees(text, files);
  };
  await chat.ask("One", "One!");
  await talk(chat, "Two");
  await chat.input.fill("Dear Bob");
  // The file is still being read when another conversation is opened.
  await chat.files.setInputFiles([dot]);
  await open("One", "");
  await chat.input.fill("Of one");
  await open("Two", "Dear Bob", 1);
  await begin(page);
  await sees("");
  await chat.input.fill("Of a new one");
  await open("One", "Of one");
  await chat.files.setInputFiles([dot]);
  await open("Two", "Dear Bob", 1);
  await chat.input.press("Enter");
  await chat.replies.getByText("Dear Bob!").waitFor();
  assert.equal(server.model.asked[2]?.start.attachments.length, 1);
  await sees("");
  await open("One", "Of one", 1);
  await row(page, "One").press("Delete");
  await sees("Of a new one");
  await page.getByRole("button", { name: "Undo" }).click();
  await open("One", "Of one", 1);
  await untilKept(page, /Of one/);
  await page.reload();
  await sees("Of one");
  await page.getByText("dot.png: no longer here, please attach again.").first().waitFor();
  await open("Two", "");
  await begin(page);
  await sees("Of a new one");
});

test("an answer goes on while another conversation is shown: its row says so, and then that it was not read, until it is opened in any tab", async (t) => {
  const rest = gate();
  const turns = [[say("Half"), wait(rest.opened), say(" and the rest.")], ...answers("Bread")];
  const chat = await openChat(t, browser, { turns });
  const { page, server } = chat;
  await chat.say("Apples");
  await chat.replies.getByText("Half").waitFor();
  await talk(chat, "Bread");
  const dot = (there: Page, name: string) =>
    row(there, "Apples").filter({ has: there.getByRole("img", { name, exact: true }) });
  await dot(page, "Answering…").waitFor();
  rest.open();
  await dot(page, "Answer not read yet").waitFor();
  await page.reload();
  await dot(page, "Answer not read yet").waitFor();
  const before = await titles(page);
  const other = await page.context().newPage();
  await other.goto(server.url);
  await dot(other, "Answer not read yet").click();
  await chatIn(other).replies.getByText("Half and the rest.").waitFor();
  await chatIn(other).answered();
  for (const it of [page, other]) await row(it, "Apples").getByRole("img").waitFor({ state: "detached" });
  assert.deepEqual(await titles(page), before, "to read it is no reason to go up");
  assert.equal(server.model.asked.length, 2);
});

test("an answer that is left in the middle, or whose tab is closed, has a dot, and goes on when it is opened, also from another tab", async (t) => {
  const [one, two] = [gate(), gate()];
  const half = ({ opened }: typeof one) => [say("Half"), wait(opened), say(" and the rest.")];
  const chat = await openChat(t, browser, { turns: [half(one), ...answers("Bread"), half(two)] });
  const { page, server } = chat;
  await chat.say("Apples");
  await chat.replies.getByText("Half").waitFor();
  await talk(chat, "Bread");
  const dotted = (there: Page, title: string) =>
    row(there, title).filter({ has: there.getByRole("img", { name: "Answer not read yet" }) });
  await row(page, "Apples").getByRole("img", { name: "Answering…" }).waitFor();
  const closed = await page.context().newPage();
  await closed.goto(server.url);
  await chatIn(closed).say("Cheese");
  await chatIn(closed).replies.getByText("Half").waitFor();
  await closed.close();
  const other = await page.context().newPage();
  const there = chatIn(other);
  await other.goto(server.url);
  for (const [title, rest] of [
    ["Cheese", two],
    ["Apples", one],
  ] as const) {
    await dotted(other, title).click();
    await there.questions.getByText(title).waitFor();
    await there.replies.getByText("Half").waitFor();
    await other.getByRole("button", { name: "Stop answering" }).waitFor();
    rest.open();
    await there.answered();
    assert.equal(await shown(there.answer), "Half and the rest.");
    await row(page, title).getByRole("img").waitFor({ state: "detached" });
  }
  await row(page, "Apples").click();
  await chat.replies.getByText("Half and the rest.").waitFor();
  assert.equal(server.model.asked.length, 3);
});

it("what waits to be sent in another conversation is mentioned in its row, also after a reload, until it is sent", async (t) => {
  const rest = gate();
  const turns = [[say("Half"), wait(rest.opened), say(" and the rest.")], ...answers("Bread", "Pears")];
  const chat = await openChat(t, browser, { turns });
  const { page } = chat;
  await chat.say("Apples");
  await chat.replies.getByText("Half").waitFor();
  await chat.say("And pears?");
  await page.locator('[part="pending"]').waitFor();
  await talk(chat, "Bread");
  const mark = row(page, "Apples").getByRole("img", { name: "Waiting to be sent" });
  await mark.waitFor();
  assert.equal(await row(page, "Bread").getByRole("img").count(), 0);
  await page.reload();
  await mark.waitFor();
  await row(page, "Apples").click();
  await chat.replies.getByText("Half").waitFor();
  await mark.waitFor({ state: "detached" });
  rest.open();
  await chat.replies.getByText("Pears!").waitFor();
  await row(page, "Bread").click();
  await chat.replies.getByText("Bread!").waitFor();
  assert.equal(await row(page, "Apples").getByRole("img").count(), 0);
});

it("what is deleted in the middle of its answer is ended at the server, and comes back as far as it went", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Half"), hang], ...answers("Bread")] });
  const { page, server } = chat;
  await chat.say("Apples");
  await chat.replies.getByText("Half").waitFor();
  await talk(chat, "Bread");
  await row(page, "Apples").press("Delete");
  await server.model.asked[0]?.aborted;
  await page.getByRole("button", { name: "Undo" }).click();
  await row(page, "Apples").click();
  await chat.replies.getByText("Half").waitFor();
  await chat.answered();
});

test("two tabs show one conversation live, and each can go on with it", async (t) => {
  const chat = await openChat(t, browser, { turns: answers("One", "Two", "Three", "Four", "Five", "Six", "Seven") });
  const { page, server } = chat;
  await chat.ask("One", "One!");
  const other = await page.context().newPage();
  const there = chatIn(other);
  await other.goto(server.url);
  await row(other, "One").click();
  await there.replies.getByText("One!").waitFor();
  await there.ask("Two", "Two!");
  await chat.replies.getByText("Two!").waitFor();
  await chat.ask("Three", "Three!");
  await there.replies.getByText("Three!").waitFor();
  assert.deepEqual(
    server.model.asked[2]?.messages.map(({ content }) => content),
    ["One", "One!", "Two", "Two!", "Three"],
  );
  // A tab that gets no messages of the others, as after the machine was asleep.
  const deaf = await page.context().newPage();
  await deaf.addInitScript(`BroadcastChannel.prototype.addEventListener = () => {};
    Object.defineProperty(BroadcastChannel.prototype, "onmessage", { set() {} });`);
  await deaf.goto(server.url);
  await row(deaf, "One").click();
  await chatIn(deaf).replies.getByText("Three!").waitFor();
  await there.ask("Four", "Four!");
  await chatIn(deaf).say("Five");
  const note = deaf.locator(".busy-note").getByText("This conversation went on in another tab.");
  await note.waitFor();
  await chatIn(deaf).replies.getByText("Four!").waitFor();
  assert.equal(await chatIn(deaf).input.inputValue(), "Five");
  await chatIn(deaf).input.press("Enter");
  await chatIn(deaf).replies.getByText("Five!").waitFor();
  // The deaf tab does not switch to a branch that it has not seen.
  await deaf.getByRole("button", { name: "Answer again" }).click();
  await chatIn(deaf).replies.getByText("Six!").waitFor();
  await there.replies.getByText("Six!").waitFor();
  await deaf.reload();
  await chatIn(deaf).replies.getByText("Six!").waitFor();
  await there.ask("Seven", "Seven!");
  await deaf.getByRole("button", { name: "Previous" }).click();
  await note.waitFor();
  await chatIn(deaf).replies.getByText("Seven!").waitFor();
});

it("what waits in two tabs is sent once, in its order, also when the tab that wrote the answer has crashed", async (t) => {
  const rest = gate();
  const turns = [[say("Half"), wait(rest.opened), say(" and the rest.")], ...answers("Both", "Last")];
  const chat = await openChat(t, browser, { turns });
  const { page, server } = chat;
  await chat.say("First");
  await chat.replies.getByText("Half").waitFor();
  const other = await page.context().newPage();
  const there = chatIn(other);
  await other.goto(server.url);
  await row(other, "First").click();
  await there.replies.getByText("Half").waitFor();
  for (const [tab, text] of [
    [chat, "Here"],
    [there, "There"],
  ] as const) {
    await tab.say(text);
    for (const it of [page, other]) await it.locator(".pending-message").getByText(text).waitFor();
  }
  const device = await page.context().newCDPSession(page);
  const crash = page.waitForEvent("crash");
  // The call never gets a response.
  void device.send("Page.crash").catch(() => {});
  await crash;
  rest.open();
  await there.replies.getByText("Both!").waitFor();
  assert.equal(await other.locator(".pending-message").count(), 0);
  await there.ask("Last", "Last!");
  assert.deepEqual(
    server.model.asked[2]?.messages.map(({ content }) => content),
    ["First", "Half and the rest.", "Here\n\nThere", "Both!", "Last"],
  );
});

it("while an answer comes it alone is stored, the list is not read again, and another tab has it with the rest of the conversation", async (t) => {
  const [more, rest] = [gate(), gate()];
  const long = "A long answer. ".repeat(3_000);
  const second = [say("Half"), wait(more.opened), say(" and more"), wait(rest.opened), say(" and the rest.")];
  const chat = await openChat(t, browser, { turns: [[say(long)], second] });
  const { page, server } = chat;
  await page.context().addInitScript(() => {
    const { put, getAll } = IDBObjectStore.prototype;
    const work: string[] = [];
    Object.assign(window, { work });
    IDBObjectStore.prototype.put = function (value, ...given) {
      const { length } = JSON.stringify(value);
      const isSmall = length < 1_000 && "operation" in value;
      if (this.name === "conversations") work.push("tree" in value ? "all" : isSmall ? value.operation.type : "other");
      return put.call(this, value, ...given);
    };
    IDBObjectStore.prototype.getAll = function (...given) {
      if (this.name === "summaries") work.push("list");
      return getAll.apply(this, given);
    };
  });
  const worked = (it: Page, pattern: RegExp) =>
    it.waitForFunction((source) => new RegExp(source).test(String(Reflect.get(window, "work"))), pattern.source);
  await page.reload();
  await chat.say("One");
  await chat.answered();
  await chat.say("Two");
  await chat.replies.getByText("Half").waitFor();
  // The list is read again because of the question, before or after the first event is stored.
  await worked(page, /all(,list)+,ask(?=.*,list)(?=.*,event)/);
  await page.evaluate(`work.push("more")`);
  more.open();
  // Events within one second are stored together.
  await worked(page, /,more,event$/);
  const other = await page.context().newPage();
  const there = chatIn(other);
  await other.goto(server.url);
  await row(other, "One").click();
  await there.replies.getByText("Half and more").waitFor();
  rest.open();
  await there.replies.getByText("Half and more and the rest.").waitFor();
  await there.answered();
  assert.equal(await there.questions.count(), 2);
  // Only the tab that receives the end first stores it.
  await worked(page, /ask(,list|,event)+,more(,event)+(,all)?(,list)+$/);
  await worked(other, /^(list,)+(event,)*(all,)?list(,list)*$/);
  const ends = await Promise.all(
    [page, other].map((it) => it.evaluate<string[]>("work.slice(work.indexOf('ask') + 1)")),
  );
  assert.equal(ends.flat().filter((it) => it === "all").length, 1);
});

it("where the browser keeps nothing, a new conversation can be taken back for a while", async (t) => {
  const chat = await openChat(t, browser, { turns: answers("Apples") });
  const { page } = chat;
  await page.addInitScript(() => {
    IDBFactory.prototype.open = () => {
      throw new DOMException("forbidden", "SecurityError");
    };
  });
  await page.reload();
  await chat.ask("Apples", "Apples!");
  await page.getByText("The browser does not keep this conversation").waitFor();
  await begin(page);
  await chat.greeting.waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await chat.replies.getByText("Apples!").waitFor();
});

/** Edits the first message, which starts another branch. */
async function change(chat: ChatPage, text: string): Promise<void> {
  await chat.page.getByRole("button", { name: "Change this message" }).first().click();
  await chat.edited.fill(text);
  await chat.edited.press("Enter");
  await chat.replies.getByText(`${text}!`).waitFor();
  await chat.answered();
}

test("a conversation has the name that its agent gives it, or else the person; it is exported under it as its branch in sight, and leaves the list when it is gone", async (t) => {
  const names = [undefined, undefined, undefined, "Breakfast", "Lunch"];
  const chat = await openChat(t, browser, {
    agent: {
      instructions({ title }) {
        const name = names.shift();
        if (name) title(name);
        return "Be brief.";
      },
    },
    turns: answers("Which?", "What? A/B", "Bread", "Toast", "Soup"),
  });
  const { page } = chat;
  await chat.ask("Which?", "Which?!");
  await change(chat, "What? A/B");
  await talk(chat, "Bread");
  await chat.ask("Toast", "Toast!");
  await row(page, "Breakfast").press("F2");
  await page.keyboard.type("Mine");
  await page.keyboard.press("Enter");
  await chat.ask("Soup", "Soup!");
  await row(page, "Mine").press("F2");
  await page.keyboard.press("Delete");
  await page.keyboard.press("Enter");
  await row(page, "Lunch").waitFor();
  const one = page.getByRole("listitem").filter({ has: row(page, "A/B") });
  await one.getByRole("button", { name: "Options for" }).click();
  const download = page.waitForEvent("download");
  await one.getByRole("button", { name: "Export" }).click();
  assert.equal((await download).suggestedFilename(), "What A B.md");
  const path = await (await download).path();
  const exported = await readFile(path, "utf8");
  assert.match(exported, /What\? A\/B!/);
  assert.doesNotMatch(exported, /Which/);
  await one.getByRole("button", { name: "Options for" }).click();
  // Clicks as soon as the row is deleted, before a reload of the list removes the button.
  await one.getByRole("button", { name: "Export" }).evaluate(
    (button: HTMLElement, name) =>
      new Promise<void>((resolve) => {
        const opening = indexedDB.open(name);
        opening.onsuccess = () => {
          const change = opening.result.transaction(["conversations", "summaries"], "readwrite");
          const reading = change.objectStore("conversations").getAll();
          reading.onsuccess = () => {
            const { id } = reading.result.find(({ tree }) => tree && tree[0].text !== "Bread");
            for (const name of ["conversations", "summaries"]) change.objectStore(name).delete(id);
          };
          change.oncomplete = () => {
            opening.result.close();
            button.click();
            resolve();
          };
        };
      }),
    await keptName(page),
  );
  await row(page, "A/B").waitFor({ state: "detached" });
});

test("a row is renamed, deleted and brought back by the keyboard, and everything can be forgotten", async (t) => {
  const chat = await openChat(t, browser, { turns: answers("Apples", "Bread", "Cheese") });
  const { page } = chat;
  await chat.ask("Apples", "Apples!");
  await talk(chat, "Bread");
  await begin(page);
  await chat.greeting.waitFor();
  await row(page, "Apples").focus();
  await page.keyboard.press("ArrowUp");
  await page.clock.setFixedTime(Date.now() + 86_400_000);
  await page.keyboard.press("F2");
  await page.keyboard.type("Bak");
  // A row of another day is inserted before it.
  await page.locator("agent-chat").evaluate((it) => (it as AgentChat).send("Cheese"));
  await row(page, "Cheese").waitFor();
  await page.keyboard.type("ing");
  await page.keyboard.press("Enter");
  await row(page, "Baking").waitFor();
  assert.equal(await chat.input.inputValue(), "");
  await row(page, "Baking").press("F2");
  await page.keyboard.type("Bakery");
  await chat.input.click();
  await row(page, "Bakery").waitFor();
  await hasFocus(chat.input, "where it was put");
  await row(page, "Bakery").press("ArrowDown");
  await page.keyboard.press("F2");
  await page.keyboard.type("Never mind");
  await page.keyboard.press("Escape");
  await row(page, "Apples").press("Delete");
  await row(page, "Apples").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo" }).click();
  await row(page, "Apples").waitFor();
  // Deletes the open conversation.
  await row(page, "Cheese").press("Delete");
  await chat.greeting.waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await chat.replies.getByText("Cheese!").waitFor();
  await page.evaluate(fillList(7, 1));
  await page.reload();
  await row(page, "Bakery").waitFor();
  assert.deepEqual(
    (await titles(page)).filter((title) => !/^Number/.test(title)),
    ["Cheese", "Bakery", "Apples"],
  );
  const search = page.getByRole("searchbox");
  await row(page, "Bakery").hover();
  const fills = await Promise.all(
    [row(page, "Bakery"), page.locator("li:has([aria-current])")].map((it) =>
      it.evaluate((box) => getComputedStyle(box).backgroundColor),
    ),
  );
  assert.notEqual(fills[0], fills[1], "the open one is told from the one that is pointed at");
  const spoken = await listen(page);
  await search.fill("apples");
  await untilHeard(page, spoken, "Results: 1");
  assert.equal(await row(page, "Apples").locator("small").count(), 0, "what the title says is not said again");
  await search.fill("number 3");
  await row(page, "Bakery").waitFor({ state: "detached" });
  await row(page, "Number 3").press("Delete");
  await page.locator(".list-note").waitFor();
  await search.fill("Baker");
  await row(page, "Bakery").waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await search.fill("number 3");
  await row(page, "Number 3").press("Delete");
  await page.locator(".list-note").waitFor();
  await search.fill("");
  await row(page, "Apples").waitFor();
  assert.equal(await isFocused(search), true, "it stays as long as somebody writes there");
  await search.blur();
  await search.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Forget everything" }).click();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Forget everything" }).click();
  // The second click of a double click on the previous button must not count.
  await page.getByRole("button", { name: "Delete" }).dispatchEvent("click", { detail: 2 });
  await page.getByRole("button", { name: "Delete" }).click();
  await chat.greeting.waitFor();
  await rows(page).first().waitFor({ state: "detached" });
  await page.reload();
  await chat.greeting.waitFor();
  assert.equal(await rows(page).count(), 0);
});

it("of two hundred conversations the list reads no messages, and finds by title and text; the oldest gives way to a new one", async (t) => {
  const chat = await openChat(t, browser, { turns: answers("Apples", "Cherries", "Bread") });
  const { page } = chat;
  // A Thursday.
  await page.clock.setFixedTime(new Date(2026, 0, 15, 12));
  await chat.ask("Apples", "Apples!");
  await change(chat, "Cherries");
  await row(page, "Cherries").waitFor({ state: "attached" });
  await page.evaluate(fillList(199, 4));
  await page.addInitScript(`{
    const { get, getAll } = IDBObjectStore.prototype;
    window.readIds = [];
    for (const [name, read] of Object.entries({ get, getAll })) {
      IDBObjectStore.prototype[name] = function (...given) {
        const [key] = given;
        if (this.name === "conversations") window.readIds.push(String(key?.lower ?? key).split(" ")[0]);
        return read.apply(this, given);
      };
    }
  }`);
  await page.reload();
  await row(page, "Number 198").waitFor({ state: "attached" });
  await chat.replies.getByText("Cherries!").waitFor();
  assert.equal(await page.evaluate("new Set(window.readIds).size"), 1, "that of the tab");
  /** The heading of each group and the number of its rows. */
  const groups = () =>
    page
      .locator(".list-day")
      .evaluateAll((all) => all.map((it) => [it.textContent, it.nextElementSibling?.children.length]));
  const weeks = [
    ["this week", 48],
    ["last week", 115],
  ];
  assert.deepEqual(await groups(), [["today", 13], ["yesterday", 24], ...weeks]);
  await page.clock.setFixedTime(new Date(2026, 1, 12, 12));
  const spoken = await listen(page);
  const search = page.getByRole("searchbox");
  // Phone keyboards add a space after a word.
  await search.fill("number 19 ");
  await row(page, "Number 20").waitFor({ state: "detached" });
  assert.deepEqual(await groups(), [["January 2026", 10]]);
  await page.evaluate(`{
    const list = document.querySelector("agent-chat").shadowRoot.querySelector(".list-rows");
    window.hadNothing = false;
    const look = () => { window.hadNothing ||= /Nothing found/.test(list.textContent); };
    new MutationObserver(look).observe(list, { childList: true, subtree: true });
  }`);
  await search.fill("PEARS ");
  await page.waitForFunction(
    () => document.querySelector("agent-chat")?.shadowRoot?.querySelectorAll('[part="conversation"]').length === 199,
    undefined,
    // All texts are read, even on a slow machine.
    { timeout: 60_000 },
  );
  assert.equal(await page.evaluate("window.hadNothing"), false, "it is not known before all texts were searched");
  const readOnce = await page.evaluate("window.readIds.length");
  await search.fill("PEARS. They");
  await search.fill("pears");
  await untilHeard(page, spoken, "Results: 199");
  assert.match(
    (await row(page, "Number 0").locator("small").textContent()) ?? "",
    /^… a conversation about pears\.\s+Text 1/,
  );
  assert.equal(await row(page, "Number 0").locator("mark").textContent(), "pears");
  assert.equal(await page.evaluate("window.readIds.length"), readOnce, "another word reads nothing again");
  // Texts in other branches are not found, because the conversation would not show them.
  await search.fill("apples");
  await untilHeard(page, spoken, "Nothing found.");
  await page.getByText("Names and messages were searched.").waitFor();
  await page.getByRole("button", { name: "Show all" }).click();
  await hasFocus(search);
  await row(page, "Number 0").waitFor();
  await search.fill("(pears).*");
  await untilHeard(page, spoken, "Nothing found.");
  await search.fill("");
  await talk(chat, "Bread");
  await page.getByText("The oldest conversation was deleted to make room.").waitFor();
  await row(page, "Number 198").waitFor({ state: "detached" });
  assert.equal(await rows(page).count(), 200);
});

/** Limits the storage to so many more characters. */
const limitRoom = async (page: Page, chars: number): Promise<void> =>
  page.evaluate(`(async () => {
    const opening = indexedDB.open("${await keptName(page)}");
    const database = await new Promise((resolve) => { opening.onsuccess = () => resolve(opening.result); });
    const reading = database.transaction("conversations").objectStore("conversations").getAll();
    await new Promise((resolve) => { reading.onsuccess = resolve; });
    database.close();
    const sizeOf = (value) => JSON.stringify(value).length;
    const sizes = new Map(reading.result.map((it) => [it.id, sizeOf(it)]));
    const sum = () => [...sizes.values()].reduce((all, size) => all + size, 0);
    const limit = sum() + ${chars};
    const { put, delete: remove } = IDBObjectStore.prototype;
    IDBObjectStore.prototype.put = function (value) {
      if (this.name === "conversations") {
        if (sum() - (sizes.get(value.id) ?? 0) + sizeOf(value) > limit) throw new DOMException("", "QuotaExceededError");
        sizes.set(value.id, sizeOf(value));
      }
      return put.call(this, value);
    };
    IDBObjectStore.prototype.delete = function (key) {
      if (this.name === "conversations") sizes.delete(key.lower ?? key);
      return remove.call(this, key);
    };
  })()`);

it("where the browser has no more room, the oldest conversations go before anything of the one in sight, and the list says so", async (t) => {
  const long = "Pears. ".repeat(40_000).trim();
  const chat = await openChat(t, browser, { turns: [...answers("Apples"), [say(long)]] });
  const { page } = chat;
  await chat.ask("Apples", "Apples!");
  await page.evaluate(fillList(3, 4, 100_000));
  await page.reload();
  await row(page, "Number 2").waitFor({ state: "attached" });
  await limitRoom(page, 250_000);
  await chat.say("Tell me of pears");
  await chat.answered(2);
  await page.getByText("The oldest conversation was deleted to make room.").waitFor({ state: "attached" });
  await row(page, "Number 2").waitFor({ state: "detached" });
  await row(page, "Number 1").waitFor({ state: "attached" });
  await page.reload();
  await chat.replies.nth(1).waitFor();
  await chat.questions.first().getByText("Apples").waitFor();
  assert.equal((await shown(chat.replies.nth(1).locator('[part="markdown"]'))).length, long.length);
});

it("the list gets its room beside the text in small steps, and at once where no motion is wanted", async (t) => {
  const chat = await openChat(t, browser, {
    turns: answers("Apples", "Bread", "Cherries"),
    browser: { reducedMotion: "no-preference" },
  });
  const { page } = chat;
  /** The positions of the text field in all frames until the list is shown. */
  const places = () =>
    page.evaluate(async () => {
      // Starts synchronously, so that it begins before the next key press.
      const root = document.querySelector("agent-chat")?.shadowRoot;
      const all = new Set<number>();
      for (let still = 0; still < 20; still = root?.querySelector(".is-listed") ? still + 1 : 0) {
        all.add(Math.round(root?.querySelector("textarea")?.getBoundingClientRect().x ?? 0));
        await new Promise(requestAnimationFrame);
      }
      return [...all];
    });
  await chat.ask("Apples", "Apples!");
  const [stepwise] = await Promise.all([places(), begin(page)]);
  assert.ok(stepwise.length > 2, String(stepwise));
  assert.equal((stepwise.at(-1) ?? 0) - (stepwise[0] ?? 0), 136);
  await page.getByRole("button", { name: "Forget everything" }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  await rows(page).first().waitFor({ state: "detached" });
  await page.emulateMedia({ reducedMotion: "reduce" });
  await chat.ask("Bread", "Bread!");
  const [atOnce] = await Promise.all([places(), begin(page)]);
  assert.equal(atOnce.length, 2, String(atOnce));
});

test("on a phone the list lies over the chat, and closes with a request to go back, Escape, its button, a press beside it and a choice", async (t) => {
  const chat = await openChat(t, browser, {
    turns: answers("Apples", "Bread"),
    browser: { ...PHONE, reducedMotion: "reduce" },
  });
  const { page } = chat;
  await chat.ask("Apples", "Apples!");
  await talk(chat, "Bread");
  await page.evaluate(fillList(30, 1));
  await page.reload();
  const list = page.getByRole("navigation", { name: "Conversations" });
  const opener = page.getByRole("button", { name: "Conversations" });
  const open = async () => {
    await opener.tap();
    await list.waitFor();
  };
  const closed = async () => {
    await list.waitFor({ state: "hidden" });
    await page.waitForFunction(
      (element) => (element.getRootNode() as ShadowRoot).activeElement === element,
      await opener.elementHandle(),
    );
  };
  await open();
  await page.waitForFunction(
    (element) => (element.getRootNode() as ShadowRoot).activeElement === element,
    await list.getByRole("button", { name: "New conversation" }).elementHandle(),
  );
  await rows(page).nth(31).waitFor({ state: "attached" });
  assert.deepEqual(await axeFindings(page), []);
  const heights = await list
    .locator("button:visible, input:visible")
    .evaluateAll((all) =>
      all.map((it) => it.getBoundingClientRect()).map(({ width, height }) => Math.min(width, height)),
    );
  assert.ok(heights.length > 12 && heights.every((height) => height >= 44), String(heights));
  const device = await page.context().newCDPSession(page);
  for (const [insets, padding] of [
    [{ top: 47, bottom: 34, left: 20 }, "55px 42px 28px"],
    [{}, "8px 8px 8px"],
  ] as const) {
    await device.send("Emulation.setSafeAreaInsetsOverride", { insets });
    // The list keeps clear of a notch at the top and a bar at the bottom.
    await page.waitForFunction(
      ([element, expected]) => {
        const { paddingTop, paddingBottom, paddingLeft } = getComputedStyle(element as unknown as Element);
        return `${paddingTop} ${paddingBottom} ${paddingLeft}` === expected;
      },
      [await list.elementHandle(), padding] as const,
    );
  }
  const spoken = await listen(page);
  await page.getByRole("searchbox").fill("nothing like this");
  await untilHeard(page, spoken, "Nothing found.");
  await page.getByRole("searchbox").fill("number 3");
  await untilHeard(page, spoken, "Results: 1");
  await page.keyboard.press("Escape");
  await closed();
  await open();
  await row(page, "Bread").press("Delete");
  await list.getByRole("button", { name: "Undo" }).press("Enter");
  await row(page, "Bread").and(page.locator(":focus")).waitFor();
  // If nothing has the focus, the browser sends the close request, as for Android's gesture.
  await list.getByRole("button", { name: "New conversation" }).evaluate((button) => button.blur());
  await page.keyboard.press("Escape");
  await closed();
  await open();
  await page.keyboard.press("Escape");
  await closed();
  await open();
  await page.getByRole("button", { name: "Close the list" }).tap();
  await closed();
  const size = page.viewportSize();
  assert.ok(size);
  await page.setViewportSize({ ...size, width: 700 });
  await open();
  await page.touchscreen.tap(600, 300);
  await closed();
  await page.setViewportSize(size);
  await open();
  await row(page, "Apples").tap();
  await chat.replies.getByText("Apples!").waitFor();
  await list.waitFor({ state: "hidden" });
  assert.equal(await isFocused(chat.input), false, "whose keyboard would cover the conversation");
});

it("a phone held across has room to rename, and what another tab forgets leaves no sheet without rows", async (t) => {
  const chat = await openChat(t, browser, { turns: answers("Apples"), browser: PHONE });
  const { page, server } = chat;
  await chat.ask("Apples", "Apples!");
  await openList(page);
  await page.setViewportSize({ width: 844, height: 200 });
  await page.getByRole("button", { name: "Options for “Apples”" }).tap();
  await page.getByRole("button", { name: "Rename" }).tap();
  const field = page.getByRole("textbox", { name: "Rename" });
  await page.waitForFunction(
    (element) => {
      const { top, bottom } = (element as Element).getBoundingClientRect();
      return top >= 0 && bottom <= innerHeight && bottom - top >= 44;
    },
    await field.elementHandle(),
  );
  await field.fill("Pears");
  await field.press("Enter");
  // Wide enough for a column, which needs at least one other conversation.
  await page.setViewportSize({ width: 932, height: 430 });
  await page.getByRole("navigation", { name: "Conversations" }).waitFor({ state: "hidden" });
  await openList(page);
  const other = await page.context().newPage();
  await other.goto(server.url);
  await openList(other);
  await other.getByRole("button", { name: "Forget everything" }).tap();
  await other.getByRole("button", { name: "Delete" }).tap();
  await page.getByRole("navigation", { name: "Conversations" }).waitFor({ state: "hidden" });
  await chat.input.fill("Still there");
});

test("in a site's panel conversations are listed if the script says so, and an Escape closes the list alone", async (t) => {
  const { page, ...chat } = await visit(t, browser, { turns: answers("Apples"), script: "data-conversations" });
  await button(page).click();
  await chat.ask("Apples", "Apples!");
  await openList(page);
  await row(page, "Apples").waitFor();
  await page.keyboard.press("Escape");
  await row(page, "Apples").waitFor({ state: "hidden" });
  await chat.input.waitFor();
  await begin(page);
  await chat.greeting.waitFor();
  await page.reload();
  await openList(page);
  await row(page, "Apples").click();
  await chat.replies.getByText("Apples!").waitFor();
});
