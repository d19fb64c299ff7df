/** Content that a page adds to the chat: suggestions, a disclaimer, its own picture of the agent. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { Page } from "playwright-core";
import type { AgentChat } from "../../widget/element/agent-chat.ts";
import { chatTag, visit } from "../browser/launcher-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say, type Turn, wait } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

async function openSite(t: TestContext, turns: Turn[], inside = "", attributes = "") {
  const agent = {
    chat: { suggestions: ["What can you do?"], disclaimer: "The agent may be wrong." },
  };
  const chat = await visit(t, browser, { turns, agent, body: chatTag(600, attributes, inside) });
  await chat.page.locator('[part="suggestion"]').waitFor();
  return chat;
}

/** Top and bottom of an element in the viewport. */
async function place(page: Page, selector: string): Promise<[top: number, bottom: number]> {
  const box = await page.locator(selector).boundingBox();
  assert.ok(box, selector);
  return [box.y, box.y + box.height];
}

test("what the page offers to ask next is there when nothing else goes on, until a message is sent, and not only refused", async (t) => {
  const rest = gate();
  const chat = await openSite(t, [[say("One.")], [say("Tw"), wait(rest.opened), say("o.")]]);
  const offers = chat.page.locator('[part="suggestion"]');
  const element = chat.page.locator("agent-chat");
  const suggest = (texts: unknown) =>
    element.evaluate(async (node, list) => {
      (node as AgentChat).suggest(list as string[]);
      await (node as AgentChat).updateComplete;
    }, texts);
  await chat.ask("First", "One.");
  assert.equal(await offers.count(), 0);
  await suggest(["And tomorrow?", "Why?"]);
  assert.deepEqual(await offers.allInnerTexts(), ["And tomorrow?", "Why?"]);
  const [, bottom] = await place(chat.page, '[part="suggestions"]');
  const [top] = await place(chat.page, '[part="composer"]');
  assert.ok(bottom <= top, "above the composer");
  await chat.page.getByRole("button", { name: "Change this message" }).click();
  await chat.edited.waitFor();
  assert.equal(await offers.count(), 2, "the composer is free beside an edit");
  await chat.edited.press("Escape");
  await offers.getByText("Why?").click();
  await chat.answer.getByText("Tw").waitFor();
  assert.equal(chat.server.model.asked[1]?.messages.at(-1)?.content, "Why?");
  await suggest(["Faster!", " "]);
  assert.equal(await offers.count(), 0, "not while it answers");
  const refused = element.evaluate(async (node) => {
    const heard: string[] = [];
    const chat = node as AgentChat;
    chat.addEventListener("agent-chat-message", ({ text }) => heard.push(text));
    const reason = await chat.send("Third").catch(({ message }) => message);
    return [reason, ...heard];
  });
  assert.deepEqual(await refused, ["cannot send while the session is running"]);
  rest.open();
  await offers.getByText("Faster!").waitFor();
  assert.equal(await offers.count(), 1, "what says nothing is not offered");
  await assert.rejects(suggest("Faster!"), /suggest: texts must be a list of strings/);
  await element.evaluate((node) => (node as AgentChat).reset());
  assert.deepEqual(await offers.allInnerTexts(), ["What can you do?"]);
  await element.evaluate((node) => (node as AgentChat).addMessage({ text: "Welcome back" }));
  await chat.page.locator('[part~="page"]').waitFor();
  assert.deepEqual(await offers.allInnerTexts(), ["What can you do?"], "the person has asked nothing yet");
  await suggest(["Mine"]);
  assert.deepEqual(await offers.allInnerTexts(), ["Mine"]);
});

test("a disclaimer stands below the composer on every screen, and a footer of the page's own in its place", async (t) => {
  const chat = await openSite(
    t,
    [[say("One.")]],
    '<img slot="avatar" alt="Ada" src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">',
    'disclaimer="Answers may be wrong."',
  );
  const check = async (what: string) => {
    for (const width of [390, 1280]) {
      await chat.page.setViewportSize({ width, height: 800 });
      await chat.page.waitForFunction((it) => innerWidth === it, width);
      const [top] = await place(chat.page, '[part="disclaimer"]');
      for (const above of ['[part="composer"]', '[part="suggestions"]']) {
        if ((await chat.page.locator(above).count()) === 0) continue;
        assert.ok(top >= (await place(chat.page, above))[1], `${what}, ${width}, below ${above}`);
      }
    }
  };
  await check("empty");
  assert.equal(await chat.page.getByText("The agent may be wrong.").count(), 0);
  await chat.page.getByText("Answers may be wrong.").waitFor();
  assert.equal(await chat.page.getByAltText("Ada").isVisible(), true);
  assert.equal(await chat.page.locator('[part="header"] .avatar').isVisible(), false);
  await chat.ask("First", "One.");
  await check("in a conversation");
  await chat.page.locator("agent-chat").evaluate((node) => {
    node.insertAdjacentHTML("beforeend", '<p slot="footer">By Acme</p>');
  });
  await chat.page.getByText("By Acme").waitFor();
  await chat.page.locator('[part="disclaimer"]').waitFor({ state: "hidden" });
  await chat.page.locator("agent-chat").evaluate((node) => {
    node.querySelector("[slot=footer]")?.remove();
    node.removeAttribute("disclaimer");
  });
  await chat.page.getByText("The agent may be wrong.").waitFor();
});
