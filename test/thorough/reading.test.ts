/** During a fast answer, any gesture to look elsewhere keeps the text that the reader sees in place. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { type ChatPage, hasFocus, isFocused, openChat } from "../browser/chat-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { within } from "../support/deadline.ts";
import { say, type Turn, wait } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

const PARAGRAPHS = Array.from({ length: 30 }, (_, index) => `Paragraph ${index + 1}.\n\n`);

/** An answer of about 240 tokens per second, until the test has seen enough. */
function* endless(enough: { yet: boolean }): Turn {
  yield say(`${PARAGRAPHS.join("")}Far from where the pointer is, there is a [link](https://example.org/).\n\n`);
  while (!enough.yet) {
    yield say("some more words ");
    yield wait(new Promise((resolve) => setTimeout(resolve, 4)));
  }
}

/** Waits until scrolling ends: flings continue for a moment, and wheel events take effect a little later. */
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

/** Gestures with which a reader looks further up. */
const GESTURES: Record<string, (chat: ChatPage, x: number, y: number) => Promise<void>> = {
  "the wheel upward": async ({ page }) => page.mouse.wheel(0, -120),
  "the wheel upward by a pixel at a time": async ({ page, messages }) => {
    for (let moved = 0; moved < 40; moved += 1) {
      const before = await messages.evaluate((scroller) => scroller.textContent.length);
      await page.mouse.wheel(0, -1);
      await messages.evaluate(async (scroller, length) => {
        while (scroller.textContent.length <= length) await new Promise(requestAnimationFrame);
      }, before);
    }
  },
  "the key upward": async ({ page, messages }) => {
    await messages.focus();
    await page.keyboard.press("ArrowUp");
  },
  "a finger upward": async ({ page }, x, y) => {
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
  "a search in the page": async ({ replies }) =>
    replies.getByText("Paragraph 9.").evaluate((text) => text.scrollIntoView({ block: "center" })),
  "the focus on what is in view": async ({ page, input, replies }) => {
    await input.focus();
    const link = replies.getByRole("link");
    while (!(await isFocused(link))) await page.keyboard.press("Shift+Tab");
  },
  "a selection upward": async ({ page }, x, y) => {
    // An existing selection would be dragged.
    await page.evaluate(() => getSelection()?.empty());
    await page.mouse.down();
    await page.mouse.move(x + 40, y - 30, { steps: 4 });
  },
};

/** Maximum movement of the text that the reader sees, over all frames in which the answer grows by 1,500 characters. */
const movement = ({ messages }: ChatPage) =>
  messages.evaluate(async (scroller) => {
    const root = scroller.getRootNode() as ShadowRoot;
    const text = root.querySelector('[part="markdown"] p:nth-child(20)') as Element;
    const start = text.getBoundingClientRect().top;
    const end = scroller.textContent.length + 1_500;
    let most = 0;
    while (scroller.textContent.length < end) {
      await new Promise(requestAnimationFrame);
      most = Math.max(most, Math.abs(text.getBoundingClientRect().top - start));
    }
    return most;
  });

for (const follow of ["end", "question"] as const) {
  test(`a reader stays where they are, however they went there and however fast the answer comes (follow="${follow}")`, async (t) => {
    const enough = { yet: false };
    t.after(() => {
      enough.yet = true;
    });
    const chat = await openChat(t, browser, {
      turns: [endless(enough), [say("Second answer.")]],
      browser: { viewport: { width: 800, height: 500 }, hasTouch: true },
    });
    await chat.page.locator("agent-chat").evaluate((chat, value) => chat.setAttribute("follow", value), follow);
    await chat.say("Long");
    await chat.replies.getByText("some more words").waitFor();
    const jump = chat.page.getByRole("button", { name: "Jump to latest" });
    const box = await chat.messages.boundingBox();
    assert.ok(box);
    const [x, y] = [box.x + 60, box.y + box.height / 2];
    const gestures = Object.entries(GESTURES);
    // At the end, Chrome sometimes moves the text under the pointer if it may, so this gesture is repeated.
    const selecting = gestures.filter(([name]) => name === "a selection upward" && follow === "end");
    for (const [name, gesture] of [...gestures, ...selecting, ...selecting, ...selecting]) {
      if (follow === "question" || (await jump.isVisible())) await jump.click();
      await jump.waitFor({ state: "detached" });
      await chat.page.mouse.move(x, y);
      await gesture(chat, x, y);
      const isSelecting = name === "a selection upward";
      // While selecting, the button stays hidden, because it would appear under the pointer.
      if (!isSelecting) await jump.waitFor();
      await untilStill(chat);
      const moved = await within(movement(chat), "the growth of the answer", 30_000);
      assert.ok(moved <= 2, `${name}: moved by ${moved} px`);
      if (isSelecting) {
        assert.notEqual(await chat.page.evaluate(() => String(getSelection())), "");
        await chat.page.mouse.up();
        await jump.waitFor();
      }
    }
    enough.yet = true;
    await chat.send.waitFor();
    await chat.ask("Next", "Second answer.");
    await untilStill(chat);
    const fromEnd = await chat.messages.evaluate((box) => box.scrollHeight - box.clientHeight - box.scrollTop);
    assert.ok(fromEnd <= 2, "sending shows what was sent");
  });
}

test("a long message of the person shows six lines, opens by its button or by what is found in it, and is printed whole", async (t) => {
  const lines = Array.from({ length: 120 }, (_, index) => `Pasted line ${index + 1}.`);
  const chat = await openChat(t, browser, { turns: [[say("One.")], [say("Two.")], [say("Three.")]] });
  const bubbles = chat.questions.locator(".bubble");
  const height = async (number: number) => (await bubbles.nth(number).boundingBox())?.height ?? 0;
  await chat.say(lines.join("\n"));
  await chat.answered();
  const all = chat.questions.getByRole("button", { name: "Show all 120 lines" });
  await all.waitFor();
  assert.equal(await all.getAttribute("aria-expanded"), "false");
  const folded = await height(0);
  assert.ok(folded < 200, `${folded} px`);
  assert.equal(await chat.answer.isVisible(), true);
  await all.press("Enter");
  const fewer = chat.questions.getByRole("button", { name: "Show fewer lines" });
  await fewer.waitFor();
  assert.ok((await height(0)) > 10 * folded);
  await fewer.press("Enter");
  await all.waitFor();
  assert.equal(await height(0), folded);
  await hasFocus(all);
  const top = await bubbles.first().evaluate(async (bubble) => {
    const range = new Range();
    const text = [...bubble.childNodes].find((node) => node instanceof Text) as Text;
    range.setStart(text, text.data.indexOf("Pasted line 90."));
    range.setEnd(text, range.startOffset + 1);
    const before = range.getBoundingClientRect().top;
    // Like the browser's "find in page".
    bubble.scrollTop = before - bubble.getBoundingClientRect().top - 100;
    const found = range.getBoundingClientRect().top;
    while (bubble.clientHeight < 1_000) await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    return range.getBoundingClientRect().top - found;
  });
  assert.ok(Math.abs(top) < 2, `what was found has moved by ${top} px`);
  // A long paragraph counts by its rendered lines; up to six lines, there is no button.
  await chat.say("word ".repeat(400).trim());
  await chat.answered(2);
  const second = chat.questions.nth(1).getByRole("button", { name: /^Show all \d+ lines$/ });
  await second.waitFor();
  await chat.say("word ".repeat(65).trim());
  await chat.answered(3);
  const third = chat.questions.nth(2).getByRole("button", { name: /^Show/ });
  assert.equal(await third.count(), 0);
  // On a narrower screen it has more lines.
  const size = chat.page.viewportSize() ?? assert.fail();
  await chat.page.setViewportSize({ width: 360, height: size.height });
  await third.waitFor();
  await chat.page.setViewportSize(size);
  await third.waitFor({ state: "detached" });
  await chat.page.reload();
  await second.waitFor();
  await all.waitFor();
  await chat.page.emulateMedia({ media: "print" });
  assert.ok((await height(0)) > 10 * folded);
});
