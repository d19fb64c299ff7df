import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Locator } from "playwright-core";
import { launchBrowser } from "../support/browser.ts";
import { type Gate, gate, within } from "../support/deadline.ts";
import { type Step, say, type Turn, wait } from "../support/scripted-provider.ts";
import { type ChatPage, openChat } from "./chat-page.ts";

const browser = await launchBrowser({ after });

const PARAGRAPHS = Array.from({ length: 30 }, (_, index) => `Paragraph ${index + 1}.\n\n`);

/** A long answer that stops in the middle until the gate opens. */
function longAnswer(middle: Gate): Step[] {
  return [...PARAGRAPHS.map(say), wait(middle.opened), ...PARAGRAPHS.map(say), say("The end.")];
}

async function openLong(t: Parameters<typeof openChat>[0], middle: Gate): Promise<ChatPage> {
  const chat = await openChat(t, browser, {
    turns: [longAnswer(middle), [say("Second answer.")]],
    browser: { viewport: { width: 800, height: 500 } },
  });
  await chat.say("Long");
  await chat.replies.getByText("Paragraph 30.").first().waitFor();
  return chat;
}

const position = (scroller: Locator) => scroller.evaluate((box) => box.scrollTop);
const fromEnd = (scroller: Locator) =>
  scroller.evaluate((box) => Math.round(box.scrollHeight - box.clientHeight - box.scrollTop));

/** Turns the wheel over the transcript and waits until that has moved it. */
async function wheel(chat: ChatPage, pixels: number): Promise<void> {
  const before = await position(chat.messages);
  await chat.messages.hover();
  await chat.page.mouse.wheel(0, pixels);
  const scroller = await chat.messages.elementHandle();
  await chat.page.waitForFunction(([box, top]) => box?.scrollTop !== top, [
    scroller,
    before,
  ] as const);
}

test("the newest text stays in view while the reader is at the end", async (t) => {
  const middle = gate();
  const chat = await openLong(t, middle);
  assert.ok((await fromEnd(chat.messages)) <= 2);
  middle.open();
  await chat.replies.getByText("The end.").waitFor();
  assert.ok((await fromEnd(chat.messages)) <= 2);
  assert.equal(await chat.page.locator('[part="jump"]').count(), 0);
});

test("the end stays in view when a picture above it has come and the browser scrolls to hold the place", async (t) => {
  const chat = await openLong(t, gate());
  await chat.messages.evaluate((box) => {
    const column = box.firstElementChild as Element;
    column.before(Object.assign(document.createElement("div"), { textContent: "above" }));
    (column.previousElementSibling as HTMLElement).style.height = "300px";
    // Read, so that the browser scrolls; the rest is there before it tells of that.
    const before = box.scrollTop;
    column.append(Object.assign(document.createElement("div"), { textContent: "below" }));
    (column.lastElementChild as HTMLElement).style.height = "100px";
    return before;
  });
  const scroller = await chat.messages.elementHandle();
  await chat.page.waitForFunction(
    (box) => box && box.scrollHeight - box.clientHeight - box.scrollTop < 2,
    scroller,
  );
  assert.equal(await chat.page.locator('[part="jump"]').count(), 0);
});

test("a reader who has scrolled up is left in peace, and jumps back with one click", async (t) => {
  const middle = gate();
  const chat = await openLong(t, middle);
  await wheel(chat, -200);
  const place = await position(chat.messages);
  middle.open();
  await chat.send.waitFor();
  assert.equal(await chat.replies.getByText("The end.").count(), 1);
  assert.equal(await position(chat.messages), place, "the text did not move");
  await chat.page.getByRole("button", { name: "Jump to latest" }).click();
  await chat.page.locator('[part="jump"]').waitFor({ state: "detached" });
  assert.ok((await fromEnd(chat.messages)) <= 2);
});

test("scrolling back to the end by hand follows again", async (t) => {
  const middle = gate();
  const chat = await openLong(t, middle);
  await wheel(chat, -200);
  await chat.page.locator('[part="jump"]').waitFor();
  await wheel(chat, 1000);
  await chat.page.locator('[part="jump"]').waitFor({ state: "detached" });
  middle.open();
  await chat.send.waitFor();
  assert.ok((await fromEnd(chat.messages)) <= 2);
});

test("the arrow keys leave the end as the wheel does", async (t) => {
  const middle = gate();
  const chat = await openLong(t, middle);
  await chat.messages.focus();
  await chat.page.keyboard.press("PageUp");
  await chat.page.locator('[part="jump"]').waitFor();
  const place = await position(chat.messages);
  middle.open();
  await chat.send.waitFor();
  assert.equal(await position(chat.messages), place);
});

/** An answer of 240 tokens a second, until the test has seen enough. */
function* endless(enough: { yet: boolean }): Turn {
  yield say(PARAGRAPHS.join(""));
  while (!enough.yet) {
    yield say("some more words ");
    yield wait(new Promise((resolve) => setTimeout(resolve, 4)));
  }
}

/** What was pushed goes on by itself for a moment, and a wheel's turn arrives a moment later. */
async function untilStill({ messages }: ChatPage): Promise<void> {
  await messages.evaluate(async (scroller) => {
    let place = scroller.scrollTop;
    for (let frame = 0, still = 0; still < 20; frame++) {
      if (frame === 1_000) throw new Error("the transcript still moves by itself");
      await new Promise(requestAnimationFrame);
      still = scroller.scrollTop === place ? still + 1 : 0;
      place = scroller.scrollTop;
    }
  });
}

/** What a reader does to see what is further up. */
const GESTURES: Record<string, (chat: ChatPage, x: number, y: number) => Promise<void>> = {
  "the wheel": async ({ page }) => page.mouse.wheel(0, -120),
  "the key": async ({ page, messages }) => {
    await messages.focus();
    await page.keyboard.press("ArrowUp");
  },
  "a finger": async ({ page }, x, y) => {
    const device = await page.context().newCDPSession(page);
    const touch = (type: "touchStart" | "touchMove" | "touchEnd", at: number) =>
      device.send("Input.dispatchTouchEvent", {
        type,
        touchPoints: type === "touchEnd" ? [] : [{ x, y: at }],
      });
    await touch("touchStart", y);
    for (let moved = 0; moved <= 60; moved += 10) await touch("touchMove", y + moved);
    await touch("touchEnd", y + 60);
  },
  "a selection": async ({ page }, x, y) => {
    await page.mouse.down();
    await page.mouse.move(x + 40, y - 30, { steps: 4 });
  },
};

for (const [name, gesture] of Object.entries(GESTURES)) {
  test(`with ${name} upward a reader stays where he is, however fast the answer comes`, async (t) => {
    const enough = { yet: false };
    t.after(() => {
      enough.yet = true;
    });
    const chat = await openChat(t, browser, {
      turns: [endless(enough), [say("Second answer.")]],
      browser: { viewport: { width: 800, height: 500 }, hasTouch: name === "a finger" },
    });
    await chat.say("Long");
    await chat.replies.getByText("some more words").waitFor();
    const box = await chat.messages.boundingBox();
    assert.ok(box);
    const [x, y] = [box.x + 60, box.y + box.height / 2];
    await chat.page.mouse.move(x, y);
    await gesture(chat, x, y);
    await chat.page.locator('[part="jump"]').waitFor();
    await untilStill(chat);
    // The text under the reader's eyes, in each frame in which the answer has grown.
    const watched = chat.messages.evaluate(async (scroller) => {
      const root = scroller.getRootNode() as ShadowRoot;
      const text = root.querySelector('[part="markdown"] p:nth-child(20)') as Element;
      const start = text.getBoundingClientRect().top;
      const end = scroller.textContent.length + 4_000;
      let most = 0;
      while (scroller.textContent.length < end) {
        await new Promise(requestAnimationFrame);
        most = Math.max(most, Math.abs(text.getBoundingClientRect().top - start));
      }
      return most;
    });
    const moved = await within(watched, "the growth of the answer", 30_000);
    assert.ok(moved <= 2, `moved by ${moved} px`);
    if (name === "a selection") {
      assert.notEqual(await chat.page.evaluate(() => String(getSelection())), "");
      await chat.page.mouse.up();
    }
    enough.yet = true;
    await chat.send.waitFor();
    await chat.ask("Next", "Second answer.");
    assert.ok((await fromEnd(chat.messages)) <= 2, "sending follows again");
  });
}

test("sending a message shows it, wherever the reader was", async (t) => {
  const middle = gate();
  middle.open();
  const chat = await openLong(t, middle);
  await chat.send.waitFor();
  await wheel(chat, -1000);
  await chat.ask("Next", "Second answer.");
  assert.ok((await fromEnd(chat.messages)) <= 2);
});

test("opening a long thinking row holds its place under the pointer", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [
      [{ type: "thinking", delta: "A thought.\n".repeat(60) }, ...PARAGRAPHS.slice(0, 8).map(say)],
    ],
    browser: { viewport: { width: 800, height: 500 } },
  });
  await chat.say("Think");
  await chat.replies.getByText("Paragraph 8.").waitFor();
  await chat.send.waitFor();
  const row = chat.thinking.getByRole("button");
  await row.scrollIntoViewIfNeeded();
  const before = (await row.boundingBox())?.y;
  await row.click();
  await chat.thinking.getByText("A thought.").waitFor();
  const after = (await row.boundingBox())?.y;
  assert.ok(Math.abs((after ?? 0) - (before ?? 1e9)) <= 2, `moved from ${before} to ${after}`);
});

test("only the transcript scrolls, also when the browser brings something into view", async (t) => {
  const middle = gate();
  middle.open();
  const chat = await openLong(t, middle);
  await chat.send.waitFor();
  await chat.ask("Next", "Second answer.");
  // As finding text in the page does.
  await chat.replies
    .getByText("Paragraph 9.")
    .first()
    .evaluate((text) => text.scrollIntoView());
  const header = await chat.page.locator('[part="header"]').boundingBox();
  assert.equal(header?.y, 0, "the header stays where it is");
  const composer = await chat.input.boundingBox();
  assert.ok(composer && composer.y > 400, "and so does the text field");
});
