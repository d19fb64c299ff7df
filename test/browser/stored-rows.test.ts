/** Conversations stored by earlier builds (`test/fixtures/stored`): each is shown unchanged and continues. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, type TestContext } from "node:test";
import type { Page } from "playwright-core";
import { PAGE_SERVER, type StoredRows } from "../fixtures/stored/agents.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { it, test } from "../support/rows.ts";
import { say } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { chatIn, failOnComplaints, isDrawn, openRows } from "./chat-page.ts";
import { kept } from "./kept.ts";

const browser = await launchBrowser({ after });

const stored = (name: string) => readFileSync(new URL(`../fixtures/stored/${name}`, import.meta.url), "utf8");
const ROWS = stored("rows.json");
const ROWS_5 = stored("rows-5.json");

/** Restores the stored data, on a page without a chat. */
const PUT = `async ({ database = "agent-chat", version, stores, session }) => {
  const blobOf = (url) => {
    const [, type, data] = /^data:(.*);base64,(.*)$/.exec(url);
    return new Blob([Uint8Array.from(atob(data), (char) => char.charCodeAt(0))], { type });
  };
  const made = ({ file, ...row }) => (file ? { ...row, file: blobOf(file) } : row);
  const opening = indexedDB.open(database, version);
  opening.onupgradeneeded = () => {
    for (const { name, keyPath, indexes } of stores) {
      const store = opening.result.createObjectStore(name, { keyPath });
      for (const [index, path] of indexes) store.createIndex(index, path);
    }
  };
  await new Promise((resolve) => { opening.onsuccess = resolve; });
  const change = opening.result.transaction(stores.map(({ name }) => name), "readwrite");
  for (const { name, rows } of stores) for (const row of rows) change.objectStore(name).put(made(JSON.parse(row)));
  await new Promise((resolve) => { change.oncomplete = resolve; });
  opening.result.close();
  for (const [name, value] of session) sessionStorage.setItem(name, value);
}`;

type Row = Record<string, unknown>;

/** `damages` changes the rows of the first conversations, `summaries` those of the list. */
async function openStored(
  t: TestContext,
  { text = ROWS, user = "", damages = [] as ((row: Row) => Row)[], summaries = [] as Row[] } = {},
) {
  const server = await startServer(t, { ...PAGE_SERVER, turns: Array.from({ length: 3 }, () => [say("Noted.")]) });
  const { page, complaints } = await openPage(t, browser);
  // The run that was in progress no longer exists.
  failOnComplaints(t, complaints, /404/);
  const { stores, session, ...database }: StoredRows = JSON.parse(text.replaceAll("SERVER", server.url));
  const change = (name: string, changes: readonly ((row: Row) => Row)[]) => {
    const { rows = [] } = stores.find((it) => it.name === name) ?? {};
    for (const [index, to] of changes.entries()) rows[index] = JSON.stringify(to(JSON.parse(rows[index] ?? "")));
    return rows;
  };
  const rows = change("conversations", damages);
  change(
    "summaries",
    summaries.map((damage) => (it) => ({ ...it, ...damage })),
  );
  await page.context().addCookies([{ name: "session", value: user, url: server.url }]);
  await page.goto(`${server.url}/health`);
  // The tab's data have no owner, so they would become the user's.
  const tab = user === "" ? session : [];
  await page.evaluate(`(${PUT})(${JSON.stringify({ ...database, stores, session: tab })})`);
  await page.clock.setFixedTime("2026-11-30T12:00:00Z");
  await page.goto(server.url);
  await row(page).first().waitFor();
  return { server, page, chat: chatIn(page), rows, stores };
}

const row = (page: Page, title = "") => page.locator('[part="conversation"]').filter({ hasText: title });
const titles = async (page: Page) => (await row(page).allTextContents()).map((title) => title.trim());

const TITLES = ["Count", "Are you well?", "Hello", "Cancel both", "Railways", "How is it in Oslo?"];

test("conversations of an earlier build are listed and shown as they were, and go on with their states", async (t) => {
  const { server, page, chat } = await openStored(t);
  assert.equal(await chat.input.inputValue(), "Half a thou");
  assert.deepEqual(await titles(page), TITLES);
  const lastAsked = () => JSON.stringify(server.model.asked.at(-1)?.messages);
  const sees = async (...texts: string[]) => {
    for (const text of texts) await chat.messages.getByText(text).first().waitFor();
  };
  const open = async (title: string, ...texts: string[]) => {
    await row(page, title).click();
    await sees(...texts);
  };
  await open("Count", "One, two,", "The connection was lost", "Try again");
  await open("Are you well?", "Some of it", "The model is ill.", "Try again");
  await open("Hello", "Shop", "We open at 9.", "How do you do?");
  await chat.ask("And now?", "Noted.");
  assert.match(lastAsked(), /Hello.*How do you do\?.*And now\?/);
  await open("Cancel both", "Well,", "Cancel it?", "A1", "B2", "This request is no longer valid.");
  await chat.ask("Never mind", "Noted.");
  assert.match(lastAsked(), /Cancel both.*Well,.*A1.*B2.*did not decide.*Never mind/);
  await open("Railways", "Trains?", "Half", "You stopped this answer.");
  await page.locator(".pending-message").getByText("Ships?").waitFor();
  await page.getByRole("button", { name: "Send anyway?" }).click();
  await chat.answered(2);
  assert.match(lastAsked(), /Trains\?.*Half.*Ships\?/);
  await open("Oslo", "Mild in Oslo, too.", "2/2");
  await page.getByRole("button", { name: "Previous" }).first().click();
  await sees("How is it?", "It is mild.", "dot.png", "Still mild.", "no longer knows what is above");
  await page.getByRole("button", { name: "Bad answer", pressed: true }).waitFor();
  await openRows(chat);
  await sees("Hm.", "Get weather", "Lima");
});

test("a user's conversations of an earlier build are there for them alone", async (t) => {
  const { server, page, chat } = await openStored(t, { user: "ada" });
  assert.deepEqual(await titles(page), ["I am Ada"]);
  await row(page, "I am Ada").click();
  await chat.replies.getByText("Hello, Ada.").waitFor();
  await chat.ask("And now?", "Noted.");
  assert.match(JSON.stringify(server.model.asked[0]?.messages), /I am Ada.*Hello, Ada\..*And now\?/);
});

test("conversations that cannot be read say so, stay in the list and in the store as they are, and stop no other", async (t) => {
  const damages = [
    (it: Row) => ({ ...it, version: 6 }),
    (it: Row) => ({ ...it, tree: {} }),
    (it: Row) => ({ ...it, tree: [7] }),
    (it: Row) => ({ ...it, states: { m14: 5 } }),
  ];
  const { page, chat, rows } = await openStored(t, { damages });
  const sentence = page.getByText("This conversation was kept by another version and cannot be shown here.");
  const areKept = async () => {
    const all = await kept(page);
    for (const damaged of rows.slice(0, 4)) assert.ok(all.includes(damaged), damaged);
  };
  for (const title of TITLES.slice(0, 4)) {
    await row(page, title).click();
    await sentence.waitFor();
    assert.equal(await chat.replies.count(), 0);
  }
  await page.reload();
  await sentence.waitFor();
  const refusal = sentence.and(page.locator(".list-foot *"));
  // The second refusal is for the open conversation.
  for (const title of ["Hello", "Cancel both"]) {
    await row(page, title).press("F2");
    await refusal.waitFor({ state: "detached" });
    await page.keyboard.type("Pears");
    await page.keyboard.press("Enter");
    await refusal.waitFor();
  }
  await row(page, "Hello").press("Delete");
  await page.getByText("Conversation deleted.").first().waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await row(page, "Hello").waitFor();
  await areKept();
  await row(page, "Cancel both").click();
  await sentence.waitFor();
  await chat.ask("And now?", "Noted.");
  await row(page, "And now?").waitFor();
  await row(page, "Railways").click();
  await chat.replies.getByText("Half").waitFor();
  await page.reload();
  await chat.replies.getByText("Half").waitFor();
  assert.deepEqual((await titles(page)).toSorted(), [...TITLES, "And now?"].toSorted());
  await areKept();
  await row(page, "And now?").click();
  await chat.replies.getByText("Noted.").waitFor();
});

test("a list with damaged entries is shown, and none of its conversations is deleted because of them", async (t) => {
  const summaries = [
    { size: undefined },
    { size: "60000001", updatedAt: "yesterday" },
    { size: 1e300, title: 7 },
    { updatedAt: null },
    { updatedAt: 1e300, isRunning: 7 },
  ];
  const { page, chat } = await openStored(t, { summaries });
  await row(page, "Oslo").click();
  await chat.replies.getByText("Mild in Oslo, too.").waitFor();
  await chat.ask("And now?", "Noted.");
  await row(page, "Hello").click();
  await chat.replies.getByText("How do you do?").waitFor();
  await chat.ask("And now?", "Noted.");
  await page.reload();
  await row(page, "Hello").waitFor();
  const untitled = TITLES.map((title) => (title === "Cancel both" ? "New conversation" : title));
  assert.deepEqual((await titles(page)).toSorted(), untitled.toSorted());
});

/** The rows in the earlier build's database, opened as that build did. */
const OLDER = `new Promise((resolve) => {
  const opening = indexedDB.open("agent-chat", 4);
  opening.onsuccess = () => {
    const reading = opening.result.transaction("conversations").objectStore("conversations").getAll();
    opening.result.close();
    reading.onsuccess = () => resolve(reading.result.map((row) => JSON.stringify(row)));
  };
})`;

/** Simulates a build that deletes all stores when the version number changes. */
const EMPTY_OLDER = `new Promise((resolve) => {
  const opening = indexedDB.open("agent-chat", 5);
  opening.onupgradeneeded = () => {
    for (const name of opening.result.objectStoreNames) opening.result.deleteObjectStore(name);
  };
  opening.onsuccess = () => resolve(opening.result.close());
})`;

test("an earlier build finds what it has kept as it was, but for what was deleted, and takes nothing from this one", async (t) => {
  const elsewhere = { server: "https://other.example/" };
  const { page, chat, rows } = await openStored(t, { summaries: [{}, elsewhere] });
  const others = TITLES.filter((title) => title !== "Are you well?");
  assert.deepEqual(await titles(page), others, "each server has its own");
  await row(page, "Railways").press("Delete");
  await row(page, "Railways").waitFor({ state: "detached" });
  await row(page, "Hello").click();
  await chat.replies.getByText("How do you do?").waitFor();
  await chat.ask("And now?", "Noted.");
  assert.deepEqual(
    await page.evaluate(OLDER),
    rows.filter((it) => !it.includes("Trains?")),
  );
  await page.evaluate(EMPTY_OLDER);
  await page.reload();
  await chat.replies.getByText("Noted.").waitFor();
  await chat.ask("And then?", "Noted.");
  await page.reload();
  await chat.replies.getByText("Noted.").nth(1).waitFor();
  await row(page).first().waitFor();
  assert.equal((await titles(page)).length, others.length - 1);
});

/** The contents of the previous build's database, without the data of files. */
const before = (page: Page): Promise<Record<string, string[]>> =>
  page.evaluate(`(async () => {
    const settled = (request) => new Promise((resolve) => { request.onsuccess = () => resolve(request.result); });
    const { name } = (await indexedDB.databases()).find((it) => it.name.startsWith("agent-chat-5:"));
    const database = await settled(indexedDB.open(name));
    const all = {};
    for (const table of database.objectStoreNames) {
      const rows = await settled(database.transaction(table).objectStore(table).getAll());
      all[table] = rows.map((row) => (row.file ? row.id : JSON.stringify(row)));
    }
    database.close();
    return all;
  })()`);

test("an answer that came with the build before, what waits for its end, and files are there, and stay as they are for that build", async (t) => {
  const { server, page, chat, stores } = await openStored(t, { text: ROWS_5 });
  assert.equal(await chat.input.inputValue(), "Half a thou");
  assert.deepEqual(await titles(page), ["Count", "I am Bob"]);
  await chat.replies.getByText("One, two,").waitFor();
  await page.getByText("The connection was lost").first().waitFor();
  assert.deepEqual(await page.locator(".pending-text").allInnerTexts(), ["Ships?", "And this?"]);
  await page.locator(".pending-files").getByText("dot.png: no longer here").waitFor();
  const lastAsked = () => JSON.stringify(server.model.asked.at(-1)?.messages);
  await page.getByRole("button", { name: "Send anyway?" }).first().click();
  await chat.answered(2);
  assert.match(lastAsked(), /Ships\?.*And this\?/);
  assert.equal(await page.locator(".pending-message").count(), 0);
  await row(page, "I am Bob").click();
  await isDrawn(chat.questions.getByRole("img", { name: "dot.png" }));
  await chat.questions.getByText("offer.pdf").waitFor();
  await chat.ask("Who am I?", "Noted.");
  assert.match(lastAsked(), /I am Bob.*A dot\..*Who am I\?/);
  const files = stores.flatMap(({ rows }) => rows.map((it): Row => JSON.parse(it))).filter(({ file }) => file);
  assert.equal(files.length, 2);
  for (const { file } of files) assert.ok(lastAsked().includes(`${file}`.replace(/.*,/, "")), "with its files");
  const known = stores.map(({ name, rows }) => {
    const all = rows.map((it): Row => JSON.parse(it));
    return [name, all.map((it) => (it.file ? it.id : JSON.stringify(it)))];
  });
  assert.deepEqual(await before(page), Object.fromEntries(known));
  await row(page, "I am Bob").press("Delete");
  await row(page, "I am Bob").waitFor({ state: "detached" });
  const [id] = `${files[0]?.id}`.split(" ");
  const left = known.map(([name, rows]) => [name, [...(rows ?? [])].filter((it) => !`${it}`.includes(`${id}`))]);
  assert.deepEqual(await before(page), Object.fromEntries(left), "what is deleted is deleted there, too");
});

it("an answer beside its conversation that is damaged takes neither that nor what waits with it", async (t) => {
  const answers = [
    7,
    { role: "assistant" },
    { role: "assistant", id: "m4", blocks: [{ type: "text" }], status: "done" },
  ];
  for (const answer of answers) {
    const same = (it: Row) => it;
    const { page, chat } = await openStored(t, { text: ROWS_5, damages: [same, same, (it) => ({ ...it, answer })] });
    await chat.questions.getByText("Count").waitFor();
    await chat.replies.getByText("One,").waitFor();
    await page.getByText("The connection was lost").first().waitFor();
    assert.equal(await page.getByText("two,").count(), 0);
    assert.equal(await page.locator(".pending-message").count(), 2);
  }
});

it("what the browser fails to change in the list stays as it is, is said, and works as soon as the browser does", async (t) => {
  const { page } = await openStored(t);
  await page.evaluate(`{
    const { transaction } = IDBDatabase.prototype;
    IDBDatabase.prototype.transaction = function (names, mode, ...more) {
      if (window.isBroken && mode === "readwrite") throw new DOMException("It is broken.", "UnknownError");
      return transaction.call(this, names, mode, ...more);
    };
    window.isBroken = true;
  }`);
  const failure = page.getByText("The browser could not do this. Please try again.");
  const fail = async (work: () => Promise<void>) => {
    await work();
    await failure.waitFor();
    assert.deepEqual(await titles(page), TITLES);
    await page.evaluate("window.isBroken = false");
  };
  const remove = () => row(page, "Railways").press("Delete");
  await fail(remove);
  await remove();
  await row(page, "Railways").waitFor({ state: "detached" });
  await page.evaluate("window.isBroken = true");
  await page.getByRole("button", { name: "Undo" }).click();
  await failure.waitFor();
  await page.evaluate("window.isBroken = false");
  await page.getByRole("button", { name: "Undo" }).click();
  await row(page, "Railways").waitFor();
  await page.evaluate("window.isBroken = true");
  await fail(async () => {
    await row(page, "Oslo").press("F2");
    await page.keyboard.type("Weather");
    await page.keyboard.press("Enter");
  });
  await page.evaluate("window.isBroken = true");
  await fail(async () => {
    await page.getByRole("button", { name: "Forget everything" }).click();
    await page.getByRole("button", { name: "Delete" }).click();
  });
});
