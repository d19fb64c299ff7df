/** What the launcher takes along from one page of the site to the next. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say, wait } from "../support/scripted-provider.ts";
import { isFocused } from "./chat-page.ts";
import { button, panel, visit } from "./launcher-page.ts";

const browser = await launchBrowser({ after });

test("an answer that ends after the next page has loaded is told of there, and still counted on the one after", async (t) => {
  const left = gate();
  const chat = await visit(t, browser, {
    turns: [[say("Let me"), wait(left.opened), say(" see.")]],
  });
  const { page } = chat;
  await button(page).click();
  await chat.say("Go");
  await chat.replies.getByText("Let me").waitFor();
  await page.getByRole("button", { name: "Close chat" }).last().click();
  await page.goto(new URL("/next", page.url()).href);
  await button(page).waitFor();
  left.open();
  await page.getByRole("button", { name: "Let me see." }).waitFor();
  await page.goto(new URL("/", page.url()).href);
  const news = page.getByRole("button", { name: "Open chat, 1 new message" });
  await news.waitFor();
  assert.equal(await chat.input.count(), 0, "nothing is awaited, and no chat was built");
  await news.click();
  await chat.replies.getByText("Let me see.").waitFor();
  await page.reload();
  await chat.input.waitFor();
  assert.equal(await page.locator('[part="unread"]').count(), 0);
});

test("a panel that was made large is large on the next page, and one that was closed there is closed after going back", async (t) => {
  const { page, input } = await visit(t, browser, { body: "<input id=name autofocus>" });
  await button(page).click();
  await page.getByRole("button", { name: "Enlarge chat" }).click();
  await page.goto(new URL("/next", page.url()).href);
  await page.getByRole("button", { name: "Make chat smaller" }).waitFor();
  assert.equal(await isFocused(page.locator("#name")), true);
  // What a page finds that the browser had kept as it was left.
  await page.evaluate(() => {
    const [name = ""] = Object.keys(sessionStorage).filter((it) => /^agent-chat-panel:/.test(it));
    const state = JSON.parse(sessionStorage.getItem(name) ?? "");
    sessionStorage.setItem(name, JSON.stringify({ ...state, open: false }));
    dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));
  });
  await panel(page).waitFor({ state: "hidden" });
  await input.waitFor({ state: "hidden" });
});

test("what else is in the launcher's place of the storage is taken for nothing", async (t) => {
  const { page } = await visit(t, browser);
  await button(page).click();
  for (const text of ["open", "null", '{"open":1,"unread":"<b>","wide":"yes","preview":{}}']) {
    await page.evaluate((value) => {
      for (const name of Object.keys(sessionStorage)) {
        if (name.startsWith("agent-chat-panel:")) sessionStorage.setItem(name, value);
      }
    }, text);
    await page.reload();
    await page.getByRole("button", { name: "Open chat", exact: true }).waitFor();
    assert.equal(await panel(page).isVisible(), false);
  }
});
