/** A long list: its items stand in groups, and it looks, reads and behaves as any list. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { Locator } from "playwright-core";
import { type ChatPage, openChat } from "../browser/chat-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { say } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

/** An ordered list that does not begin at one, loose, tight, of tasks, and with lists in its items. */
const LISTS = {
  "an ordered list": (index: number) => `${index + 41}. item ${index} with *emphasis*\n`,
  "a loose list": (index: number) => `- item ${index}\n\n  and more\n\n`,
  "a list of tasks": (index: number) => `- [${index % 2 ? "x" : " "}] item ${index}\n`,
  "a list of lists": (index: number) => `- item ${index}\n  - below\n  - it\n`,
};

const ITEMS = 100;

async function openList(t: TestContext, item: (index: number) => string): Promise<{ chat: ChatPage; list: Locator }> {
  const text = Array.from({ length: ITEMS }, (_, index) => item(index)).join("");
  const chat = await openChat(t, browser, { turns: [[say(text)]] });
  await chat.say("Show me");
  await chat.answered();
  const list = chat.answer.locator("> ul, > ol");
  await list
    .getByText(`item ${ITEMS - 1}`)
    .first()
    .waitFor();
  return { chat, list };
}

/** Where each element of a list is, and what can be selected of it. */
const layoutOf = (list: Locator) =>
  list.evaluate((it) => {
    const { top, left } = it.getBoundingClientRect();
    getSelection()?.selectAllChildren(it);
    const selected = String(getSelection());
    getSelection()?.removeAllRanges();
    return {
      boxes: [...it.querySelectorAll("li, p, input, ul, em")].map((node) => {
        const box = node.getBoundingClientRect();
        return [box.top - top, box.left - left, box.width, box.height].map(Math.round);
      }),
      selected,
      shown: (it as HTMLElement).innerText,
    };
  });

/** What a screen reader is told of the list: role and name of all that is not left out, numbers, too. */
async function toldOf({ page }: ChatPage): Promise<string[]> {
  const device = await page.context().newCDPSession(page);
  const { nodes } = await device.send("Accessibility.getFullAXTree");
  const told: string[] = [];
  const tell = (id: string | undefined, depth: number) => {
    const node = nodes.find(({ nodeId }) => nodeId === id);
    if (!node || node.role?.value === "InlineTextBox") return;
    if (!node.ignored) told.push(`${depth} ${node.role?.value} ${node.name?.value}`);
    for (const child of node.childIds ?? []) tell(child, node.ignored ? depth : depth + 1);
  };
  tell(nodes.find(({ ignored, role }) => !ignored && role?.value === "list")?.nodeId, 0);
  return told;
}

/** The same list without groups. */
const ungroup = (list: Locator) =>
  list.evaluate((it) => {
    it.removeAttribute("role");
    for (const group of it.querySelectorAll(":scope > div")) group.replaceWith(...group.childNodes);
  });

for (const [name, item] of Object.entries(LISTS)) {
  test(`${name} in groups looks and reads as one without any`, async (t) => {
    const { chat, list } = await openList(t, item);
    assert.equal(await list.locator("> div").count(), 3);
    const [layout, told] = [await layoutOf(list), await toldOf(chat)];
    await ungroup(list);
    assert.deepEqual(await layoutOf(list), layout);
    assert.deepEqual(await toldOf(chat), told);
    assert.equal(told.filter((node) => node.startsWith("1 listitem")).length, ITEMS);
  });
}

test("what grows at the end of a long list is laid out in its group alone", async (t) => {
  const { list } = await openList(t, LISTS["an ordered list"]);
  const contained = await list
    .locator("> div")
    .evaluateAll((groups) => groups.map((group) => [getComputedStyle(group).contain, group.childElementCount]));
  assert.deepEqual(contained, [
    ["layout", 32],
    ["layout", 32],
    ["layout", 4],
  ]);
});

test("a list whose numbers are years has room for them beside its items", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("1998. one\n1999. two\n2000. three")]] });
  await chat.ask("Years", "one\n\ntwo\n\nthree");
  const { room, number } = await chat.page.locator(".markdown ol").evaluate((list) => {
    const item = list.querySelector("li") as Element;
    const pen = document.createElement("canvas").getContext("2d") as CanvasRenderingContext2D;
    pen.font = getComputedStyle(item).font;
    return {
      room: item.getBoundingClientRect().left - list.getBoundingClientRect().left,
      number: pen.measureText("2000. ").width,
    };
  });
  assert.ok(room >= number, `${room} pixels for ${number}`);
});
