import assert from "node:assert/strict";
import { after, type TestContext } from "node:test";
import type { ElementHandle, Locator } from "playwright-core";
import { launchBrowser } from "../support/browser.ts";
import { type Gate, gate } from "../support/deadline.ts";
import { it, test } from "../support/rows.ts";
import { type Step, say, wait } from "../support/scripted-provider.ts";
import { type ChatPage, openChat, shown, standsAt } from "./chat-page.ts";

const browser = await launchBrowser({ after });

const PARAGRAPHS = Array.from({ length: 30 }, (_, index) => `Paragraph ${index + 1}.\n\n`);

/** A long answer that pauses in the middle until the gate opens. */
function longAnswer(middle: Gate): Step[] {
  return [...PARAGRAPHS.map(say), wait(middle.opened), ...PARAGRAPHS.map(say), say("The end.")];
}

type Follow = "question" | "end";

/** Opens a chat with the first half of a long answer. */
async function openLong(t: TestContext, middle: Gate, follow: Follow = "end"): Promise<ChatPage> {
  const chat = await openChat(t, browser, {
    turns: [longAnswer(middle), [say("Second answer.")]],
    browser: { viewport: { width: 880, height: 500 } },
  });
  await setFollow(chat, follow);
  await chat.say("Long");
  await chat.replies.getByText("Paragraph 30.").first().waitFor();
  return chat;
}

const setFollow = ({ page }: ChatPage, follow: Follow) =>
  page.locator("agent-chat").evaluate((chat, value) => chat.setAttribute("follow", value), follow);

const position = (scroller: Locator) => scroller.evaluate((box) => box.scrollTop);

/** Waits until the end is in view: late content, such as an answer's buttons, is followed on the next frame. */
async function isAtEnd(scroller: Locator): Promise<void> {
  const box = await scroller.elementHandle();
  await scroller
    .page()
    .waitForFunction(
      (it) => it && it.scrollHeight - it.clientHeight - it.scrollTop <= 2,
      box as ElementHandle<Element>,
    );
}

/** Turns the mouse wheel over the messages and waits until they have scrolled. */
async function wheel(chat: ChatPage, pixels: number): Promise<void> {
  const before = await position(chat.messages);
  await chat.messages.hover();
  await chat.page.mouse.wheel(0, pixels);
  const scroller = await chat.messages.elementHandle();
  await chat.page.waitForFunction(([box, top]) => box?.scrollTop !== top, [scroller, before] as const);
}

test("the newest text stays in view while the reader is at the end; sending shows what was sent; nothing but the transcript scrolls", async (t) => {
  const middle = gate();
  const chat = await openLong(t, middle);
  await isAtEnd(chat.messages);
  middle.open();
  await chat.replies.getByText("The end.").waitFor();
  await isAtEnd(chat.messages);
  assert.equal(await chat.page.locator('[part="jump"]').count(), 0);
  await chat.send.waitFor();
  await wheel(chat, -1000);
  await chat.ask("Next", "Second answer.");
  await isAtEnd(chat.messages);
  // Like the browser's "find in page".
  await chat.replies
    .getByText("Paragraph 9.")
    .first()
    .evaluate((text) => text.scrollIntoView());
  const header = await chat.page.locator('[part="header"]').boundingBox();
  assert.equal(header?.y, 0, "the header stays where it is");
  const composer = await chat.input.boundingBox();
  assert.ok(composer && composer.y > 400, "and so does the text field");
});

it("the end stays in view when a picture above it has come and the browser scrolls to hold the place", async (t) => {
  const chat = await openLong(t, gate());
  await chat.messages.evaluate((box) => {
    const column = box.firstElementChild as Element;
    column.before(Object.assign(document.createElement("div"), { textContent: "above" }));
    (column.previousElementSibling as HTMLElement).style.height = "300px";
    // Reading it makes the browser scroll; the rest is added before the scroll event.
    const before = box.scrollTop;
    column.append(Object.assign(document.createElement("div"), { textContent: "below" }));
    (column.lastElementChild as HTMLElement).style.height = "100px";
    return before;
  });
  const scroller = await chat.messages.elementHandle();
  await chat.page.waitForFunction((box) => box && box.scrollHeight - box.clientHeight - box.scrollTop < 2, scroller);
  assert.equal(await chat.page.locator('[part="jump"]').count(), 0);
});

test("a reader who has scrolled up, by wheel or key, is left in peace, and jumps back with one click", async (t) => {
  const middle = gate();
  const chat = await openLong(t, middle);
  const jump = chat.page.locator('[part="jump"]');
  await wheel(chat, -200);
  await jump.waitFor();
  const [column, button] = [await chat.answer.boundingBox(), await jump.boundingBox()];
  assert.ok(column && button && button.x >= column.x + column.width, "it stands on no text");
  const view = await chat.messages.boundingBox();
  await wheel(chat, 1000);
  await jump.waitFor({ state: "detached" });
  assert.deepEqual(await chat.messages.boundingBox(), view, "it takes no room from the text, and leaves none behind");
  await chat.messages.press("PageUp");
  assert.equal(await shown(jump), "Acme Support is writing\nJump to latest");
  const place = await position(chat.messages);
  middle.open();
  await chat.send.waitFor();
  assert.equal(await shown(jump), "Jump to latest");
  // The last part is rendered on the next frame, below the view.
  await chat.replies.getByText("The end.").waitFor({ state: "attached" });
  assert.equal(await position(chat.messages), place, "the text did not move");
  await chat.page.getByRole("button", { name: "Jump to latest" }).click();
  await jump.waitFor({ state: "detached" });
  await isAtEnd(chat.messages);
});

it("nothing moves or is covered under a pointer that is pressed while the end comes into view or leaves it", async (t) => {
  const middle = gate();
  const chat = await openLong(t, middle);
  middle.open();
  await chat.send.waitFor();
  const jump = chat.page.locator('[part="jump"]');
  /** How far the last line moves, and by how much the view shrinks, after scrolling to this distance from the end. */
  const scrolledTo = (fromEnd: number) =>
    chat.messages.evaluate(async (scroller, distance) => {
      const height = scroller.clientHeight;
      const end = scroller.querySelector("agent-chat-message:last-child p:last-child") ?? scroller;
      scroller.scrollTo({ top: scroller.scrollHeight - height - distance, behavior: "instant" });
      const before = end.getBoundingClientRect().top;
      for (let frame = 0; frame < 5; frame++) await new Promise(requestAnimationFrame);
      return [end.getBoundingClientRect().top - before, scroller.clientHeight - height];
    }, fromEnd);
  const last = chat.replies.getByText("Paragraph 29.").last();
  /** Presses the mouse button on the text once it no longer moves; next to it would be the scroll bar. */
  const press = async () => {
    await last.scrollIntoViewIfNeeded();
    await chat.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    await last.hover();
    await chat.page.mouse.down();
    assert.equal(await last.evaluate((text) => text.matches(":active")), true);
  };
  await wheel(chat, -300);
  await jump.waitFor();
  await press();
  assert.deepEqual(await scrolledTo(0), [0, 0]);
  await chat.page.mouse.up();
  await jump.waitFor({ state: "detached" });
  await press();
  assert.deepEqual(await scrolledTo(80), [0, 0]);
  await chat.page.mouse.up();
  await jump.waitFor();
});

test("a reader who scrolls up where only empty room is below is offered no way to the end", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say(PARAGRAPHS.slice(0, 9).join(""))], [say("Short.")]],
    browser: { viewport: { width: 880, height: 500 } },
  });
  const jump = chat.page.locator('[part="jump"]');
  await chat.say("First");
  await chat.answered();
  await chat.ask("Second", "Short.");
  await standsAt(chat.messages);
  await wheel(chat, -100);
  await standsAt(chat.messages);
  assert.equal(await jump.count(), 0, "the last answer is in view");
  await wheel(chat, -300);
  await jump.waitFor();
});

test("what is said begins and ends where the text field does, beside a scrollbar too", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say(PARAGRAPHS.join(""))]],
    browser: { viewport: { width: 700, height: 500 } },
  });
  await chat.say("First");
  await chat.answered();
  await chat.messages.press("Home");
  const [bubble, answer, field] = await Promise.all(
    [chat.page.locator(".bubble"), chat.answer, chat.page.locator('[part="composer"]')].map(standsAt),
  );
  assert.deepEqual([answer?.left, bubble?.right], [field?.left, field?.right]);
});

it("a window that becomes tall enough for everything offers no way to the end", async (t) => {
  const middle = gate();
  const chat = await openLong(t, middle);
  await wheel(chat, -10_000);
  await chat.page.locator('[part="jump"]').waitFor();
  await chat.page.setViewportSize({ width: 800, height: 4000 });
  await chat.page.locator('[part="jump"]').waitFor({ state: "detached" });
  await chat.page.setViewportSize({ width: 800, height: 500 });
  middle.open();
  await chat.send.waitFor();
  await isAtEnd(chat.messages);
});

it("opening a long thinking row holds its place under the pointer", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[{ type: "thinking", delta: "A thought.\n".repeat(60) }, ...PARAGRAPHS.slice(0, 8).map(say)]],
    browser: { viewport: { width: 800, height: 500 } },
  });
  await chat.say("Think");
  await chat.replies.getByText("Paragraph 8.").waitFor();
  await chat.send.waitFor();
  // The row may have been open while it streamed; it then closes by itself.
  const row = chat.thinking.getByRole("button").and(chat.page.locator('[aria-expanded="false"]'));
  await row.scrollIntoViewIfNeeded();
  const before = (await row.boundingBox())?.y;
  await row.click();
  await chat.thinking.getByText("A thought.").waitFor();
  const after = (await chat.thinking.getByRole("button").boundingBox())?.y;
  assert.ok(Math.abs((after ?? 0) - (before ?? 1e9)) <= 2, `moved from ${before} to ${after}`);
});

/** Distance of the user's last message from the header in pixels, once it no longer moves. */
async function gapAbove({ messages, questions }: ChatPage): Promise<number> {
  const scroller = await messages.elementHandle();
  return questions
    .last()
    .locator(".bubble")
    .evaluate(async (bubble, box) => {
      const places = [Number.NaN];
      while (places.length < 10 || new Set(places.slice(-10)).size > 1) {
        await new Promise(requestAnimationFrame);
        places.push(bubble.getBoundingClientRect().top - (box?.getBoundingClientRect().top ?? 0));
      }
      return places.at(-1) ?? 0;
    }, scroller);
}

function assertAtTop(gap: number): void {
  assert.ok(Math.abs(gap - 16) <= 2, `${gap} px below the header`);
}

test("a new message stands below the header, and nothing moves while its answer grows out of view", async (t) => {
  const [begin, middle] = [gate(), gate()];
  const chat = await openChat(t, browser, {
    turns: [[say("First answer.")], [wait(begin.opened), ...longAnswer(middle)]],
    browser: { viewport: { width: 800, height: 500 } },
  });
  await chat.ask("First", "First answer.");
  assertAtTop(await gapAbove(chat));
  const before = await chat.messages.boundingBox();
  await chat.replies.getByText("First answer.").dblclick();
  await wheel(chat, -10);
  assert.deepEqual(await chat.messages.boundingBox(), before, "nothing moves for a reader who selects or scrolls");
  await chat.say("Second");
  await chat.replies.locator(".waiting").waitFor();
  assertAtTop(await gapAbove(chat));
  assert.equal(await chat.page.locator('[part="jump"]').count(), 0);
  const view = await chat.messages.boundingBox();
  begin.open();
  const first = chat.answer.getByText("Paragraph 1.", { exact: true });
  await first.waitFor();
  // Checks each frame in which the answer grows, until its end.
  const moved = chat.messages.evaluate(async (scroller) => {
    const root = scroller.getRootNode() as ShadowRoot;
    const answer = [...root.querySelectorAll('[part="markdown"]')].at(-1) as Element;
    const start = answer.getBoundingClientRect().top;
    let most = 0;
    while (!answer.textContent.includes("The end.")) {
      await new Promise(requestAnimationFrame);
      most = Math.max(most, Math.abs(answer.getBoundingClientRect().top - start));
    }
    return most;
  });
  await chat.page.locator('[part="jump"]').waitFor();
  assert.equal(await shown(chat.page.locator('[part="jump"]')), "Acme Support is writing\nJump to latest");
  middle.open();
  assert.ok((await moved) <= 1, `moved by ${await moved} px`);
  assert.deepEqual(await chat.messages.boundingBox(), view, "the button had its place already");
  assertAtTop(await gapAbove(chat));
  assert.equal(await shown(chat.page.locator('[part="jump"]')), "Jump to latest");
});

it("what was pending goes off without taking the reader from an answer of which they have not seen the end", async (t) => {
  const [middle, end] = [gate(), gate()];
  const chat = await openChat(t, browser, {
    turns: [[...longAnswer(middle)], [say("Next answer."), wait(end.opened)]],
    browser: { viewport: { width: 800, height: 500 } },
  });
  const jump = chat.page.locator('[part="jump"]');
  await chat.say("First");
  await jump.waitFor();
  await chat.say("Second");
  await chat.page.locator(".pending-message").waitFor();
  const top = () => chat.replies.first().evaluate((it) => it.getBoundingClientRect().top);
  const before = await top();
  middle.open();
  await jump.getByText("Your next question is being answered").waitFor();
  assert.equal(await top(), before, "nothing moves");
  await jump.click();
  await chat.replies.getByText("Next answer.").waitFor();
  assertAtTop(await gapAbove(chat));
  end.open();
});

for (const [how, go] of [
  ["the button", (chat: ChatPage) => chat.page.getByRole("button", { name: "Jump to latest" }).click()],
  ["the End key", (chat: ChatPage) => chat.messages.press("End")],
  ["the wheel", (chat: ChatPage) => wheel(chat, 10_000)],
] as const) {
  test(`from a message at the top, ${how} goes to the end and stays there`, async (t) => {
    const middle = gate();
    const chat = await openLong(t, middle, "question");
    await chat.page.locator('[part="jump"]').waitFor();
    await go(chat);
    await chat.page.locator('[part="jump"]').waitFor({ state: "detached" });
    middle.open();
    await chat.replies.getByText("The end.").waitFor();
    await chat.send.waitFor();
    await isAtEnd(chat.messages);
    await chat.ask("Next", "Second answer.");
    assertAtTop(await gapAbove(chat));
  });
}

for (const [what, height, rest] of [
  ["a long message is folded and stands at the top, so that its first line is in view", 800, [150, 200]],
  ["of a message that takes half of the view, the last lines stay above its answer", 420, [60, 110]],
] as const) {
  it(what, async (t) => {
    const chat = await openChat(t, browser, {
      turns: [[say("First answer.")], [say("Second answer.")]],
      browser: { viewport: { width: 800, height } },
    });
    await chat.ask("First", "First answer.");
    await chat.ask(Array.from({ length: 120 }, (_, index) => `Line ${index + 1}`).join("\n"), "Second answer.");
    const gap = await gapAbove(chat);
    if (height === 800) assertAtTop(gap);
    const [scroller, bubble] = await Promise.all(
      [chat.messages, chat.questions.last().locator(".bubble")].map((it) => it.boundingBox()),
    );
    assert.ok(scroller && bubble);
    const seen = bubble.y + bubble.height - scroller.y;
    assert.ok(seen > rest[0] && seen < rest[1], `${seen} px of the message are in view`);
  });
}

test("a quick answer behind a short exchange leaves its question at the top: the glide to it has the right end", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("Hello!")], [say("A paragraph of some words.\n\n".repeat(70))]],
    browser: { viewport: { width: 800, height: 700 } },
  });
  await chat.ask("hello", "Hello!");
  // The browser does not scroll smoothly here, so the test records the requested targets.
  const aim = await chat.messages.evaluateHandle((box) => {
    const aims: (number | undefined)[] = [];
    const scroll = box.scroll.bind(box) as (to: ScrollToOptions) => void;
    box.scroll = ((to: ScrollToOptions) => {
      aims.push(to.top);
      scroll(to);
    }) as typeof box.scroll;
    return aims;
  });
  await chat.say("Now a long one");
  await chat.answered(2);
  assertAtTop(await gapAbove(chat));
  assert.deepEqual(
    (await aim.jsonValue()).map((top = 0) => Math.round(top)),
    [Math.round(await position(chat.messages))],
  );
});

it("a reload in the middle of an answer moves its message to the top again", async (t) => {
  const middle = gate();
  const chat = await openLong(t, middle, "question");
  await chat.page.reload();
  await chat.replies.getByText("Paragraph 30.").first().waitFor();
  assertAtTop(await gapAbove(chat));
  middle.open();
  await chat.replies.getByText("The end.").waitFor({ state: "attached" });
  await chat.send.waitFor();
  assertAtTop(await gapAbove(chat));
});

test("a reload leaves the last exchange where it stands, however short it is", async (t) => {
  // Only the last lines of a message are in view if it is higher than a third of the view.
  const question = Array.from({ length: 9 }, (_, index) => `Line ${index + 1}`).join("\n");
  const chat = await openChat(t, browser, { turns: [[say("First.")], [say("Second.")], [say("Third.")]] });
  for (const [text, reply] of [
    ["One", "First."],
    ["Two", "Second."],
    [question, "Third."],
  ] as const) {
    await chat.ask(text, reply);
    const { top } = await standsAt(chat.answer);
    await chat.page.reload();
    await chat.replies.getByText(reply).waitFor();
    const now = await standsAt(chat.answer);
    assert.ok(Math.abs(now.top - top) <= 1, `${reply} stands at ${now.top}, not at ${top}`);
    assert.equal(await chat.page.locator('[part="jump"]').count(), 0);
  }
});

test("a reader who leaves a message at the top is left in peace", async (t) => {
  const middle = gate();
  const chat = await openLong(t, middle, "question");
  await wheel(chat, 300);
  const place = await position(chat.messages);
  middle.open();
  await chat.send.waitFor();
  assert.equal(await position(chat.messages), place, "the text did not move");
});

it("a reader who has scrolled finds the same place when the chat was taken out of the page and is put back", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("A paragraph.\n\n".repeat(80))]] });
  await chat.say("Go");
  await chat.answered();
  await wheel(chat, 700);
  await wheel(chat, -200);
  const place = await position(chat.messages);
  assert.ok(place > 100, `${place}`);
  await chat.page.evaluate(async () => {
    const element = document.querySelector("agent-chat") as HTMLElement & { readonly updateComplete: Promise<boolean> };
    const parent = element.parentElement;
    element.remove();
    await new Promise((resolve) => setTimeout(resolve));
    parent?.append(element);
    await element.updateComplete;
    await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
  });
  assert.equal(await position(chat.messages), place);
});
