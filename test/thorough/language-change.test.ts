/**
 * A page that changes its language during a conversation: all of the chat follows, and nothing is lost. Also a page
 * with chats in two languages, each of which keeps its own.
 */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { AgentChat } from "../../widget/element/agent-chat.ts";
import { chatIn, failOnComplaints, isFocused } from "../browser/chat-page.ts";
import { chatTag, visit } from "../browser/launcher-page.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { call, say, type Turn, think } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";
import { define, echo } from "../support/test-tools.ts";

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
  /** All visible and spoken texts, in order. */
  const words = async () => {
    await page.locator(".table .copy").waitFor();
    await chat.tools.first().waitFor();
    // A thinking row closes a moment after its end.
    await chat.thinking.and(page.locator(':not(:has([aria-expanded="true"]))')).waitFor({ state: "attached" });
    await page.locator('[part="rate-down"]').waitFor();
    // The end is out of view, which the chat notices a moment later.
    await page.locator('[part="jump"]').waitFor();
    // Announcements are excluded.
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

test("of two chats in one page each speaks its own language, whichever is drawn meanwhile: in code, presses, files and exports", async (t) => {
  const answer = `\`\`\`js\nx(${"1, ".repeat(80)}1);\n\`\`\`\n\n|A|\n|-|\n|1|\n\n![](https://images.example/a.png)`;
  const { page } = await visit(t, browser, {
    turns: [[say(answer)], [say(answer)]],
    body: ["de", "fr"].map((lang) => chatTag(340, `id="${lang}" lang="${lang}"`)).join(""),
    expectedComplaints: /ERR_FAILED/,
  });
  const of = (id: string) => page.locator(`#${id}`);
  await of("de").getByPlaceholder("Nachricht an").waitFor();
  await of("fr").getByPlaceholder("Écrire à").waitFor();
  const tools = gate();
  // The part that renders messages is loaded; those for an answer with code are not.
  await of("de").locator("textarea").click();
  await page.evaluate(() => customElements.whenDefined("agent-chat-message").then(() => undefined));
  await page.route("**/chunks/*", async (route) => {
    await tools.opened;
    await route.continue();
  });
  for (const id of ["de", "fr"]) {
    await of(id).evaluate((chat) => (chat as AgentChat).send("Code"));
    await of(id).locator(".code").waitFor();
  }
  tools.open();
  await of("de").getByRole("button", { name: "Zeilen umbrechen" }).waitFor();
  await of("fr").getByRole("button", { name: "Retour à la ligne" }).waitFor();

  await page.evaluate(() => {
    navigator.clipboard.writeText = async () => {
      const french = document.querySelector<AgentChat>("#fr");
      if (french) french.disclaimer += ".";
      await french?.updateComplete;
    };
  });
  await page.route("https://images.example/**", async (route) => {
    await page.evaluate(() => navigator.clipboard.writeText(""));
    await route.abort();
  });
  const german = of("de").locator('[part="markdown"]');
  await german.locator(".code .copy").click();
  await german.locator(".code").getByRole("button", { name: "Kopiert" }).waitFor();
  await german.getByRole("button", { name: "Kopieren: Tabelle" }).click();
  await german.getByRole("button", { name: "CSV" }).click();
  await german.locator(".table").getByRole("button", { name: "Kopiert" }).waitFor();
  await german.getByRole("button", { name: "images.example" }).click();
  await german.getByText("Das Bild konnte nicht geladen werden").waitFor();

  const text = await page.evaluate(async () => {
    const [german, french] = document.querySelectorAll<AgentChat>("agent-chat");
    if (!german || !french) return "";
    // Loads all that the export needs.
    await german.exportTranscript("json");
    french.disclaimer = "Bonjour.";
    await french.updateComplete;
    const exported = await german.exportTranscript("markdown");
    french.disclaimer = "Bonsoir.";
    await french.updateComplete;
    await german.attach([new File(["MZ"], "setup.exe")]);
    return exported;
  });
  assert.match(text, /Sie:/);
  const refusals = of("de").locator('[part="refusals"]');
  await refusals.getByText("setup.exe: Nur ").waitFor();
  await of("de").evaluate((chat) => chat.setAttribute("lang", "es"));
  await refusals.getByText("setup.exe: solo se aceptan").waitFor();
});
