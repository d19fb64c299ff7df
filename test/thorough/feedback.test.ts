/** `feedback` and `actions`: what users can do with messages, and the page's events about their ratings. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Feedback } from "../../server/agent/hooks.ts";
import type { RunRecord } from "../../server/agent/run-record.ts";
import type { AgentChat } from "../../widget/element/agent-chat.ts";
import type { AgentChatFeedbackEvent } from "../../widget/element/public-types.ts";
import { hasFocus, isFocused, openChat, standsAt } from "../browser/chat-page.ts";
import { visit } from "../browser/launcher-page.ts";
import { complained, launchBrowser } from "../support/browser.ts";
import { onceCalled } from "../support/once-called.ts";
import { say } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

/** The maximum number of simultaneous attempts to load the thumbs. */
interface Seen {
  readonly seen: { readonly most: number };
}

const LISTENER = `<script>
  window.heard = [];
  document.addEventListener("agent-chat-feedback", ({ target, messageId, rating, reason, comment, answer }) =>
    heard.push([target.localName, messageId, rating, reason, comment, answer]));
</script>`;

test("thumbs tell the page what a person thinks and why, are taken back by a second press, and outlive a reload", async (t) => {
  const chat = await visit(t, browser, {
    turns: [[say("**One.**")], [say("Two.")]],
    script: "data-feedback",
    head: LISTENER,
    // Low, so that the form does not fit below the answer.
    browser: { viewport: { width: 1280, height: 500 } },
  });
  const { page } = chat;
  await page.getByRole("button", { name: "Open chat" }).click();
  await chat.ask("First", "One.");
  const up = page.getByRole("button", { name: "Good answer" });
  const down = page.getByRole("button", { name: "Bad answer" });
  const form = page.locator('[part="feedback-form"]');
  const pressed = () => Promise.all([up, down].map((thumb) => thumb.first().getAttribute("aria-pressed")));
  const heard = () => page.evaluate(() => (window as unknown as { heard: AgentChatFeedbackEvent[] }).heard.splice(0));
  const told = (rating: string | null, reason?: string, comment?: string) => [
    "agent-chat-launcher",
    "m2",
    rating,
    reason,
    comment,
    "**One.**",
  ];

  await up.dblclick();
  assert.deepEqual(await pressed(), ["true", "false"], "the second click of two takes nothing back");
  await up.click();
  assert.deepEqual(await pressed(), ["false", "false"]);
  assert.deepEqual(await heard(), [told("up"), told(null)]);

  await down.focus();
  await page.keyboard.press("Enter");
  await form.waitFor();
  assert.equal(await isFocused(down), true, "nothing takes the focus away");
  await standsAt(form);
  const [sends, composer] = await Promise.all(
    [form.getByRole("button", { name: "Send" }), page.locator('[part="composer"]')].map((it) => it.boundingBox()),
  );
  assert.ok(sends && composer && sends.y + sends.height <= composer.y, "the whole form is in view");
  const [time, thumb] = await Promise.all([chat.replies.locator("time"), down].map((it) => it.boundingBox()));
  assert.ok(time && thumb && time.y > thumb.y && time.y < thumb.y + thumb.height, "the time stays beside the thumbs");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Escape");
  await form.waitFor({ state: "detached" });
  await hasFocus(down);
  assert.equal(await chat.input.isVisible(), true, "Escape closes the form, not the panel");
  assert.deepEqual(await pressed(), ["false", "true"]);
  await up.click();
  await down.click();
  await page.getByLabel("Incomplete").check();
  await page.getByRole("textbox", { name: "In your own words" }).fill("  Where is two?  ");
  assert.equal(await chat.input.inputValue(), "");
  // The send button is the last stop.
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await form.waitFor({ state: "detached" });
  await hasFocus(down);
  await chat.replies.getByText("Thank you.").waitFor();
  assert.deepEqual(await heard(), [
    told("down"),
    told("up"),
    told("down"),
    told("down", "incomplete", "Where is two?"),
  ]);

  await chat.ask("Second", "Two.");
  await page.reload();
  await chat.replies.getByText("Two.").waitFor();
  await down.nth(1).waitFor();
  assert.deepEqual(await pressed(), ["false", "true"]);
  assert.equal(await form.count(), 0);
  const exported = await page
    .locator("agent-chat")
    .evaluate((element) => (element as AgentChat).exportTranscript("json"));
  assert.deepEqual(
    JSON.parse(exported).map(({ feedback }: { feedback?: object }) => feedback),
    [undefined, { rating: "down", reason: "incomplete", comment: "Where is two?" }, undefined, undefined],
  );
});

test("a page decides what can be done with messages, and without a word has all but the thumbs", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("```js\nx()\n```\n\n| a |\n|---|\n| b |")]],
    expectedComplaints: /actions must be words out of all, none, .*, not "copy,edit"/,
  });
  const asked: string[] = [];
  chat.page.on("request", (request) => asked.push(request.url()));
  await chat.say("Go");
  await chat.page.getByRole("button", { name: "Copy: Table" }).waitFor();
  await chat.send.waitFor();
  const names = {
    copy: "Copy answer",
    retry: "Answer again",
    edit: "Change this message",
    code: "Copy",
    table: "Copy: Table",
  };
  const offered = async (actions: string) => {
    await chat.page.locator("agent-chat").evaluate(async (element, words) => {
      element.setAttribute("actions", words);
      await (element as AgentChat).updateComplete;
    }, actions);
    const buttons = Object.entries(names).map(async ([word, name]) => {
      const button = chat.messages.getByRole("button", { name, exact: true });
      return (await button.isVisible()) ? [word] : [];
    });
    return (await Promise.all(buttons)).flat().join(" ");
  };
  const all = Object.keys(names).join(" ");
  assert.equal(await offered("all"), all);
  for (const word of Object.keys(names)) assert.equal(await offered(word), word);
  assert.equal(await offered(" copy  edit "), "copy edit");
  assert.equal(await offered("none"), "");
  await chat.input.press("ArrowUp");
  assert.equal(await chat.input.inputValue(), "", "no other way to edit either");
  assert.equal(await offered("copy,edit"), all);
  await complained(chat, /./);
  assert.equal(chat.complaints.length, 1);
  assert.deepEqual(
    asked.filter((url) => url.includes("/feedback")),
    [],
  );
});

test("a comment has at most 2,000 characters", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")]] });
  const comment = await chat.page.evaluateHandle(() => {
    document.querySelector("agent-chat")?.setAttribute("feedback", "");
    const heard = { comment: "" };
    document.addEventListener("agent-chat-feedback", (event) => {
      heard.comment = event.comment ?? "";
    });
    return heard;
  });
  await chat.ask("First", "One.");
  await chat.page.getByRole("button", { name: "Bad answer" }).click();
  await chat.page.getByRole("textbox", { name: "In your own words" }).focus();
  await chat.page.keyboard.insertText("a".repeat(2_001));
  await chat.page.locator('[part="feedback-form"]').getByRole("button", { name: "Send" }).click();
  await chat.replies.getByText("Thank you.").waitFor();
  assert.equal(await comment.evaluate((heard) => heard.comment.length), 2_000);
});

test("thumbs that cannot be loaded are asked for by one attempt at a time, however often the answer changes", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Hello.")]], expectedComplaints: /Failed to load resource/ });
  const { page } = chat;
  await page.addInitScript(() => {
    const { addEventListener, removeEventListener } = window;
    // Pauses between two attempts, recognized by their listener without options.
    const pauses = new Set<unknown>();
    const seen = { most: 0 };
    Object.assign(window, {
      seen,
      addEventListener(type: string, listener: EventListener, options?: AddEventListenerOptions) {
        if (type === "online" && !options) pauses.add(listener);
        seen.most = Math.max(seen.most, pauses.size);
        addEventListener.call(window, type, listener, options);
      },
      removeEventListener(type: string, listener: EventListener, options?: EventListenerOptions) {
        pauses.delete(listener);
        removeEventListener.call(window, type, listener, options);
      },
    });
  });
  await page.route("**/chunks/feedback*", (route) => route.abort());
  await page.reload();
  await chat.greeting.waitFor();
  await chat.ask("Hi", "Hello.");
  await page.locator("agent-chat").evaluate(async (element) => {
    const agentChat = element as AgentChat;
    for (let turn = 0; turn < 20; turn++) {
      agentChat.feedback = turn % 2 === 0;
      await agentChat.updateComplete;
      await new Promise(requestAnimationFrame);
    }
    agentChat.feedback = true;
    await agentChat.updateComplete;
  });
  // The first attempt has failed; others, if any, would have failed by then.
  await page.waitForFunction(() => (window as unknown as Seen).seen.most > 0);
  assert.equal(await page.evaluate(() => (window as unknown as Seen).seen.most), 1);
});

test("where the agent has onFeedback, thumbs are there without an attribute and send ratings, and a failure is said", async (t) => {
  const { hook: onFeedback, next } = onceCalled<Feedback>();
  const { hook: onRunEnd, next: nextRun } = onceCalled<RunRecord>();
  const chat = await openChat(t, browser, {
    agent: { onFeedback, onRunEnd },
    authenticate: ({ token }) => (token === undefined ? undefined : { id: token }),
    turns: [[say("One.")]],
    expectedComplaints: /ERR_FAILED/,
  });
  const { page } = chat;
  await chat.ask("First", "One.");
  const { run, conversation } = await nextRun();
  const about = { run, conversation, user: undefined, metadata: { page: "/cart" } };
  await page.locator("agent-chat").evaluate((element: AgentChat) => {
    element.metadata = { page: "/cart" };
  });
  await page.getByRole("button", { name: "Bad answer" }).click();
  assert.deepEqual(await next(), { ...about, rating: "down", reason: undefined, comment: undefined });
  await page.getByText("Not correct").click();
  await page.getByPlaceholder("In your own words").fill("It is two.");
  await page.getByRole("button", { name: "Send", exact: true }).first().click();
  assert.deepEqual(await next(), { ...about, rating: "down", reason: "incorrect", comment: "It is two." });
  await page.reload();
  await page.getByRole("button", { name: "Bad answer" }).click();
  assert.deepEqual(await next(), { ...about, metadata: {}, rating: null, reason: undefined, comment: undefined });
  await page.route("**/api/feedback", (route) => route.abort());
  await page.getByRole("button", { name: "Good answer" }).click();
  await page.locator("agent-chat-feedback").getByText("cannot be reached").waitFor();
});
