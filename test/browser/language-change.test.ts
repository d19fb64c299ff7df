/** A page that changes its language in the middle of a conversation: all of the chat follows, and nothing is lost. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { AgentChat } from "../../widget/agent-chat.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { call, say, type Turn, think } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";
import { define, echo } from "../support/test-tools.ts";
import { chatIn, failOnComplaints, isFocused } from "./chat-page.ts";

const browser = await launchBrowser({ after });

const silent = define("silent", () => "");

async function open(t: TestContext, turns: readonly Turn[]) {
  const server = await startServer(t, { turns, agent: { tools: [echo, silent] } });
  const html = sitePage(
    `<script src="${server.url}/widget.js"></script><agent-chat feedback tools="open" style="height: 700px"></agent-chat>`,
  );
  const site = await startSite(t, {
    "/en": html,
    "/fr": html.replace('lang="en"', 'lang="fr"'),
  });
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints);
  await page.goto(`${site.url}/en`);
  const change = () =>
    page.evaluate(() => {
      document.documentElement.lang = "fr";
    });
  return { page, site, change, french: page.getByPlaceholder(/^Écrire à/), ...chatIn(page) };
}

test("everything is said in the new language, as on a page that was in it from the start", async (t) => {
  const { page, site, change, french, ...chat } = await open(t, [
    [think("Hm."), call("c1", "echo", { text: "ping" }), call("c2", "silent"), call("c3", "none")],
    [say("- [x] done\n\n```\nx();\n```\n\n| a |\n|---|\n| b |\n\n![a](https://x.example/a.png)")],
  ]);
  /** All that is read or spoken, in order. */
  const words = async () => {
    await page.getByRole("button", { name: /CSV/ }).waitFor();
    await chat.tools.first().waitFor();
    await page.locator('[part="rate-down"]').waitFor();
    // What was announced is over.
    return page.locator("agent-chat").evaluate(async (element, spoken) => {
      await (element as AgentChat).updateComplete;
      const all = element.shadowRoot?.querySelectorAll<HTMLElement>(spoken) ?? [];
      return [...all].flatMap((it) =>
        [
          ...["lang", "aria-label", "placeholder", "title"].map((name) => it.getAttribute(name)),
          it.childElementCount === 0 && it.textContent.trim(),
        ].filter(Boolean),
      );
    }, ".chat *:not([role=status] *)");
  };
  await chat.say("Go");
  await chat.answered();
  const english = await words();
  await change();
  await french.waitFor();
  const changed = await words();
  await page.goto(`${site.url}/fr`);
  await french.waitFor();
  assert.deepEqual(changed, await words());
  assert.equal(changed.length, english.length);
});

test("what a person writes to go with a bad rating stays, with the focus in it", async (t) => {
  const { page, change, french, ...chat } = await open(t, [[say("Pong.")]]);
  await chat.ask("Ping", "Pong.");
  await page.getByRole("button", { name: "Bad answer" }).click();
  const form = page.locator('[part="feedback-form"]');
  await form.getByLabel("Incomplete").check();
  const comment = form.getByRole("textbox");
  await comment.pressSequentially("Where is ");
  await change();
  await french.waitFor();
  assert.equal(await isFocused(comment), true);
  await page.keyboard.type("two?");
  assert.equal(await comment.inputValue(), "Where is two?");
  assert.equal(await form.getByRole("radio", { checked: true }).inputValue(), "incomplete");
});

test("a key that is being typed stays, with the focus in its field", async (t) => {
  const server = await startServer(t, { turns: [], env: { PARLEY_CHAT_KEY: "c-1" } });
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints);
  await page.goto(server.url);
  await page.getByLabel("Access key").pressSequentially("c-");
  await page.locator("agent-chat").evaluate((it) => it.setAttribute("lang", "fr"));
  await page.locator('agent-chat [lang="fr"]').waitFor();
  await page.keyboard.type("1");
  await page.keyboard.press("Enter");
  await page.getByPlaceholder(/^Écrire à/).waitFor();
});
