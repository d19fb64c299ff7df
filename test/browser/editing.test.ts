/** Actions on earlier messages: edit one, ask again, copy or export an answer. */

import assert from "node:assert/strict";
import { after } from "node:test";
import type { Locator } from "playwright-core";
import { ApiError } from "../../server/protocol/errors.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { RED_PIXEL } from "../support/files.ts";
import { it, test } from "../support/rows.ts";
import { fail, say, wait } from "../support/scripted-provider.ts";
import {
  type ChatPage,
  canCopy,
  chatIn,
  contents,
  hasFocus,
  isDrawn,
  openChat,
  shown,
  standsAt,
  transferOf,
} from "./chat-page.ts";
import { chatTag, visit } from "./launcher-page.ts";
import { listen, untilHeard } from "./listening.ts";

const browser = await launchBrowser({ after });

const change = ({ questions }: ChatPage, number: number) =>
  questions.nth(number).getByRole("button", { name: "Change this message" });

test("an earlier message is changed in its place beside a draft, the conversation goes on from there, and its last answer is given again", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("One.")], [say("Two.")], [say("Three.")], [say("Another.")], [say("On.")], [say("On, then.")]],
  });
  await chat.ask("First", "One.");
  await chat.ask("Second", "Two.");
  await chat.ask("Third", "Three.");
  await chat.input.fill("A draft that waits");
  await change(chat, 1).click();
  assert.equal(await chat.edited.inputValue(), "Second");
  await chat.page.locator('[part="editing"]').getByText("The earlier version stays").waitFor();
  await chat.edited.and(chat.page.locator(":focus")).waitFor();
  await chat.page.keyboard.type(", changed");
  const heard = await listen(chat.page);
  await chat.page.keyboard.press("Enter");
  await chat.replies.getByText("Another.").waitFor();
  await untilHeard(chat.page, heard, "Another.");
  assert.deepEqual(heard, ["Answering…", "The conversation goes on from the changed message.", "Another."]);
  assert.equal(await chat.questions.count(), 2);
  assert.equal(await chat.replies.getByText("Three.").count(), 0);
  assert.deepEqual(contents(chat, 3), ["First", "One.", "Second, changed"]);
  assert.equal(await chat.input.inputValue(), "A draft that waits");
  await chat.ask("And on", "On.");
  const changed = ["First", "One.", "Second, changed", "Another.", "And on"];
  assert.deepEqual(contents(chat, 4), changed);
  await chat.page.getByRole("button", { name: "Answer again" }).click();
  await chat.replies.getByText("On, then.").waitFor();
  assert.equal(await chat.replies.count(), 3);
  assert.deepEqual(contents(chat, 5), changed);
});

/** The arrows of a message, located by the accessible name of their group. */
function alternatives({ page }: ChatPage, name: string) {
  const group = page.getByRole("group", { name, exact: true });
  const [previous, next] = ["Previous", "Next"].map((label) => group.getByRole("button", { name: label }));
  assert.ok(previous && next);
  return { group, previous, next };
}

test("answers and messages that were replaced come back with all that follows, and each branch goes on with its own state", async (t) => {
  for (const stateKind of ["conversation_history", "previous_response_id"] as const) {
    const held = gate();
    const turns = ["One.", "Uno.", "Two.", "Deux.", "Un.", "On Deux.", "On Two.", "On Un."].map((it, turn) =>
      turn === 6 ? [wait(held.opened), say(it)] : [say(it)],
    );
    const chat = await openChat(t, browser, { stateKind, turns });
    const sees = async (...texts: string[]) => {
      // All messages are rendered once the last one is.
      const drawn = chat.messages.locator(".bubble, .markdown");
      await drawn
        .nth(texts.length - 1)
        .filter({ hasText: texts.at(-1) ?? "" })
        .waitFor();
      assert.deepEqual(await drawn.allTextContents(), texts);
    };
    /** Sends a message, and compares the agent's input with the visible conversation. */
    const goesOn = async (text: string, answer: string, turn: number, previous: string | undefined) => {
      const before = await chat.messages.locator(".bubble, .markdown").allTextContents();
      await chat.ask(text, answer);
      if (stateKind === "conversation_history") assert.deepEqual(contents(chat, turn), [...before, text]);
      else assert.equal(chat.server.model.asked[turn]?.previousId, previous);
    };
    await chat.ask("First", "One.");
    assert.equal(await chat.page.getByRole("group", { name: "of" }).count(), 0);
    await chat.page.getByRole("button", { name: "Answer again" }).click();
    await sees("First", "Uno.");
    await goesOn("Second", "Two.", 2, "resp_2");
    // This answer has follow-ups of its own.
    await alternatives(chat, "Answer 2 of 2").previous.press("Enter");
    await sees("First", "One.");
    const { previous, next } = alternatives(chat, "Answer 1 of 2");
    assert.ok(await previous.isDisabled());
    // The focus stays at the arrows.
    await next.and(chat.page.locator(":focus")).waitFor();
    await goesOn("Deuxième", "Deux.", 3, "resp_1");
    await change(chat, 0).click();
    await chat.edited.fill("Premier");
    await chat.edited.press("Enter");
    await sees("Premier", "Un.");
    await alternatives(chat, "Message 2 of 2").previous.click();
    await sees("First", "One.", "Deuxième", "Deux.");
    const exported = await chat.page.evaluate(() => document.querySelector("agent-chat")?.exportTranscript("markdown"));
    assert.match(exported ?? "", /First[\s\S]*One\.[\s\S]*Deuxième[\s\S]*Deux\./);
    assert.doesNotMatch(exported ?? "", /Premier|Uno|Two/);
    await chat.page.reload();
    await sees("First", "One.", "Deuxième", "Deux.");
    await goesOn("On", "On Deux.", 5, "resp_4");
    await alternatives(chat, "Answer 1 of 2").next.click();
    await sees("First", "Uno.", "Second", "Two.");
    await chat.say("On");
    await chat.stop.waitFor();
    for (const name of ["Message 1 of 2", "Answer 2 of 2"]) {
      for (const button of await alternatives(chat, name).group.getByRole("button").all()) {
        assert.ok(await button.isDisabled(), "not while an answer runs");
      }
    }
    held.open();
    await sees("First", "Uno.", "Second", "Two.", "On", "On Two.");
    if (stateKind === "previous_response_id") assert.equal(chat.server.model.asked[6]?.previousId, "resp_3");
    await alternatives(chat, "Message 1 of 2").next.click();
    await sees("Premier", "Un.");
    await goesOn("On", "On Un.", 7, "resp_5");
  }
});

it("an exchange stands where it was when another of its answers is shown, which may be failed, long or short", async (t) => {
  const long = "A line of the answer.\n\n".repeat(30);
  const chat = await openChat(t, browser, {
    turns: [[say(long)], [say(long)], [say("Short.")], [fail(new ApiError("provider_timeout", "Late."))]],
  });
  await chat.ask("First", long.trim());
  await chat.ask("Second", long.trim());
  await chat.page.getByRole("button", { name: "Answer again" }).click();
  await chat.replies.getByText("Short.").waitFor();
  await canCopy(chat.page);
  await chat.page.getByRole("button", { name: "Answer again" }).click();
  await alternatives(chat, "Answer 3 of 3").group.waitFor();
  // While the answer runs, the arrows are unavailable.
  await chat.error.waitFor();
  await chat.messages.evaluate((scroller) => scroller.scrollBy(0, -100));
  /** The position of the question once it no longer moves. */
  const top = async () => Math.round((await standsAt(chat.questions.nth(1))).top);
  const before = await top();
  await alternatives(chat, "Answer 3 of 3").previous.press("Enter");
  await chat.replies.getByText("Short.").waitFor();
  assert.equal(await top(), before);
  await alternatives(chat, "Answer 2 of 3").previous.press("Enter");
  await alternatives(chat, "Answer 1 of 3").group.waitFor({ state: "attached" });
  assert.equal(await top(), before);
});

test("arrow up in an empty field takes up the last message, Escape leaves it as it was", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")], [say("Better.")]] });
  await chat.ask("Frist", "One.");
  await canCopy(chat.page);
  // With a modifier it is a command of the browser or of assistive technology.
  for (const modifier of ["Shift", "Alt", "Control", "Meta"]) {
    await chat.input.press(`${modifier}+ArrowUp`);
    assert.equal(await chat.input.inputValue(), "", modifier);
  }
  await chat.input.press("ArrowUp");
  assert.equal(await chat.edited.inputValue(), "Frist");
  await chat.edited.press("Escape");
  await chat.edited.waitFor({ state: "detached" });
  await chat.input.and(chat.page.locator(":focus")).waitFor();
  assert.equal(await chat.input.inputValue(), "");
  assert.equal(await chat.replies.count(), 1);
  await chat.input.press("ArrowUp");
  await chat.edited.fill("First");
  await chat.edited.press("Enter");
  await chat.replies.getByText("Better.").waitFor();
  assert.deepEqual(contents(chat, 1), ["First"]);
});

it("after a reload a message can still be changed, also where the provider keeps the conversation", async (t) => {
  for (const stateKind of ["conversation_history", "previous_response_id"] as const) {
    const chat = await openChat(t, browser, {
      stateKind,
      turns: [[say("One.")], [say("Two.")], [say("Other.")]],
    });
    await chat.ask("First", "One.");
    await chat.ask("Second", "Two.");
    await chat.page.reload();
    await change(chat, 1).click();
    await chat.edited.fill("Changed");
    await chat.edited.press("Enter");
    await chat.replies.getByText("Other.").waitFor();
    const asked = chat.server.model.asked[2];
    if (stateKind === "previous_response_id") assert.equal(asked?.previousId, "resp_1");
    else assert.deepEqual(contents(chat, 2), ["First", "One.", "Changed"]);
  }
});

it("a message that is changed has files of its own: kept, taken out, picked, pasted and dropped there, beside those of the draft", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("A dot.")], [say("Two.")]] });
  const { page } = chat;
  const dot = { name: "dot.png", mimeType: "image/png", buffer: RED_PIXEL };
  await chat.files.setInputFiles(dot);
  await chat.drafts.waitFor();
  await chat.ask("What is it?", "A dot.");
  await chat.files.setInputFiles({ ...dot, name: "waiting.png" });
  await chat.drafts.waitFor();
  const card = page.locator('[part="editor"]');
  const removal = (name: string) => card.getByRole("button", { name: `Remove ${name}` });
  await change(chat, 0).click();
  await removal("dot.png").waitFor();
  await card.locator('input[type="file"]').setInputFiles({ ...dot, name: "again.png" });
  await card.getByText("again.png: attached already.").waitFor();
  await chat.edited.press("Escape");
  await card.waitFor({ state: "detached" });
  await change(chat, 0).click();
  await removal("dot.png").click();
  await removal("dot.png").waitFor({ state: "detached" });
  await card.locator('input[type="file"]').setInputFiles(pdf("picked.pdf"));
  await removal("picked.pdf").waitFor();
  const pasted = await transferOf(page, [pdf("pasted.pdf")]);
  await chat.edited.evaluate((field, clipboardData) => {
    field.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, pasted);
  await removal("pasted.pdf").waitFor();
  await card.dispatchEvent("drop", { dataTransfer: await transferOf(page, [pdf("dropped.pdf")]) });
  await removal("dropped.pdf").waitFor();
  assert.equal(await chat.drafts.count(), 1, "the draft has its own");
  await card.getByRole("button", { name: "Send" }).click();
  await chat.replies.getByText("Two.").waitFor();
  const sent = chat.server.model.asked[1]?.start.attachments.map(({ name }) => name);
  assert.deepEqual(sent, ["picked.pdf", "pasted.pdf", "dropped.pdf"]);
  await isDrawn(chat.drafts.getByAltText("waiting.png"));
});

const pdf = (name: string) => ({ name, mimeType: "application/pdf", buffer: Buffer.from(`%PDF-${name}`) });

it("one message is changed at a time, and the focus goes back to where it came from", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")], [say("Two.")]] });
  await chat.ask("First", "One.");
  await chat.ask("Second", "Two.");
  await canCopy(chat.page);
  const focus = (locator: Locator) => locator.and(chat.page.locator(":focus")).waitFor();
  await change(chat, 0).press("Enter");
  await focus(chat.edited);
  await chat.edited.press("Escape");
  await focus(change(chat, 0));
  await change(chat, 0).press("Enter");
  await focus(chat.edited);
  // The edit is unchanged, so closing it loses nothing.
  await change(chat, 1).press("Enter");
  await focus(chat.questions.nth(1).getByRole("textbox"));
  await chat.page.keyboard.type(" thoughts");
  await change(chat, 0).press("Enter");
  await focus(chat.edited);
  assert.equal(await chat.edited.count(), 1);
  assert.equal(await chat.edited.inputValue(), "Second thoughts");
  await chat.page.locator('[part="cancel-edit"]').press("Enter");
  await focus(change(chat, 1));
  assert.deepEqual(await chat.questions.locator(".bubble").allInnerTexts(), ["First", "Second"]);
});

it("what a message is being changed to waits while that is out of sight, in another branch, conversation or tab, and over a reload", async (t) => {
  const chat = await openChat(t, browser, { turns: ["One.", "Uno.", "Un.", "Eins."].map((it) => [say(it)]) });
  const { page } = chat;
  await chat.ask("First", "One.");
  await chat.input.fill("A draft");
  await change(chat, 0).click();
  await chat.edited.fill("Primo");
  const isGone = async (draft = "A draft") => {
    await chat.edited.waitFor({ state: "detached" });
    assert.equal(await chat.input.inputValue(), draft);
  };
  await page.getByRole("button", { name: "New conversation" }).click();
  await chat.greeting.waitFor();
  // The edit also stays in its conversation.
  await isGone("");
  await page.locator('[part="conversation"]').first().click();
  await chat.edited.waitFor();
  await page.reload();
  assert.equal(await chat.edited.inputValue(), "Primo");
  // Another tab switches to a branch without the message.
  const other = await page.context().newPage();
  await other.goto(chat.server.url);
  await other.locator('[part="conversation"]').first().click();
  const there = { ...chat, ...chatIn(other), page: other };
  await change(there, 0).click();
  await there.edited.fill("Erstens");
  await there.edited.press("Enter");
  await there.replies.getByText("Uno.").waitFor();
  await chat.replies.getByText("Uno.").waitFor();
  await isGone();
  await alternatives(chat, "Message 2 of 2").previous.click();
  assert.equal(await chat.edited.inputValue(), "Primo");
  await chat.edited.press("Enter");
  await chat.replies.getByText("Un.").waitFor();
  await alternatives(chat, "Message 3 of 3").group.waitFor();
  assert.deepEqual(contents(chat, 2), ["Primo"]);
  await isGone();
  await page.reload();
  await chat.replies.getByText("Un.").waitFor();
  await isGone();
});

test("on a phone a message is changed in its place, too, above the keyboard", async (t) => {
  const chat = await openChat(t, browser, {
    turns: ["One.", "Two.", "Other."].map((it) => [say(`${it}\n\n${"A line of the answer.\n\n".repeat(8)}`)]),
    browser: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
  });
  await chat.say("First");
  await chat.answered(1);
  await chat.say("Second");
  await chat.answered(2);
  await canCopy(chat.page);
  // The time is closer to its message than to the answer, and appears with the buttons on touch.
  const question = chat.questions.nth(1);
  const [bubble, time, text] = await Promise.all(
    [question.locator(".bubble"), question.locator("time"), chat.answer].map((it) => it.boundingBox()),
  );
  assert.ok(bubble && time && text);
  const [above, below] = [time.y - bubble.y - bubble.height, text.y - time.y - time.height];
  assert.ok(above >= 4 && above <= 6 && below >= 14, `${above} px above, ${below} px below`);
  const opacity = (of: Locator) => of.evaluate((it) => Number(getComputedStyle(it).opacity));
  const late = [change(chat, 1), question.locator("time"), chat.replies.last().locator("time")];
  assert.deepEqual(await Promise.all(late.map(opacity)), [0, 0, 1], "an exchange shows one time, that of its answer");
  await question.locator(".bubble").tap();
  assert.deepEqual(await Promise.all(late.map(opacity)), [1, 1, 1]);
  await change(chat, 1).tap();
  await chat.edited.and(chat.page.locator(":focus")).waitFor();
  const send = chat.page.locator('[part="send-edit"]');
  const inView = () =>
    send.evaluate(async (button) => {
      const scroller = button.closest(".scroller") as Element;
      while (button.getBoundingClientRect().bottom > scroller.getBoundingClientRect().bottom) {
        await new Promise(requestAnimationFrame);
      }
    });
  await chat.page.setViewportSize({ width: 390, height: 506 });
  await inView();
  // Enter inserts a line break, as in the composer.
  for (let line = 0; line < 12; line += 1) await chat.edited.press("Enter");
  await inView();
  await chat.edited.fill("Changed");
  await send.tap();
  await chat.replies.getByText("Other.").waitFor();
  assert.equal(await chat.input.and(chat.page.locator(":focus")).count(), 0, "no keyboard over the answer");
});

/** Copies the answer with its button; returns the clipboard's contents. */
async function copyAnswer({ page }: ChatPage): Promise<{ text: string; html: string }> {
  await page.getByRole("button", { name: "Copy answer" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  const [text = "", html = ""] = await page.evaluate(async () => {
    const [item] = await navigator.clipboard.read();
    const types = ["text/plain", "text/html"];
    return Promise.all(types.map(async (type) => (await item?.getType(type))?.text()));
  });
  return { text, html };
}

test("a person's own message can be copied as it was written", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("Two lines.")]],
    browser: { permissions: ["clipboard-read", "clipboard-write"] },
  });
  await chat.ask("one\n  **two**", "Two lines.");
  await chat.questions.getByRole("button", { name: "Copy message" }).click();
  await chat.questions.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(await chat.page.evaluate(() => navigator.clipboard.readText()), "one\n  **two**");
});

test("a copied answer is Markdown for editors, and for others what it looks like, HTML as a line of its own", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [
      [say("# Title\n\n**Bold** and [a link](https://a.example/).\n\n```js\nlet a;\n```\n\n- item\n- item\n  <div>")],
    ],
    browser: { permissions: ["clipboard-read", "clipboard-write"] },
  });
  await chat.say("Go");
  await canCopy(chat.page);
  const { text, html } = await copyAnswer(chat);
  assert.match(text, /^# Title\n\n\*\*Bold\*\*/);
  assert.match(html, /<h1>Title<\/h1>.*<strong>Bold<\/strong>.*<a href="https:\/\/a\.example\/">a link<\/a>/s);
  assert.match(html, /<ul><li>item<\/li><li>item<p>&lt;div&gt;<\/p><\/li><\/ul>$/);
  assert.doesNotMatch(html, /<button|<div|class=|Copy/);
  assert.equal(await shown(chat.questions), "You said:\nGo");
});

it("the buttons of earlier messages come into sight when they are pointed at or have the focus, and are always there for the keyboard", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("One.")], [say("Two.")]],
    browser: { reducedMotion: "reduce" },
  });
  await chat.page.locator("agent-chat").evaluate((element) => element.setAttribute("feedback", ""));
  await chat.ask("First", "One.");
  await chat.ask("Second", "Two.");
  const first = chat.replies.first().getByRole("button");
  await chat.replies.first().getByRole("button", { name: "Bad answer" }).waitFor();
  const visible = () => first.evaluateAll((buttons) => buttons.map((it) => getComputedStyle(it).opacity).join(" "));
  await chat.page.mouse.move(0, 0);
  assert.equal(await visible(), "0 0 0");
  await chat.replies.first().hover();
  assert.equal(await visible(), "1 1 1");
  await chat.page.mouse.move(0, 0);
  await chat.questions.first().getByRole("button", { name: "Copy message" }).focus();
  for (const name of ["Copy answer", "Good answer", "Bad answer"]) {
    await chat.page.keyboard.press("Tab");
    await hasFocus(first.and(chat.page.getByLabel(name)), name);
    assert.equal(await visible(), "1 1 1");
  }
});

it("an answer is copied on a page without HTTPS, too, and the focus stays", async (t) => {
  const chat = await visit(t, browser, {
    turns: [[say("**Bold**")]],
    env: { PARLEY_ALLOWED_ORIGINS: "*" },
    body: chatTag(400),
    from: "publicUrl",
  });
  const { page } = chat;
  assert.equal(await page.evaluate(() => window.isSecureContext), false);
  await chat.ask("Go", "Bold");
  await page.getByRole("button", { name: "Copy answer" }).click();
  const button = page.getByRole("button", { name: "Copied" });
  await button.waitFor();
  await hasFocus(button);
  await chat.input.press("ControlOrMeta+V");
  assert.equal(await chat.input.inputValue(), "**Bold**");
});

it("copying an answer asks nobody for its images", async (t) => {
  const chat = await visit(t, browser, {
    turns: [[say("![A dot](https://images.example/dot.png)")]],
    body: chatTag(400),
    browser: { permissions: ["clipboard-write"] },
  });
  const { page } = chat;
  let requests = 0;
  await page.route("https://images.example/**", (route) => {
    requests += 1;
    const headers = { "cache-control": "no-store" };
    return route.fulfill({ body: RED_PIXEL, contentType: "image/png", headers });
  });
  await chat.say("Show me a dot");
  await page.getByRole("button", { name: /Load image/ }).click();
  await page.waitForFunction(() => {
    const root = document.querySelector("agent-chat")?.shadowRoot;
    return root?.querySelector<HTMLImageElement>("img.image")?.naturalWidth === 1;
  });
  await canCopy(page);
  await page.getByRole("button", { name: "Copy answer" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(requests, 1);
});
