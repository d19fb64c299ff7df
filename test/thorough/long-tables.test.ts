/** A long table: what grows at its end changes the layout of nothing above, and looks, reads and behaves as any table. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { ElementHandle, Locator } from "playwright-core";
import { type ChatPage, openChat } from "../browser/chat-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { type Gate, gate } from "../support/deadline.ts";
import { say, wait } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

const HEAD = "| id | Name | Value | Notes |\n|:-:|---|--:|---|\n";
const rows = (from: number, to: number, note = "some **words** that `go` on for a while") =>
  Array.from(
    { length: to - from },
    (_, index) => `| ${from + index} | name ${from + index} | ${index * 7}.5 | ${note} |\n`,
  ).join("");

/** Where something is, in pixels of the table. */
interface Place {
  readonly left: number;
  readonly width: number;
  readonly top: number;
}

/** The cells of some rows, and the table, as they are laid out. */
function layoutOf(table: Locator): Promise<{ height: number; width: number; cells: Place[] }> {
  return table.evaluate((it) => {
    const { rows } = it as HTMLTableElement;
    const { left, top, height, width } = it.getBoundingClientRect();
    const shown = [0, 1, 40, rows.length - 1].flatMap((index) => [...(rows[index]?.cells ?? [])]);
    return {
      height,
      width,
      cells: shown.map((cell) => {
        const place = cell.getBoundingClientRect();
        return { left: place.left - left, width: place.width, top: place.top - top };
      }),
    };
  });
}

/** The same table laid out by the browser's own rules. */
async function ownLayoutOf(table: Locator) {
  await table.evaluate((it) => it.parentElement?.removeAttribute("data-ui-columns"));
  const layout = await layoutOf(table);
  await table.evaluate((it) => it.parentElement?.setAttribute("data-ui-columns", ""));
  return layout;
}

function assertAlike(found: Awaited<ReturnType<typeof layoutOf>>, wanted: Awaited<ReturnType<typeof layoutOf>>): void {
  const numbers = ({ height, width, cells }: typeof found) => [
    height,
    width,
    ...cells.flatMap(({ left, width, top }) => [left, width, top]),
  ];
  const [are, should] = [numbers(found), numbers(wanted)];
  assert.equal(are.length, should.length);
  for (const [index, value] of should.entries()) {
    assert.ok(Math.abs((are[index] ?? 0) - value) < 1, `${JSON.stringify(found)} and not ${JSON.stringify(wanted)}`);
  }
}

/** Waits until the last row has been measured, which is when nothing has come for a while. */
async function fitted(chat: ChatPage, table: Locator): Promise<void> {
  await chat.page.waitForFunction(
    (it) => it.rows[it.rows.length - 1]?.role === "row",
    (await table.elementHandle()) as ElementHandle<HTMLTableElement>,
  );
}

async function openTable(
  t: TestContext,
  first: number,
  rest: readonly string[],
  options: Parameters<typeof openChat>[2] = {},
): Promise<{ chat: ChatPage; table: Locator; gates: readonly Gate[] }> {
  const gates = rest.map(() => gate());
  t.after(() => {
    for (const { open } of gates) open();
  });
  const turn = [
    say(HEAD + rows(1, first + 1)),
    ...rest.flatMap((text, index) => [wait(gates[index]?.opened as Promise<void>), say(text)]),
  ];
  const chat = await openChat(t, browser, {
    turns: [turn],
    browser: { viewport: { width: 800, height: 700 } },
    ...options,
  });
  await chat.say("Show me");
  await chat.answer.getByText(`name ${first}`, { exact: true }).waitFor();
  return { chat, table: chat.answer.locator("table"), gates };
}

const isLong = (table: Locator) => table.page().locator("[data-ui-columns] > table").waitFor();

test("what grows at the end of a long table changes the layout of no row in the bodies above it", async (t) => {
  const { chat, table } = await openTable(t, 100, ["\nThe end."]);
  await isLong(table);
  await fitted(chat, table);
  const before = await layoutOf(table);
  await table.evaluate((it) => {
    const cell = (it as HTMLTableElement).rows[100]?.cells[1];
    if (cell) cell.textContent = "Donaudampfschifffahrtsgesellschaftskapitän";
  });
  const first = ({ cells }: typeof before) => cells.slice(0, 12);
  assert.deepEqual(first(await layoutOf(table)), first(before));
  const own = await ownLayoutOf(table);
  assert.notDeepEqual(first(own), first(before), "a browser's own table is laid out whole");
});

test("a long table has the columns that the browser's own would have, at any width and in both directions", async (t) => {
  const { chat, table, gates } = await openTable(t, 60, [
    rows(61, 120),
    rows(120, 200, `${"a longer note ".repeat(12)}of a Donaudampfschifffahrtsgesellschaftskapitän`),
    "\nThe end.",
  ]);
  assert.equal(await chat.answer.locator("[data-ui-columns]").count(), 0, "a short one is left alone");
  for (const [index, last] of [119, 199].entries()) {
    gates[index]?.open();
    await chat.answer.getByText(`name ${last}`, { exact: true }).waitFor();
    await isLong(table);
    await fitted(chat, table);
    for (const width of [800, 400, 300]) {
      await chat.page.setViewportSize({ width, height: 700 });
      assertAlike(await layoutOf(table), await ownLayoutOf(table));
    }
  }
  await table.evaluate((it) => it.parentElement?.setAttribute("dir", "rtl"));
  assertAlike(await layoutOf(table), await ownLayoutOf(table));
});

test("when a table becomes a long one, nothing moves, a reader at the end stays there, and a selection holds", async (t) => {
  const { chat, table, gates } = await openTable(t, 60, [rows(61, 70), rows(70, 140), "\nThe end."]);
  const before = await layoutOf(table);
  await table.evaluate((it) => {
    const [from, to] = [it.querySelector("td"), (it as HTMLTableElement).rows[40]];
    if (from && to) getSelection()?.setBaseAndExtent(from, 0, to, 1);
  });
  const selected = () => chat.page.evaluate(() => String(getSelection()));
  const text = await selected();
  gates[0]?.open();
  await isLong(table);
  const { cells } = await layoutOf(table);
  for (const [index, { top }] of before.cells.slice(0, 12).entries()) {
    assert.ok(Math.abs((cells[index]?.top ?? 0) - top) < 1, JSON.stringify([before.cells, cells]));
  }
  gates[1]?.open();
  await chat.answer.getByText("name 139", { exact: true }).waitFor();
  await fitted(chat, table);
  assert.equal(await selected(), text);
  const fromEnd = await chat.messages.evaluate((box) =>
    Math.round(box.scrollHeight - box.clientHeight - box.scrollTop),
  );
  assert.ok(fromEnd <= 2, `${fromEnd} pixels from the end`);
});

test("a long table is one to screen readers, with all its rows and cells, and on paper a table as any", async (t) => {
  const { chat, table, gates } = await openTable(t, 150, ["\nThe end."]);
  await isLong(table);
  gates[0]?.open();
  await chat.answer.getByText("The end.").waitFor();
  await fitted(chat, table);
  const device = await chat.page.context().newCDPSession(chat.page);
  const { nodes } = await device.send("Accessibility.getFullAXTree");
  const count = (role: string) => nodes.filter((node) => node.role?.value === role).length;
  assert.deepEqual(["table", "rowgroup", "row", "columnheader", "cell"].map(count), [1, 6, 151, 4, 600]);
  const display = () =>
    table.evaluate((it) =>
      [it, ...it.querySelectorAll("tbody, tbody tr, td")].slice(0, 4).map((node) => getComputedStyle(node).display),
    );
  assert.deepEqual(await display(), ["block", "table", "table-row", "table-cell"]);
  await chat.page.emulateMedia({ media: "print" });
  assert.deepEqual(await display(), ["table", "table-row-group", "table-row", "table-cell"]);
});

test("a long table that is restored is what it was when it streamed in", async (t) => {
  const { chat, table, gates } = await openTable(t, 100, ["\nThe end."]);
  await isLong(table);
  gates[0]?.open();
  await chat.answer.getByText("The end.").waitFor();
  await chat.send.waitFor();
  await fitted(chat, table);
  const streamed = await table.evaluate((it) => it.outerHTML);
  await chat.page.reload();
  await isLong(table);
  await fitted(chat, table);
  assert.equal(await table.evaluate((it) => it.outerHTML), streamed);
});

test("what keeps a long table quick is asked for again when it could not be had", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say(`${HEAD}${rows(0, 200)}`)]],
    expectedComplaints: /ERR_FAILED/,
  });
  await chat.page.route("**/chunks/long-table-*", (route) => route.abort(), { times: 1 });
  await chat.say("Show me");
  await chat.page.locator(".table[data-ui-columns]").waitFor();
});
