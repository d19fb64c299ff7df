/** Routers, portals and transitions remove the chat, but not on a user's request: the answer continues. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import { type ChatPage, hasFocus, openChat } from "../browser/chat-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { hang, say, wait } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

/** A chat in the middle of an answer, whose rest comes when the test says so. */
async function openInMidAnswer(t: TestContext) {
  const rest = gate();
  const chat = await openChat(t, browser, {
    turns: [[say("Half of"), wait(rest.opened), say(" it all.")], [say("On.")]],
  });
  await chat.page.clock.install();
  await chat.page.reload();
  await chat.say("First");
  await chat.replies.getByText("Half of").waitFor();
  return { ...chat, rest };
}

/** Runs code on the chat, like the views of a site. `leaving` contains removed elements. */
const run = ({ page }: ChatPage, code: string): Promise<void> =>
  page.evaluate(`(() => {
    const chat = document.querySelector("agent-chat");
    const copy = () => { const next = chat.cloneNode(); next.className = "next"; return next; };
    window.home ??= chat.parentElement;
    window.leaving ??= [];
    ${code}
  })()`);

/** The first step, and one a moment later. */
for (const [way, first, then] of [
  ["the same element, a task later", "leaving.push(chat); chat.remove();", "home.append(leaving[0]);"],
  ["a new element in its place", "chat.replaceWith(copy());", ""],
  ["a new element, a task later", "leaving.push(copy()); chat.remove();", "home.append(leaving[0]);"],
  ["a new element that comes before the old one leaves", "chat.after(copy());", "chat.remove();"],
] as const) {
  test(`an answer goes on in ${way}`, async (t) => {
    const chat = await openInMidAnswer(t);
    await run(chat, first);
    await chat.page.clock.runFor(300);
    if (then) await run(chat, then);
    await chat.page.waitForFunction(() => document.querySelectorAll("agent-chat").length === 1);
    chat.rest.open();
    await chat.replies.getByText("Half of it all.").waitFor();
    assert.equal(await chat.replies.getByText("You stopped this answer.").count(), 0);
    await chat.ask("Second", "On.");
    assert.equal(await chat.questions.count(), 2);
    assert.equal(chat.server.model.asked.length, 2);
    await chat.page.reload();
    await chat.replies.getByText("On.").waitFor();
    assert.equal(await chat.questions.count(), 2);
  });
}

test("an answer has gone on when the element returns after a minute", async (t) => {
  const chat = await openInMidAnswer(t);
  await run(chat, "leaving.push(chat); chat.remove();");
  chat.rest.open();
  await chat.page.clock.runFor("01:00");
  await run(chat, "home.append(leaving[0]);");
  await chat.replies.getByText("Half of it all.").waitFor();
  assert.equal(await chat.replies.getByText("You stopped this answer.").count(), 0);
  assert.equal(chat.server.model.asked.length, 1);
});

test('with persist="none" the same element goes on, and a new one begins with an empty conversation', async (t) => {
  const rest = gate();
  const chat = await openChat(t, browser, { turns: [[say("Half of"), wait(rest.opened), say(" it all.")]] });
  await run(chat, 'chat.setAttribute("persist", "none");');
  await chat.say("First");
  await chat.replies.getByText("Half of").waitFor();
  await run(chat, "leaving.push(chat); chat.remove(); setTimeout(() => home.append(leaving[0]));");
  await chat.input.waitFor();
  rest.open();
  await chat.replies.getByText("Half of it all.").waitFor();
  await run(chat, "chat.replaceWith(copy());");
  await chat.greeting.waitFor();
  assert.equal(await chat.questions.count(), 0);
});

test("moved in the page, the field keeps the focus unless something else has taken it, and Escape is heard", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Half of"), hang]] });
  await chat.say("First");
  await chat.replies.getByText("Half of").waitFor();
  await run(chat, "document.body.append(document.createElement('button'), document.createElement('main'));");
  const other = chat.page.locator("body > button");
  for (const move of ["append(chat)", "moveBefore(chat, null)"]) {
    await chat.input.focus();
    await run(chat, `document.querySelector("main").${move};`);
    await hasFocus(chat.input, move);
    await run(chat, `document.body.${move}; document.querySelector("body > button").focus();`);
    await hasFocus(other, move);
  }
  await chat.input.focus();
  await run(chat, 'document.querySelector("main").append(chat);');
  await chat.page.keyboard.press("Escape");
  await chat.replies.getByText("You stopped this answer.").waitFor();
});
