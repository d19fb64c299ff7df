import assert from "node:assert/strict";
import { after, type TestContext } from "node:test";
import { ApiError } from "../../server/protocol/errors.ts";
import { launchBrowser } from "../support/browser.ts";
import { type Gate, gate } from "../support/deadline.ts";
import { it, test } from "../support/rows.ts";
import { call, fail, say, think, wait } from "../support/scripted-provider.ts";
import { broken, define, echo } from "../support/test-tools.ts";
import { type ChatPage, hasFocus, holdTime, isFocused, openChat, shown, stopTime } from "./chat-page.ts";
import { allHeard, listen, untilHeard } from "./listening.ts";

const browser = await launchBrowser({ after });

const open = '[aria-expanded="true"]';
const closed = '[aria-expanded="false"]';

/** An answer that thinks, calls a tool, thinks again, and pauses before its text. */
async function openSteps(t: TestContext, rest: Gate): Promise<ChatPage> {
  const chat = await openChat(t, browser, {
    agent: { tools: [echo] },
    turns: [
      [think("First."), call("c1", "echo", { text: "ping" })],
      [think("Second."), wait(rest.opened), say("Done.")],
    ],
  });
  await chat.say("Go");
  await chat.thinking.getByText("Second.").waitFor();
  return chat;
}

const group = (chat: ChatPage) => chat.page.getByRole("button", { name: /^3 steps/ });

test("three steps in a row fold into one line that opens, once the answer has begun", async (t) => {
  const rest = gate();
  const chat = await openSteps(t, rest);
  await group(chat).and(chat.page.locator(open)).waitFor();
  assert.equal(await chat.tools.isVisible(), true, "what goes on can be seen");
  rest.open();
  await chat.send.waitFor();
  await group(chat).and(chat.page.locator(closed)).waitFor();
  assert.equal(await chat.tools.isVisible(), false);
  await chat.answer.waitFor();
  await group(chat).focus();
  await chat.page.keyboard.press("Tab");
  assert.equal(await isFocused(chat.tools.locator("button")), false, "closed rows are no stops");
  await group(chat).press("Enter");
  await chat.page.keyboard.press("Tab");
  await hasFocus(chat.thinking.first().getByRole("button"));
});

test("calls of the same tool are told apart by their arguments, in sight and by name, until a row is open", async (t) => {
  const chat = await openChat(t, browser, {
    agent: { tools: [echo] },
    turns: [
      [call("c1", "echo", { text: "ping" }), call("c2", "echo", { text: `<b>${"pong ".repeat(40)}` })],
      [say("Done.")],
    ],
  });
  await chat.ask("Go", "Done.");
  const [first, second] = [chat.tools.nth(0), chat.tools.nth(1)];
  await first.getByRole("button", { name: "Echo ping completed" }).waitFor();
  await second.getByRole("button", { name: /^Echo <b>pong pong .*… completed/ }).waitFor();
  const lines = await second.locator(".hint").evaluate((hint) => {
    return hint.getBoundingClientRect().height / Number.parseFloat(getComputedStyle(hint).lineHeight);
  });
  assert.ok(lines < 1.5, `${lines} lines`);
  // With the quotation marks of the user's language; without a duration, which is below a second.
  assert.deepEqual([await first.locator("q").count(), await first.locator(".aside").count()], [1, 0]);
  await first.getByRole("button").click();
  await first.getByRole("button", { name: /^Echo completed/ }).waitFor();
});

it("a tool that Stop breaks off is stopped and not failed, in sight and aloud; what failed before has failed", async (t) => {
  const endless = define(
    "endless",
    (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      }),
  );
  const chat = await openChat(t, browser, {
    agent: { tools: [broken, endless] },
    turns: [[call("c1", "broken"), call("c2", "endless")], [say("Go on.")]],
  });
  await chat.say("Go");
  await chat.tools.and(chat.replies.locator('[data-status="failed"]')).waitFor();
  const heard = await listen(chat.page);
  await chat.stop.click();
  await untilHeard(chat.page, heard, "Endless: stopped");
  await chat.replies.getByText("You stopped this answer.").waitFor();
  assert.equal(await chat.page.locator(".spinner").count(), 0);
  const row = (name: RegExp) => chat.page.getByRole("button", { name });
  await row(/^Broken failed/).waitFor();
  await row(/^Endless stopped/).click();
  // The server's message about the stop is readable.
  await chat.tools.getByText("Stopped before it finished.").waitFor();
  await chat.ask("And now?", "Go on.");
});

it("what the reader has opened stays open, and so does the group around it", async (t) => {
  const rest = gate();
  const chat = await openSteps(t, rest);
  const first = chat.thinking.first().getByRole("button");
  await first.and(chat.page.locator(closed)).waitFor();
  await first.click();
  await chat.thinking.getByText("First.").waitFor();
  rest.open();
  await chat.send.waitFor();
  // Waits until the row has closed by itself: after that, no other row will.
  await chat.thinking.last().getByRole("button").and(chat.page.locator(closed)).waitFor();
  assert.equal(await chat.thinking.getByText("First.").isVisible(), true);
  assert.equal(await group(chat).getAttribute("aria-expanded"), "true");
});

it("a group with a failed tool says so, with alarm only if the answer has failed, and the focus on a row survives the line above it", async (t) => {
  const next = gate();
  const chat = await openChat(t, browser, {
    agent: { tools: [broken, echo] },
    turns: [
      [call("c1", "broken"), call("c2", "echo", { text: "a" })],
      [wait(next.opened), call("c3", "echo", { text: "b" })],
      [say("Done.")],
      [call("c4", "broken"), call("c5", "echo", { text: "a" })],
      [call("c6", "broken")],
      [say("Sorry.")],
      [call("c7", "broken"), call("c8", "echo", { text: "a" }), call("c9", "echo", { text: "b" })],
      [fail(new ApiError("provider_error", "The model is ill."))],
    ],
  });
  await chat.say("Go");
  const row = chat.tools.first().locator("button");
  await row.focus();
  next.open();
  await chat.page.getByRole("button", { name: /^3 steps\s*1 failed$/ }).waitFor();
  await hasFocus(row);
  await chat.send.waitFor();
  const steps = chat.page.locator('[part="steps"]');
  assert.equal(await steps.getAttribute("data-status"), "coped");
  await chat.ask("Again", "Sorry.");
  await chat.page.getByRole("button", { name: /^3 steps\s*2 failed$/ }).waitFor();
  assert.equal(await steps.last().getAttribute("data-status"), "coped", "also if the last of them failed");
  const colour = (which: typeof steps) =>
    which
      .locator(".step-icon")
      .first()
      .evaluate((icon) => getComputedStyle(icon).color);
  const neutral = await steps
    .first()
    .locator(".step-name")
    .first()
    .evaluate((name) => getComputedStyle(name).color);
  assert.deepEqual([await colour(steps.first()), await colour(steps.last())], [neutral, neutral]);
  await chat.say("Once more");
  await chat.error.waitFor();
  assert.equal(await steps.last().getAttribute("data-status"), "failed");
  assert.notEqual(await colour(steps.last()), neutral);
});

test("waiting is said in words from two seconds on and in seconds from ten on, also behind a text that has stopped; a running tool counts its seconds, unheard", async (t) => {
  const [first, second, third] = [gate(), gate(), gate()];
  const chat = await openChat(t, browser, {
    agent: { agent: "Ada", tools: [define("slow", () => second.opened)] },
    turns: [
      [wait(first.opened), call("c1", "slow")],
      [say("Nearly"), wait(third.opened), say(" done.")],
    ],
  });
  const pass = await holdTime(chat.page);
  const heard = await listen(chat.page);
  await chat.say("Go");
  const waiting = chat.replies.locator(".waiting");
  await waiting.waitFor();
  await pass(1_999);
  assert.deepEqual(await waiting.allInnerTexts(), [""]);
  await pass(2_001);
  assert.equal(await shown(waiting), "Ada is working");
  await pass(5_999);
  assert.equal(await shown(waiting), "Ada is working");
  await pass(2_001);
  assert.match(await shown(waiting), /^Ada is working\s+12s$/);
  first.open();
  const row = chat.tools.getByRole("button", { name: "slow running" });
  await row.waitFor();
  await waiting.waitFor({ state: "detached" });
  await pass(4_000);
  await row
    .and(chat.page.getByRole("button", { name: "Slow running", exact: true }))
    .getByText(/^4s$/)
    .waitFor();
  // The counter pauses while the page is hidden.
  await chat.page.evaluate(() => {
    Object.defineProperty(document, "hidden", { value: true, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  const before = await shown(row);
  await pass(20_000);
  assert.equal(await shown(row), before);
  await chat.page.evaluate(() => {
    Object.defineProperty(document, "hidden", { value: false });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await row.getByText(/^24s$/).waitFor();
  second.open();
  // A text that no longer grows is not a sign of work.
  await chat.answer.getByText("Nearly").waitFor();
  assert.equal(await waiting.count(), 0);
  await pass(2_000);
  assert.equal(await waiting.count(), 0);
  await pass(3_000);
  assert.equal(await shown(waiting), "Ada is working");
  third.open();
  await chat.answered();
  assert.equal(await waiting.count(), 0);
  assert.deepEqual(
    heard.filter((text) => /working|\d/.test(text)),
    [],
  );
});

test("a long output is cut, shows all on request, and is copied whole", async (t) => {
  const text = `${"0123456789 ".repeat(3_000)}the end`;
  const chat = await openChat(t, browser, {
    agent: { tools: [echo] },
    turns: [[call("c1", "echo", { text })], [say("Done.")]],
    browser: { permissions: ["clipboard-read", "clipboard-write"] },
  });
  await chat.ask("Go", "Done.");
  await chat.tools.getByRole("button", { name: /^Echo/ }).click();
  const output = chat.tools.locator("pre").last();
  assert.doesNotMatch((await output.textContent()) ?? "", /the end/);
  const height = await output.evaluate((box) => box.clientHeight);
  assert.ok(height <= 256, `it scrolls in a box of its own, ${height} px high`);
  await chat.tools.getByRole("button", { name: "Copy: Output" }).click();
  assert.equal(await chat.page.evaluate(() => navigator.clipboard.readText()), text);
  await chat.tools
    .getByRole("button", { name: /^Show all \(\d+(\.\d)? kB\)/ })
    .last()
    .click();
  assert.equal(await output.textContent(), text);
});

it("a long output that is JSON is laid out when all of it is asked for", async (t) => {
  const text = JSON.stringify({ list: Array.from({ length: 5_000 }, (_, at) => at * at) });
  const turns = [[call("c1", "echo", { text })], [say("Done.")]];
  const chat = await openChat(t, browser, { agent: { tools: [echo] }, turns });
  await chat.ask("Go", "Done.");
  await chat.tools.getByRole("button", { name: /^Echo/ }).click();
  const output = chat.tools.locator("pre").last();
  assert.equal(await output.textContent(), `${text.slice(0, 8_000)}…`);
  const more = chat.tools.getByRole("button", { name: /^Show all/ }).last();
  await more.click();
  const whole = JSON.stringify(JSON.parse(text), null, 2);
  assert.equal(await output.textContent(), whole);
  // The browser decides on a frame what is in view. Until then the rest has the height from the style sheet.
  const height = await output.evaluate(async ({ lastElementChild }) => {
    for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
    return lastElementChild?.clientHeight;
  });
  assert.equal(height, 2000, "the end is not laid out");
  const selected = await output.evaluate((box) => {
    const selection = getSelection();
    selection?.selectAllChildren(box);
    return selection?.toString();
  });
  assert.equal(selected, whole);
});

/** A hosted agent: a call with two steps, which continues when the test says so. */
async function openLongCall(t: TestContext) {
  const [searched, ended] = [gate(), gate()];
  const event = (type: string, data: object) => ({ type, data });
  async function* run() {
    yield event("tool_call", { id: "c1", tool: "research", arguments: { topic: "contract" } });
    yield event("tool_progress", { id: "c1", text: "Reading page 3 of 9" });
    yield event("tool_call", { id: "s1", tool: "search_web", parent: "c1" });
    yield event("tool_progress", { id: "s1", text: "Asking the archive" });
    await searched.opened;
    yield event("tool_result", { id: "s1", output: "page 7" });
    yield event("tool_call", { id: "s2", tool: "open_page", parent: "c1" });
    await ended.opened;
    yield event("tool_result", { id: "c1", output: "three months" });
    yield "It is three months.";
  }
  const chat = await openChat(t, browser, { agent: { model: undefined, run } as never });
  return { chat, searched, ended, steps: chat.page.locator("agent-chat-step agent-chat-steps") };
}

test("a long call shows in its row what it does, and its steps folded below it, also after a reload", async (t) => {
  const { chat, searched, ended, steps } = await openLongCall(t);
  await chat.say("Go");
  await chat.page.getByRole("button", { name: "Research Reading page 3 of 9 running" }).waitFor();
  const folded = (name: string) => steps.getByRole("button", { name, expanded: false, exact: true });
  await folded("Search web Asking the archive").waitFor();
  await chat.page.reload();
  await chat.page.getByRole("button", { name: "Research Reading page 3 of 9 running" }).waitFor();
  await folded("Search web Asking the archive").waitFor();
  searched.open();
  await folded("Open page").click();
  await steps.getByRole("button", { name: "Search web completed" }).waitFor();
  ended.open();
  await chat.replies.getByText("It is three months.").waitFor();
  await chat.page.getByRole("button", { name: "Research contract completed" }).waitFor();
  await steps.getByRole("button", { name: "Open page failed" }).waitFor();
  assert.equal(await chat.page.getByText("Reading page").count(), 0, "what it did is over");
  const json = await chat.page.locator("agent-chat").evaluate((it) => {
    return (it as HTMLElementTagNameMap["agent-chat"]).exportTranscript("json");
  });
  const [, { blocks }] = JSON.parse(json);
  assert.deepEqual(
    blocks[0].steps.map(({ tool, status }: Record<string, string>) => [tool, status]),
    [
      ["search_web", "completed"],
      ["open_page", "failed"],
    ],
  );
});

it("what a long call does is said once in ten seconds", async (t) => {
  const { chat, searched, ended } = await openLongCall(t);
  const heard = await listen(chat.page);
  await chat.page.clock.install();
  await chat.say("Go");
  await untilHeard(chat.page, heard, "Using Research…");
  await stopTime(chat.page);
  const secondsUntil = async (text: string) => {
    let seconds = 0;
    for (; !heard.includes(text); seconds++) {
      await chat.page.clock.runFor(1_000);
      await allHeard(chat.page);
    }
    return seconds;
  };
  await secondsUntil("Search web");
  searched.open();
  const seconds = await secondsUntil("Open page");
  assert.ok(seconds >= 9, `${seconds} seconds`);
  ended.open();
  await secondsUntil("Research: completed");
  assert.equal(heard.filter((text) => /Search web|Reading|Open page/.test(text)).length, 2, heard.join("; "));
});
