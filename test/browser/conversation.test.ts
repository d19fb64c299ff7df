import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ApiError } from "../../server/protocol/errors.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { RED_PIXEL } from "../support/files.ts";
import { fail, hang, say, wait } from "../support/scripted-provider.ts";
import { type ChatPage, contents, isDrawn, isFocused, openChat, shown } from "./chat-page.ts";
import { listen } from "./listening.ts";

const browser = await launchBrowser({ after });

const DOT = { name: "dot.png", mimeType: "image/png", buffer: RED_PIXEL };

const change = (chat: ChatPage, number: number) =>
  chat.page.getByRole("button", { name: "Change this message" }).nth(number).click();

test("the page greets with the agent's name, its welcome and its suggestions", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("Fine.")]],
    agent: { agent: "Concierge", chat: { welcome: "Ask away!", suggestions: ["How are you?"] } },
  });
  await chat.page.getByText("Concierge").waitFor();
  assert.equal(await shown(chat.greeting), "Ask away!");
  assert.equal(await chat.page.title(), "Acme Support");
  await chat.page.getByRole("button", { name: "How are you?" }).click();
  await chat.replies.getByText("Fine.").waitFor();
  assert.equal(await shown(chat.questions), "You said:\nHow are you?");
  assert.equal(await chat.greeting.count(), 0);
  assert.equal(await chat.page.locator('[part="suggestions"]').count(), 0);
  // Without keys on a loopback address the page asks for none.
  assert.equal(await chat.keyField.count(), 0);
  assert.equal(await chat.page.getByRole("button", { name: "Forget the saved key" }).count(), 0);
});

test("the text field has the cursor; Enter sends, the button sends, white space alone is not sent, and the conversation goes on", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")], [say("Two.")]] });
  await chat.input.waitFor();
  assert.equal(await chat.send.isDisabled(), true, "nothing to send yet");
  await chat.page.keyboard.type("  ");
  await chat.page.keyboard.press("Enter");
  assert.equal(await chat.send.isDisabled(), true);
  assert.equal(await chat.questions.count(), 0);
  await chat.input.fill("");
  await chat.page.keyboard.type("First");
  await chat.page.keyboard.press("Enter");
  await chat.replies.getByText("One.").waitFor();
  await chat.page.keyboard.type("Second");
  await chat.send.click();
  await chat.replies.getByText("Two.").waitFor();
  assert.equal(await chat.input.inputValue(), "");
  assert.deepEqual(contents(chat, 1), ["First", "One.", "Second"]);
});

test("before an answer has ended its text is on the screen, a double-click does not stop it, and the next message can be typed", async (t) => {
  const rest = gate();
  const chat = await openChat(t, browser, {
    turns: [[say("The first **half"), wait(rest.opened), say("** and the rest.")], [say("Second.")]],
  });
  await chat.input.fill("First");
  await chat.send.click();
  await chat.replies.getByText("half").waitFor();
  assert.equal(await shown(chat.answer), "The first half", "an open mark is not shown raw");
  // The button to send has become the one to stop.
  await chat.stop.dispatchEvent("click", { detail: 2 });
  const twoFrames = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  await chat.page.evaluate(twoFrames);
  assert.equal(await chat.stop.isEnabled(), true, "it is not stopping");
  await chat.say("Second");
  assert.equal(await chat.input.inputValue(), "Second");
  rest.open();
  await chat.replies.getByText("and the rest.").waitFor();
  assert.match(await chat.answer.innerHTML(), /<strong>half<\/strong>/);
  await chat.send.waitFor();
  assert.equal(await chat.input.inputValue(), "Second", "Enter has not lost it");
  await chat.input.press("Enter");
  await chat.replies.getByText("Second.").waitFor();
  assert.equal(await chat.questions.count(), 2);
});

test("Enter during an answer says for a moment why nothing is sent, in sight and aloud, and the text stays", async (t) => {
  const rest = gate();
  const chat = await openChat(t, browser, {
    agent: { agent: "Ada" },
    turns: [[say("Well,"), wait(rest.opened), say(" well.")], [say("Second.")]],
  });
  await chat.page.clock.install();
  const heard = await listen(chat.page);
  await chat.say("First");
  await chat.replies.getByText("Well,").waitFor();
  await chat.say("Second");
  await chat.say("Second");
  const note = chat.page.locator(".busy-note");
  assert.equal(await shown(note), "Ada is still answering. Esc stops the answer.");
  assert.equal(await chat.input.inputValue(), "Second");
  await chat.page.clock.runFor(5_000);
  await note.waitFor({ state: "detached" });
  assert.deepEqual(
    heard.filter((text) => /Esc|still/.test(text)),
    ["Ada is still answering.", "Esc stops the answer."],
  );
  await chat.say("Second");
  await note.waitFor();
  rest.open();
  await chat.send.waitFor();
  assert.equal(await note.count(), 0, "it is over with the answer");
  await chat.input.press("Enter");
  await chat.replies.getByText("Second.").waitFor();
});

test("Stop keeps what was said, says so, ends the model's request, and the next message works", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("Partial"), hang], [say("Still here.")]],
  });
  await chat.say("Long story");
  await chat.replies.getByText("Partial").waitFor();
  await chat.stop.click();
  await chat.replies.getByText("You stopped this answer.").waitFor();
  await chat.server.model.asked[0]?.aborted;
  assert.equal(await shown(chat.answer), "Partial");
  await chat.ask("And now?", "Still here.");
  assert.deepEqual(contents(chat, 1), ["Long story", "Partial", "And now?"]);
});

test("a failed answer keeps its text, says why, and Try again replaces it", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [
      [say("Half an answer"), fail(new ApiError("provider_error", "The model is ill."))],
      [say("The whole answer.")],
    ],
  });
  await chat.say("Question");
  await chat.error.getByText("The model is ill.").waitFor();
  const [, reference = "none"] = /\(Reference: (\S{8})\)/.exec(await shown(chat.error)) ?? [];
  const records = chat.server.log.map((record) => JSON.parse(record));
  const failure = records.find(({ error }) => error?.includes("The model is ill."));
  assert.equal(failure?.run_id, reference);
  assert.equal(await shown(chat.answer), "Half an answer");
  await chat.retry.click();
  await chat.replies.getByText("The whole answer.").waitFor();
  assert.equal(await chat.error.count(), 0);
  assert.equal(await chat.replies.count(), 1);
  assert.equal(await chat.questions.count(), 1);
  assert.deepEqual(contents(chat, 1), ["Question"], "the question is not told twice");
});

async function untilKept(chat: ChatPage, count: number): Promise<void> {
  while ((await kept(chat)) !== count) await chat.page.evaluate(() => new Promise(requestAnimationFrame));
}

const close = (chat: ChatPage) => chat.page.getByRole("button", { name: "New conversation" }).click();
const undo = (chat: ChatPage) => chat.page.getByRole("button", { name: "Undo" });

/** Conversations that the browser keeps. */
const kept = ({ page }: ChatPage) =>
  page.evaluate(
    () =>
      new Promise((resolve) => {
        const opening = indexedDB.open("agent-chat");
        opening.onsuccess = () => {
          const rows = opening.result.transaction("conversations").objectStore("conversations").count();
          rows.onsuccess = () => {
            opening.result.close();
            resolve(rows.result);
          };
        };
      }),
  );

test("New conversation ends a running answer and forgets everything that was said, with the next message", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Noted."), hang], [say("Fresh.")]] });
  await chat.say("My name is Ann");
  await chat.replies.getByText("Noted.").waitFor();
  await close(chat);
  await chat.greeting.waitFor();
  assert.equal(await chat.page.getByText("Noted.").count(), 0);
  await chat.ask("Who am I?", "Fresh.");
  await chat.server.model.asked[0]?.aborted;
  assert.deepEqual(contents(chat, 1), ["Who am I?"]);
  assert.equal(await undo(chat).count(), 0);
  assert.equal(await kept(chat), 1);
});

test("New conversation can be undone for ten seconds, with the answer that was being given, its files and the draft", async (t) => {
  const rest = gate();
  const chat = await openChat(t, browser, {
    turns: [[say("One.")], [say("Half"), wait(rest.opened), say(" and the rest.")], [say("Third.")]],
  });
  const heard = await listen(chat.page);
  await chat.ask("First", "One.");
  await chat.files.setInputFiles(DOT);
  await isDrawn(chat.drafts.locator("img"));
  await chat.say("Second");
  await chat.replies.getByText("Half").waitFor();
  await chat.input.fill("A draft");
  const theme = await chat.page.locator('[part="theme-toggle"]').boundingBox();
  const reset = await chat.page.locator('[part="reset"]').boundingBox();
  assert.ok(reset && theme && reset.x - theme.x - theme.width >= 12, "no press beside the one meets the other");
  await close(chat);
  await chat.page.locator('[part="closed"]').getByText("Conversation closed.").waitFor();
  assert.equal(await chat.questions.count(), 0);
  assert.equal(await kept(chat), 1);
  assert.ok(heard.includes("Conversation closed.") && heard.includes("Undo"), heard.join());
  assert.equal(await isFocused(chat.input), true);
  await chat.page.keyboard.press("Shift+Tab");
  while (!(await isFocused(undo(chat)))) await chat.page.keyboard.press("Shift+Tab");
  await chat.page.keyboard.press("Enter");
  await chat.replies.getByText("Half").waitFor();
  assert.deepEqual([await chat.questions.count(), await chat.input.inputValue()], [2, "A draft"]);
  await isDrawn(chat.questions.locator("img"));
  rest.open();
  await chat.replies.getByText("Half and the rest.").waitFor();
  await chat.send.waitFor();
  await chat.input.press("Enter");
  await chat.replies.getByText("Third.").waitFor();
  assert.deepEqual(contents(chat, 2)?.slice(2), [contents(chat, 1)?.[2], "Half and the rest.", "A draft"]);
});

test("after ten seconds a closed conversation is forgotten, here and by the server; after a reload before, too", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [
      [say("One."), hang],
      [say("Two."), hang],
    ],
  });
  await chat.page.clock.install();
  await chat.say("First");
  await chat.replies.getByText("One.").waitFor();
  await close(chat);
  await undo(chat).waitFor();
  await chat.page.clock.runFor(10_000);
  await undo(chat).waitFor({ state: "detached" });
  await chat.server.model.asked[0]?.aborted;
  await untilKept(chat, 0);
  await chat.say("Second");
  await chat.replies.getByText("Two.").waitFor();
  await close(chat);
  await undo(chat).waitFor();
  await chat.page.reload();
  await chat.greeting.waitFor();
  await chat.server.model.asked[1]?.aborted;
  await untilKept(chat, 0);
  assert.deepEqual([await chat.questions.count(), await undo(chat).count()], [0, 0]);
});

test("a message that was being changed is being changed again after Undo", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")]] });
  await chat.ask("First", "One.");
  await chat.input.fill("A draft");
  await change(chat, 0);
  await chat.input.fill("First, changed");
  await close(chat);
  assert.equal(await chat.input.inputValue(), "A draft");
  await undo(chat).click();
  await chat.page.locator('[part="editing"]').waitFor();
  assert.equal(await chat.input.inputValue(), "First, changed");
  await chat.input.press("Escape");
  assert.equal(await chat.input.inputValue(), "A draft");
});

test("the title of the page counts the answers that are done while another tab is in front, until they are seen", async (t) => {
  const rest = gate();
  const chat = await openChat(t, browser, { turns: [[wait(rest.opened), say("Done.")]] });
  await chat.say("Go");
  const look = (hidden: boolean) =>
    chat.page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { value, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  await look(true);
  assert.equal(await chat.page.title(), "Acme Support");
  rest.open();
  await chat.page.waitForFunction(() => document.title === "(1) Acme Support");
  await look(false);
  assert.equal(await chat.page.title(), "Acme Support");
});

test("Shift+Enter makes a new line, which the field and the bubble show", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Two lines.")]] });
  await chat.input.focus();
  const before = await chat.input.boundingBox();
  await chat.page.keyboard.type("one");
  await chat.page.keyboard.press("Shift+Enter");
  await chat.page.keyboard.type("two");
  assert.equal(await chat.input.inputValue(), "one\ntwo");
  const grown = await chat.input.boundingBox();
  assert.ok((grown?.height ?? 0) > (before?.height ?? 0) + 10, "the field grows with its text");
  await chat.input.press("Enter");
  await chat.replies.getByText("Two lines.").waitFor();
  assert.equal(await shown(chat.questions), "You said:\none\ntwo");
});

test("Enter that ends an input method's composition does not send", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("はい。")]] });
  const device = await chat.page.context().newCDPSession(chat.page);
  await chat.input.focus();
  await device.send("Input.imeSetComposition", {
    text: "にほん",
    selectionStart: 3,
    selectionEnd: 3,
  });
  const enter = { type: "rawKeyDown", key: "Enter", code: "Enter" } as const;
  await device.send("Input.dispatchKeyEvent", { ...enter, windowsVirtualKeyCode: 13 });
  await device.send("Input.insertText", { text: "日本" });
  // Safari sends the key after the composition has ended, with the code 229.
  await device.send("Input.dispatchKeyEvent", { ...enter, windowsVirtualKeyCode: 229 });
  assert.equal(await chat.input.inputValue(), "日本");
  assert.equal(await chat.questions.count(), 0);
  // Nothing is sent before it is known what the tab has kept.
  await chat.send.click({ trial: true });
  await chat.input.press("Enter");
  await chat.replies.getByText("はい。").waitFor();
});

test("the picture of a message is shown while that is changed, and in the new one", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("A dot.")], [say("Still a dot.")]] });
  await chat.files.setInputFiles(DOT);
  await isDrawn(chat.drafts.locator("img"));
  await chat.ask("What is it?", "A dot.");
  await isDrawn(chat.questions.locator("img"));
  await change(chat, 0);
  await chat.page.getByRole("button", { name: "Remove dot.png" }).click();
  await chat.input.press("Escape");
  await isDrawn(chat.questions.locator("img"));
  await change(chat, 0);
  await isDrawn(chat.drafts.locator("img"));
  await chat.say("And now?");
  await chat.replies.getByText("Still a dot.").waitFor();
  await isDrawn(chat.questions.locator("img"));
});
