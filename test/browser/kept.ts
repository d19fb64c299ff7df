/** Reads, changes and delays the stored data of a tab's chats from outside. */

import type { Page } from "playwright-core";
import { within } from "../support/deadline.ts";

/** Code for the page, as text because function names do not survive there. */
const TOOLS = `
  const settled = (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const TABLE = "conversations";
  const nameOf = async () => (await indexedDB.databases()).find(({ name }) => name.startsWith("agent-chat-"))?.name;
  const open = async () => {
    const name = await nameOf();
    return name && settled(indexedDB.open(name));
  };
  const all = async () => {
    const database = await open();
    if (!database) return [];
    const rows = settled(database.transaction(TABLE).objectStore(TABLE).getAll());
    database.close();
    return rows;
  };
  const replace = async (rows) => {
    const database = await open();
    const change = database.transaction([TABLE, "summaries"], "readwrite");
    change.objectStore(TABLE).clear();
    for (const row of rows) change.objectStore(TABLE).put(row);
    const summaries = change.objectStore("summaries");
    for (const summary of await settled(summaries.getAll())) {
      const { clock } = rows.find(({ id }) => id === summary.id) ?? {};
      if (clock === undefined) summaries.delete(summary.id);
      else summaries.put({ ...summary, clock });
    }
    await new Promise((resolve) => { change.oncomplete = resolve; });
    database.close();
  };
`;

const run = <Result>(page: Page, code: string): Promise<Result> =>
  page.evaluate(`(async () => { ${TOOLS} ${code} })()`);

/** Name of the database; absent before anything is kept. */
export const keptName = (page: Page): Promise<string> => run(page, "return nameOf();");

/** All stored data of the tab, as a text. */
export const kept = (page: Page): Promise<string> =>
  run(page, "return JSON.stringify([Object.entries(sessionStorage), await all()]);");

/** Waits until a matching text is stored: databases are written a moment after the screen. */
export const untilKept = (page: Page, text: RegExp): Promise<void> =>
  within(untilIs(page, text, true), `${text} in what is kept`);

/** Waits until no matching text is stored. */
export const untilForgotten = (page: Page, text: RegExp): Promise<void> =>
  within(untilIs(page, text, false), `the end of ${text} in what is kept`);

async function untilIs(page: Page, text: RegExp, isKept: boolean): Promise<void> {
  while (text.test(await kept(page)) !== isKept) await page.evaluate(() => new Promise(requestAnimationFrame));
}

/** Simulates leaving the page for another one of the same tab, and saves the stored data under a name. */
export const leave = (page: Page, name: string): Promise<void> =>
  run(
    page,
    `window.dispatchEvent(new PageTransitionEvent("pagehide", { persisted: true }));
    const opening = indexedDB.open("copies");
    opening.onupgradeneeded = () => opening.result.createObjectStore("copies");
    const copies = await settled(opening);
    const copy = { rows: await all(), entries: Object.entries(sessionStorage) };
    await settled(copies.transaction("copies", "readwrite").objectStore("copies").put(copy, "${name}"));
    copies.close();`,
  );

/** Simulates going back to the page, after another page has stored what was saved under `name`, or nothing. */
export const goBack = (page: Page, name?: string): Promise<void> =>
  run(
    page,
    `const copies = await settled(indexedDB.open("copies"));
    const copy = await settled(copies.transaction("copies").objectStore("copies").get("${name}"));
    copies.close();
    await replace(copy?.rows ?? []);
    sessionStorage.clear();
    for (const [key, value] of copy?.entries ?? []) sessionStorage.setItem(key, value);
    window.dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));`,
  );

/** Blocks all storing and reading until the returned function is called. */
export async function holdStore(page: Page): Promise<() => Promise<unknown>> {
  await run(
    page,
    `const database = await open();
    const store = database.transaction(TABLE, "readwrite").objectStore(TABLE);
    const hold = () => {
      store.get("held").onsuccess = () => (window.storeIsFree ? database.close() : hold());
    };
    hold();`,
  );
  return () => page.evaluate("window.storeIsFree = true");
}

/** In the next page and its frames, stored data are unavailable until the returned function is called. */
export async function holdKept(page: Page): Promise<() => Promise<void>> {
  const name = await keptName(page);
  await page.addInitScript(`
    const isFree = () => localStorage.getItem("test-kept-is-free") !== null;
    const opening = isFree() ? {} : indexedDB.open("${name}");
    opening.onsuccess = () => {
      const store = opening.result.transaction("conversations", "readwrite").objectStore("conversations");
      const hold = () => {
        store.get("held").onsuccess = () => (isFree() ? opening.result.close() : hold());
      };
      hold();
    };
  `);
  return () => page.evaluate(() => localStorage.setItem("test-kept-is-free", "yes"));
}

/** Code that stores `count` more conversations, each with so many messages of so many characters. */
export const fillList = (count: number, messages: number, chars = 0): string =>
  `(async () => {
    const settled = (request) => new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
    const { name } = (await indexedDB.databases()).find((it) => it.name.startsWith("agent-chat-"));
    const database = await settled(indexedDB.open(name));
    const change = database.transaction(["conversations", "summaries"], "readwrite");
    const [rows, summaries] = [change.objectStore("conversations"), change.objectStore("summaries")];
    const [row] = await settled(rows.getAll());
    const [summary] = await settled(summaries.getAll());
    const tree = Array.from({ length: ${messages} }, (_, index) => {
      const [id, parent] = ["m" + (index + 1), index > 0 ? "m" + index : undefined];
      const text = ("Text " + index + " of a conversation about pears.").padEnd(${chars}, " They are green.");
      return index % 2 === 0
        ? { role: "user", id, parent, text, files: [] }
        : { role: "assistant", id, parent, blocks: [{ type: "text", text }], status: "done" };
    });
    const states = {};
    for (const [index, { id, text, blocks }] of tree.entries()) {
      const content = text ?? blocks[0].text;
      if (blocks) states[id] = { rest: {}, from: index - 1, added: [{ role: "user", content }, { role: "assistant", content }] };
    }
    const size = JSON.stringify([tree, states]).length;
    for (let index = 0; index < ${count}; index += 1) {
      const [id, updatedAt] = ["filled" + index, summary.updatedAt - (index + 1) * 3_600_000];
      rows.put({ ...row, id, updatedAt, tree, states, head: tree.at(-1).id });
      summaries.put({ ...summary, id, updatedAt, size, title: "Number " + index });
    }
    await new Promise((resolve) => { change.oncomplete = resolve; });
    database.close();
  })()`;
