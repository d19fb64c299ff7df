import assert from "node:assert/strict";
import { after } from "node:test";
import { ApiError } from "../../server/protocol/errors.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate, within } from "../support/deadline.ts";
import { RED_PIXEL } from "../support/files.ts";
import { it, test } from "../support/rows.ts";
import { end as endTurn, fail, hang, say, wait } from "../support/scripted-provider.ts";
import {
  type ChatPage,
  contents,
  hasFocus,
  isDrawn,
  isFocused,
  openChat,
  shown,
  stopTime,
  untilTaken,
} from "./chat-page.ts";
import { holdStore, keptName, kept as textOfKept } from "./kept.ts";
import { allHeard, listen, untilHeard } from "./listening.ts";

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
  // On a loopback address without keys, the page does not ask for one.
  assert.equal(await chat.keyField.count(), 0);
  assert.equal(await chat.page.getByRole("button", { name: "Forget the saved key" }).count(), 0);
});

test("the text field has the cursor; Enter sends, the button sends, white space alone is not sent, and the conversation goes on", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")], [say("Two.")]] });
  await hasFocus(chat.input);
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
  await untilTaken(chat);
  assert.deepEqual(contents(chat, 1), ["First", "One.", "Second"]);
});

/** Messages that wait for the end of the answer, and the line below the last one. */
const pending = ({ page }: ChatPage) => page.locator(".pending-message");
const pendingLine = ({ page }: ChatPage) => page.locator(".pending-line");

/** Sends a message during an answer, after other pending ones, and waits until it is stored. */
async function leavePending(chat: ChatPage, text: string): Promise<void> {
  await chat.say(text);
  await pending(chat).filter({ hasText: text }).waitFor();
  await untilTaken(chat);
}

test("before an answer has ended its text is on the screen, a double-click does not stop it, and the next message is written and waits", async (t) => {
  const rest = gate();
  const chat = await openChat(t, browser, {
    agent: { agent: "Ada" },
    turns: [[say("The first **half"), wait(rest.opened), say("** and the rest.")], [say("Second.")]],
  });
  await chat.page.evaluate(() => {
    const said: string[] = [];
    Object.assign(window, { said });
    document.addEventListener("agent-chat-message", ({ text }) => said.push(text));
  });
  await chat.input.fill("First");
  await chat.send.click();
  await chat.replies.getByText("half").waitFor();
  assert.equal(await shown(chat.answer), "The first half", "an open mark is not shown raw");
  const heard = await listen(chat.page);
  // The second click of a double click: the send button has become the stop button.
  await chat.stop.dispatchEvent("click", { detail: 2 });
  const twoFrames = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  await chat.page.evaluate(twoFrames);
  assert.equal(await chat.stop.isEnabled(), true, "it is not stopping");
  await chat.input.fill("Second");
  await chat.send.click();
  await chat.stop.waitFor();
  assert.equal(await shown(pending(chat)), "Second");
  assert.equal(await shown(pendingLine(chat)), "Sent when Ada is done\nSend now");
  assert.equal(await chat.input.inputValue(), "");
  assert.deepEqual(await chat.page.evaluate("said"), ["First"], "it is not sent yet");
  await chat.page.evaluate(() => {
    const root = document.querySelector("agent-chat")?.shadowRoot as ShadowRoot;
    new MutationObserver(() => {
      if (root.textContent?.includes("Send anyway?")) Object.assign(root, { asked: true });
    }).observe(root, { childList: true, subtree: true, characterData: true });
  });
  rest.open();
  await chat.replies.getByText("Second.").waitFor();
  assert.match(await chat.replies.first().innerHTML(), /<strong>half<\/strong>/);
  assert.equal(await chat.questions.count(), 2);
  assert.equal(await pending(chat).count(), 0);
  assert.deepEqual(await chat.page.evaluate("said"), ["First", "Second"]);
  const asked = await chat.page.locator("agent-chat").evaluate((it) => it.shadowRoot && "asked" in it.shadowRoot);
  assert.equal(asked, false, "nobody is asked about what is being sent");
  assert.deepEqual(contents(chat, 1), ["First", "The first **half** and the rest.", "Second"]);
  await untilHeard(chat.page, heard, "Second.");
  assert.deepEqual(heard, [
    "Sent when Ada is done",
    "The first half and the rest.",
    "Answering…",
    "Your next question is being answered",
    "Second.",
  ]);
});

test("three messages wait over a reload, are changed and removed by keyboard, and go as one; a fourth stays in the text field, which says why", async (t) => {
  const rest = gate();
  const chat = await openChat(t, browser, {
    agent: { agent: "Ada" },
    turns: [[say("Well,"), wait(rest.opened), say(" well.")], [say("All three.")]],
  });
  const { page } = chat;
  const heard = await listen(page);
  await chat.say("First");
  await chat.replies.getByText("Well,").waitFor();
  for (const text of ["Secont", "Third", "Remove me"]) {
    await leavePending(chat, text);
  }
  await untilHeard(page, heard, "Sent when Ada is done");
  await page.clock.install();
  await chat.say("Fourth");
  const note = page.locator(".busy-note");
  assert.equal(await shown(note), "Three messages are waiting already. Send them now, or remove one.");
  await untilHeard(page, heard, "Three messages are waiting already.");
  assert.equal(await chat.input.inputValue(), "Fourth");
  await page.clock.runFor(5_000);
  await note.waitFor({ state: "detached" });
  // Backwards from the text field: the button for files, the send button, and two buttons for each message.
  await chat.input.focus();
  for (let presses = 0; presses < 2; presses += 1) await page.keyboard.press("Shift+Tab");
  await hasFocus(page.getByRole("button", { name: "Send now" }));
  await page.keyboard.press("Shift+Tab");
  // Holding the key down removes one message, and does not send the draft.
  await page.keyboard.down("Enter");
  await pending(chat).nth(2).waitFor({ state: "detached" });
  await chat.input.and(page.locator(":focus")).waitFor();
  await page.keyboard.down("Enter");
  await page.keyboard.up("Enter");
  const remove = pending(chat).getByRole("button", { name: "Remove" });
  await remove.last().dispatchEvent("click", { detail: 2 });
  await remove.first().focus();
  await page.keyboard.down("Enter");
  await remove.nth(1).waitFor({ state: "detached" });
  await page.keyboard.down("Enter");
  await page.keyboard.up("Enter");
  await hasFocus(remove, "the next one has its place");
  assert.deepEqual(await pending(chat).allInnerTexts(), ["Third"]);
  await chat.input.fill("Secont");
  await pending(chat).getByRole("button", { name: "Change" }).click();
  await pending(chat).waitFor({ state: "detached" });
  assert.equal(await chat.input.inputValue(), "Third\n\nSecont", "a draft stays, below it");
  for (const text of ["Secont", "Third"]) {
    await leavePending(chat, text);
  }
  await chat.input.focus();
  await page.keyboard.press("ArrowUp");
  await pending(chat).nth(1).waitFor({ state: "detached" });
  assert.equal(await chat.input.inputValue(), "Third");
  await chat.input.fill("");
  await pending(chat).getByRole("button", { name: "Change" }).click();
  await pending(chat).waitFor({ state: "detached" });
  assert.equal(await chat.input.inputValue(), "Secont");
  for (const text of ["Second", "Third", "Fourth"]) {
    await leavePending(chat, text);
  }
  await page.reload();
  await chat.replies.getByText("Well,").waitFor();
  await pending(chat).nth(2).waitFor();
  await page.setViewportSize({ width: 390, height: 460 });
  const fold = page.getByRole("button", { name: "3 waiting" });
  await fold.waitFor();
  assert.equal(await pending(chat).filter({ visible: true }).count(), 0);
  const height = async () => (await page.locator('[part="pending"]').boundingBox())?.height ?? 0;
  assert.ok((await height()) <= 36, `above a phone's keyboard they take one line, not ${await height()} px`);
  await fold.click();
  await pending(chat).getByText("Fourth").waitFor();
  await fold.and(page.locator('[aria-expanded="true"]')).click();
  await page.setViewportSize({ width: 1280, height: 720 });
  await pending(chat).nth(2).waitFor();
  rest.open();
  await chat.replies.getByText("All three.").waitFor();
  assert.equal(await pending(chat).count(), 0);
  assert.deepEqual(contents(chat, 1), ["First", "Well, well.", "Second\n\nThird\n\nFourth"]);
});

for (const [what, turn, end] of [
  ["was stopped", [say("Half"), hang], (chat: ChatPage) => chat.input.press("Escape")],
  ["has failed", [say("Half"), fail(new ApiError("provider_error", "The model is ill."))], () => {}],
  ["was cut", [say("Half"), endTurn("length")], () => {}],
] as const) {
  it(`after an answer that ${what}, what is pending is sent only with the person's word, also after a reload`, async (t) => {
    const go = gate();
    const chat = await openChat(t, browser, {
      turns: [[say("Well, "), wait(go.opened), ...turn], [say("Another.")], [say("Ships.")]],
    });
    const { page } = chat;
    await chat.say("Trains?");
    await chat.replies.getByText("Well,").waitFor();
    await chat.say("Ships?");
    await pending(chat).waitFor();
    const heard = await listen(page);
    // Waits because the alert appears only after a moment.
    const alert = what === "has failed" ? page.getByRole("alert").filter({ hasText: "ill" }).last() : undefined;
    const isAlerted = alert?.waitFor({ state: "attached" });
    go.open();
    await chat.replies.getByText("Half").waitFor();
    await end(chat);
    await isAlerted;
    await untilHeard(page, heard, "Send anyway?");
    const ended = heard.findLastIndex((it) => /You stopped this answer|The model is ill|was cut/.test(it));
    assert.ok(ended >= 0 && heard.indexOf("Send anyway?") > ended, `${heard}`);
    const anyway = page.getByRole("list", { name: "Send anyway?" }).getByRole("button", { name: "Send anyway?" });
    await anyway.waitFor();
    await page.reload();
    await anyway.waitFor();
    assert.equal(chat.server.model.asked.length, 1);
    if (what === "was stopped") {
      // Sending another message leaves the pending one in place.
      await chat.ask("Planes?", "Another.");
      await anyway.waitFor();
      assert.equal(chat.server.model.asked.length, 2);
    }
    await anyway.click();
    await pending(chat).waitFor({ state: "detached" });
    await chat.answered(what === "was stopped" ? 3 : 2);
    assert.equal(contents(chat, what === "was stopped" ? 2 : 1)?.at(-1), "Ships?");
  });
}

it("what is sent by Send anyway? is not said to wait for an answer, however long the browser takes to store it", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Half"), hang], [say("Ships.")]] });
  const { page } = chat;
  await chat.say("Trains?");
  await chat.replies.getByText("Half").waitFor();
  await leavePending(chat, "Ships?");
  await chat.input.press("Escape");
  const anyway = page.getByRole("list", { name: "Send anyway?" }).getByRole("button", { name: "Send anyway?" });
  await anyway.waitFor();
  const heard = await listen(page);
  const release = await holdStore(page);
  await anyway.click();
  await page.evaluate(() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next))));
  assert.equal(await page.locator('[part="pending"]').getByText("Sent when").count(), 0);
  await release();
  await chat.replies.getByText("Ships.").waitFor();
  await allHeard(page);
  assert.deepEqual(
    heard.filter((text) => /^Sent when/.test(text)),
    [],
  );
});

it("looking at another answer, or changing a message, sends nothing that is pending", async (t) => {
  const go = gate();
  const ill = fail(new ApiError("provider_error", "The model is ill."));
  const chat = await openChat(t, browser, {
    turns: [[say("One.")], [say("Two, "), wait(go.opened), ill], [say("Un.")], [say("Ships.")]],
  });
  const { page } = chat;
  const anyway = page.getByRole("button", { name: "Send anyway?" });
  await chat.ask("Trains?", "One.");
  await page.getByRole("button", { name: "Answer again" }).click();
  await chat.replies.getByText("Two,").waitFor();
  await chat.say("Ships?");
  await pending(chat).waitFor();
  go.open();
  await chat.retry.waitFor();
  await page.getByRole("button", { name: "Previous" }).click();
  await chat.replies.getByText("One.").waitFor();
  await anyway.waitFor();
  await page.getByRole("button", { name: "Change this message" }).click();
  await chat.edited.fill("Planes?");
  await chat.edited.press("Enter");
  await chat.replies.getByText("Un.").waitFor();
  await chat.answered();
  await anyway.click();
  await chat.replies.getByText("Ships.").waitFor();
  assert.deepEqual(contents(chat, 3), ["Planes?", "Un.", "Ships?"]);
});

test("Send now stops the answer and sends what is pending; a message with a file goes by itself, and not without the file unasked", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("Half"), hang], [say("Ships.")], [say("Seen.")], [say("Half"), hang], [say("Read.")]],
  });
  const { page } = chat;
  await chat.say("Trains?");
  await chat.replies.getByText("Half").waitFor();
  await leavePending(chat, "Ships?");
  await chat.files.setInputFiles(DOT);
  await chat.drafts.waitFor();
  await chat.say("And this?");
  await pending(chat).nth(1).waitFor();
  assert.match(await shown(pending(chat).nth(1)), /And this\?\s+dot\.png/);
  const heard = await listen(page);
  await page.getByRole("button", { name: "Send now" }).click();
  await chat.replies.getByText("Seen.").waitFor();
  await untilHeard(page, heard, "Seen.");
  assert.equal(heard.slice(0, 3).join(" "), "Half You stopped this answer. Answering…");
  await chat.server.model.asked[0]?.aborted;
  assert.equal(contents(chat, 1)?.at(-1), "Ships?");
  assert.match(JSON.stringify(contents(chat, 2)?.at(-1)), /"And this\?".*image\/png/);
  await chat.say("Once more?");
  await chat.replies.getByText("Half").nth(1).waitFor();
  await chat.files.setInputFiles(DOT);
  await chat.drafts.waitFor();
  const long = "And that? ".repeat(40).trim();
  await leavePending(chat, long);
  await leavePending(chat, "Both?");
  await page.reload();
  const lost = "dot.png: no longer here, please attach again.";
  const inside = (text: string) =>
    pending(chat)
      .getByText(text)
      .evaluate((it) => it.getBoundingClientRect().bottom < (it.closest("li")?.getBoundingClientRect().bottom ?? 0));
  assert.ok(await inside(lost), "however long the text is");
  await chat.replies.getByText("Half").nth(1).waitFor();
  await pending(chat).first().getByRole("button", { name: "Change" }).click();
  await pending(chat).nth(1).waitFor({ state: "detached" });
  await page.locator('.dock [part="refusals"]').getByText(lost).waitFor();
  await chat.input.fill("And that?");
  await pending(chat).nth(0).getByRole("button", { name: "Remove" }).click();
  await pending(chat).waitFor({ state: "detached" });
  await chat.say("And that?");
  await pending(chat).waitFor();
  await page.getByRole("button", { name: "Send now" }).click();
  await chat.replies.getByText("Read.").waitFor();
  assert.equal(contents(chat, 4)?.at(-1), "And that?");
});

it("what Send now sends asks nothing more, however long the browser takes to store it", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Half"), hang], [say("Ships.")], [say("Seen.")]] });
  const { page } = chat;
  await chat.say("Trains?");
  await chat.replies.getByText("Half").waitFor();
  await leavePending(chat, "Ships?");
  await chat.files.setInputFiles(DOT);
  await chat.drafts.waitFor();
  await leavePending(chat, "And this?");
  const heard = await listen(page);
  await page.clock.install();
  const release = await holdStore(page);
  await page.getByRole("button", { name: "Send now" }).click();
  await chat.replies.getByText("You stopped this answer.").waitFor();
  await chat.send.waitFor();
  await page.clock.runFor(5_000);
  assert.equal(await page.getByRole("button", { name: "Send anyway?" }).count(), 0);
  await release();
  await chat.replies.getByText("Seen.").waitFor();
  assert.deepEqual(
    heard.filter((text) => text === "Send anyway?"),
    [],
  );
});

it("Send now sends nothing that asks first: that waits for the button below it", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("Half"), hang], [say("Half"), hang], [say("Ships.")], [say("Half"), hang], [say("Both.")]],
  });
  const { page } = chat;
  const now = page.getByRole("button", { name: "Send now" });
  await chat.say("Trains?");
  await chat.replies.getByText("Half").waitFor();
  await leavePending(chat, "Planes?");
  await chat.stop.click();
  await page.getByRole("button", { name: "Send anyway?" }).waitFor();
  await chat.say("More?");
  await chat.replies.getByText("Half").nth(1).waitFor();
  await leavePending(chat, "Ships?");
  await now.nth(1).click();
  await chat.replies.getByText("Ships.").waitFor();
  assert.equal(contents(chat, 2)?.at(-1), "Ships?");
  await page.getByRole("button", { name: "Send anyway?" }).waitFor();
  assert.equal(await shown(pending(chat)), "Planes?");
  await chat.say("And more?");
  await chat.replies.getByText("Half").nth(2).waitFor();
  await chat.say("Bikes?");
  await pending(chat).nth(1).waitFor();
  // A pending message is sent together with this one, because the answer ends here.
  await now.first().click();
  await chat.replies.getByText("Both.").waitFor();
  assert.equal(contents(chat, 4)?.at(-1), "Planes?\n\nBikes?");
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

/** Waits until the conversations are stored, which happens asynchronously. */
async function untilKept(chat: ChatPage, count: number): Promise<void> {
  const waiting = async () => {
    while ((await kept(chat)) !== count) await chat.page.evaluate(() => new Promise(requestAnimationFrame));
  };
  await within(waiting(), `${count} conversations that are kept`);
}

/** The page for frames, where conversations are not listed and a new one replaces the last. */
const NOT_LISTED = "/?embed=1";

const close = (chat: ChatPage) => chat.page.getByRole("button", { name: "New conversation" }).click();
const undo = (chat: ChatPage) => chat.page.getByRole("button", { name: "Undo" });

/** The number of stored conversations. Changes since a row was written are in rows of their own, which do not count. */
const kept = async ({ page }: ChatPage) =>
  page.evaluate(
    (name) =>
      new Promise((resolve) => {
        const opening = indexedDB.open(name);
        opening.onsuccess = () => {
          const ids = opening.result.transaction("conversations").objectStore("conversations").getAllKeys();
          ids.onsuccess = () => {
            opening.result.close();
            resolve(new Set(ids.result.map((id) => String(id).replace(/ op .*$/, ""))).size);
          };
        };
      }),
    await keptName(page),
  );

test("New conversation ends a running answer and forgets everything that was said, with the next message", async (t) => {
  const chat = await openChat(t, browser, { path: NOT_LISTED, turns: [[say("Noted."), hang], [say("Fresh.")]] });
  await chat.say("My name is Ann");
  await chat.replies.getByText("Noted.").waitFor();
  await close(chat);
  await chat.greeting.waitFor();
  assert.equal(await chat.page.getByText("Noted.").count(), 0);
  await chat.ask("Who am I?", "Fresh.");
  await chat.server.model.asked[0]?.aborted;
  assert.deepEqual(contents(chat, 1), ["Who am I?"]);
  assert.equal(await undo(chat).count(), 0);
  await untilKept(chat, 1);
});

test("New conversation can be undone for ten seconds, with the answer that was being given, its files and the draft", async (t) => {
  const rest = gate();
  const chat = await openChat(t, browser, {
    path: NOT_LISTED,
    turns: [[say("One.")], [say("Half"), wait(rest.opened), say(" and the rest.")], [say("Third.")]],
  });
  const heard = await listen(chat.page);
  await chat.ask("First", "One.");
  await chat.files.setInputFiles(DOT);
  await isDrawn(chat.drafts.locator("img"));
  await chat.say("Second");
  await chat.replies.getByText("Half").waitFor();
  await chat.input.fill("A draft");
  await close(chat);
  await chat.page.locator('[part="closed"]').getByText("Conversation closed.").waitFor();
  assert.equal(await chat.questions.count(), 0);
  await untilKept(chat, 1);
  await untilHeard(chat.page, heard, "Conversation closed.");
  await untilHeard(chat.page, heard, "Undo");
  await hasFocus(chat.input);
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
  const [second, ...others] = contents(chat, 2)?.slice(2) ?? [];
  assert.match(JSON.stringify(second), /Second.*image_url/);
  assert.deepEqual(others, ["Half and the rest.", "A draft"]);
});

it("after ten seconds a closed conversation is forgotten, here and by the server; after a reload before, too", async (t) => {
  const chat = await openChat(t, browser, {
    path: NOT_LISTED,
    turns: [
      [say("One."), hang],
      [say("Two."), hang],
    ],
  });
  await chat.say("First");
  await chat.replies.getByText("One.").waitFor();
  await chat.page.clock.install();
  await stopTime(chat.page);
  await close(chat);
  await undo(chat).waitFor();
  await chat.page.clock.runFor(9_000);
  assert.equal(await undo(chat).isVisible(), true);
  await chat.page.clock.runFor(1_000);
  await undo(chat).waitFor({ state: "detached" });
  await chat.page.clock.resume();
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
  assert.doesNotMatch(await textOfKept(chat.page), /First|One|Second|Two/);
});

it("a message that was being changed is being changed again after Undo", async (t) => {
  const chat = await openChat(t, browser, { path: NOT_LISTED, turns: [[say("One.")]] });
  await chat.ask("First", "One.");
  await chat.input.fill("A draft");
  await change(chat, 0);
  await chat.edited.fill("First, changed");
  await close(chat);
  assert.equal(await chat.input.inputValue(), "A draft");
  await undo(chat).click();
  await chat.edited.waitFor();
  assert.equal(await chat.edited.inputValue(), "First, changed");
  await chat.edited.press("Escape");
  await chat.edited.waitFor({ state: "detached" });
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
  // Safari sends this key event after the end of the composition, with key code 229.
  await device.send("Input.dispatchKeyEvent", { ...enter, windowsVirtualKeyCode: 229 });
  assert.equal(await chat.input.inputValue(), "日本");
  assert.equal(await chat.questions.count(), 0);
  // Nothing is sent before the tab's stored data are known.
  await chat.send.click({ trial: true });
  await chat.input.press("Enter");
  await chat.replies.getByText("はい。").waitFor();
});

it("the picture of a message is shown while that is changed, and in the new one", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("A dot.")], [say("Still a dot.")]] });
  await chat.files.setInputFiles(DOT);
  await isDrawn(chat.drafts.locator("img"));
  await chat.ask("What is it?", "A dot.");
  await isDrawn(chat.questions.locator("img"));
  await change(chat, 0);
  await chat.page.getByRole("button", { name: "Remove dot.png" }).click();
  await chat.edited.press("Escape");
  await isDrawn(chat.questions.locator("img"));
  await change(chat, 0);
  await isDrawn(chat.page.locator('[part="editor"] img'));
  await chat.edited.fill("And now?");
  await chat.edited.press("Enter");
  await chat.replies.getByText("Still a dot.").waitFor();
  await isDrawn(chat.questions.locator("img"));
});
