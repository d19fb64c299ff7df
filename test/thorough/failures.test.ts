/** Failed answers: the message in the user's language, and how to continue. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ApiError } from "../../server/protocol/errors.ts";
import { type ChatPage, contents, holdTime, openChat, shown } from "../browser/chat-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { fail, say } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

const button = ({ error }: ChatPage, name: string | RegExp) => error.getByRole("button", { name });

test("a German page says in German why an answer failed, and lets a person try again when the server takes messages again", async (t) => {
  const limited = new ApiError("provider_rate_limited", "Too many requests.", { retryAfter: 65 });
  const chat = await openChat(t, browser, {
    turns: [[fail(limited)], [say("Da bin ich.")]],
    browser: { locale: "de-DE" },
  });
  const pass = await holdTime(chat.page);
  const field = chat.page.getByRole("textbox");
  await field.fill("Hallo");
  await field.press("Enter");
  await chat.error.getByText("Der Agent kann gerade nicht antworten.").waitFor();
  assert.doesNotMatch(await shown(chat.error), /Too many/);
  const retry = button(chat, /^Erneut versuchen/);
  assert.equal(await retry.isDisabled(), true);
  assert.match(await shown(retry), /in 1:05$/);
  await pass(50_000);
  assert.match(await shown(retry), /in 0:15$/);
  assert.equal(await chat.page.getByRole("alert").getByText("0:1").count(), 0, "no second is spoken");
  await pass(20_000);
  assert.equal(await shown(retry), "Erneut versuchen");
  await retry.click();
  await chat.replies.getByText("Da bin ich.").waitFor();
  assert.deepEqual(contents(chat, 1), ["Hallo"]);
});

test("a conversation that is too long has a way to a new one", async (t) => {
  const tooLong = new ApiError("context_too_long", "The conversation is too long for the assistant.");
  const chat = await openChat(t, browser, { turns: [[fail(tooLong)], [say("Fresh.")]] });
  await chat.say("Once more");
  await button(chat, "New conversation").click();
  await chat.greeting.waitFor();
  assert.equal(await button(chat, "Try again").count(), 0);
  await chat.ask("Hello", "Fresh.");
});

test("where only the owner can help, a report for them can be copied: no word of the conversation, and no key", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[fail(new ApiError("provider_auth", "The assistant is not set up correctly."))]],
    path: "/?secret=1#key=secret",
    browser: { permissions: ["clipboard-read", "clipboard-write"] },
  });
  await chat.say("My private question");
  assert.equal(await button(chat, "Try again").count(), 0);
  await button(chat, "Copy report").click();
  await button(chat, "Copied").waitFor();
  const report = await chat.page.evaluate(() => navigator.clipboard.readText());
  const [, reference] = /\(Reference: (\S{8})\)/.exec(await shown(chat.error)) ?? [];
  const lines = report.split("\n");
  assert.deepEqual(lines.toSpliced(2, 1), [
    `Reference: ${reference}`,
    "Code: provider_auth",
    `Page: ${chat.server.url}/`,
  ]);
  assert.match(lines[2] ?? "", /^Time: \d{4}-\d\d-\d\dT[\d:.]+Z$/);
});
