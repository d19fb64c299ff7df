/** Sites that allow only the chat's server, or only scripts with a nonce, and require Trusted Types. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { chatIn, failOnComplaints, openRows } from "../browser/chat-page.ts";
import { button, preview } from "../browser/launcher-page.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { RED_PIXEL } from "../support/files.ts";
import { call, say, think } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";
import { echo } from "../support/test-tools.ts";

const browser = await launchBrowser({ after });

const ANSWER = "**Strict** `but` fine.\n\n```ts\nconst a = 1;\n```\n\n| A |\n|---|\n| 1 |\n";

/** Chunks that this conversation needs in addition to the chat itself. */
const LAZY = ["code-blocks", "de", "highlight", "panel"];

for (const [what, scripts, attributes] of [
  ["the server's origin alone", (server: string) => server, ""],
  ["scripts with a nonce alone", () => "'nonce-r4nd0m'", 'nonce="r4nd0m"'],
] as const) {
  test(`a policy that allows ${what}, with Trusted Types, has nothing to complain of, in any part of the chat`, async (t) => {
    const server = await startServer(t, {
      agent: { tools: [echo] },
      turns: [[think("Hm."), call("c1", "echo", { text: "ping" })], [say(ANSWER)]],
    });
    const tag = `<script src="${server.url}/widget.js" data-lang="de" data-preview="Fragen?" data-preview-after="0" ${attributes}></script>`;
    const policy = [
      "default-src 'none'",
      `script-src ${scripts(server.url)}`,
      `connect-src ${server.url} ${server.url.replace("http", "ws")}`,
      "img-src blob:",
      "require-trusted-types-for 'script'",
      "trusted-types lit-html",
    ];
    const headers = { "content-security-policy": policy.join("; ") };
    const site = await startSite(t, { "/": { html: sitePage(tag), headers } });
    const { page, complaints } = await openPage(t, browser, { reducedMotion: "reduce" });
    failOnComplaints(t, complaints);
    const loaded = new Set<string>();
    page.on("response", (response) => {
      const [, name] = /\/chunks\/([a-z-]+?)-[\dA-Z]+\.js$/.exec(response.url()) ?? [];
      if (name && response.ok()) loaded.add(name);
    });
    await page.goto(site.url);
    await preview(page).waitFor();
    const radius = await button(page).evaluate((it) => getComputedStyle(it).borderRadius);
    assert.equal(radius, "999px", "it is styled");
    await page.getByRole("button", { name: "Fragen?" }).click();
    const chat = chatIn(page.locator("agent-chat"));
    const file = { name: "red.png", mimeType: "image/png", buffer: RED_PIXEL };
    await chat.files.setInputFiles([file]);
    const field = page.getByRole("textbox", { name: "Nachricht" });
    await field.fill("Hi");
    // Not before the file has been read.
    const send = page.getByRole("button", { name: "Nachricht senden" });
    await send.and(page.locator(":enabled")).waitFor();
    await field.press("Enter");
    await chat.answer.getByText("fine.").waitFor();
    await send.waitFor();
    await openRows(chat);
    await page.locator('.answer-actions [part="copy"]').first().waitFor();
    const text = await page
      .locator("agent-chat")
      .evaluate((it: HTMLElementTagNameMap["agent-chat"]) => it.exportTranscript("markdown"));
    assert.match(text, /Strict/);
    await field.press("ArrowUp");
    await page.locator('[part="editing"]').waitFor();
    const missing = () => LAZY.filter((name) => !loaded.has(name));
    // Parts that rendering does not wait for, such as colours, may still be loading.
    const last = { predicate: () => missing().length === 0 };
    if (missing().length > 0) await page.waitForEvent("response", last).catch(() => undefined);
    assert.deepEqual(missing(), [], [...loaded].join());
  });
}

for (const [names, isAllowed] of [
  ["lit-html", false],
  ["lit-html 'allow-duplicates'", true],
] as const) {
  test(`beside a site's own Lit, with trusted-types ${names}, ${isAllowed ? "the chat works" : "one line says what is missing, and nothing is tried again"}`, async (t) => {
    const server = await startServer(t, { turns: [[say("Hello.")]] });
    const ownLit =
      '<script nonce="r4nd0m">trustedTypes.createPolicy("lit-html", { createHTML: (text) => text })</script>';
    const tag = `<script src="${server.url}/widget.js" nonce="r4nd0m"></script><agent-chat></agent-chat>`;
    const policy = `script-src 'nonce-r4nd0m'; require-trusted-types-for 'script'; trusted-types ${names}`;
    const headers = { "content-security-policy": policy };
    const site = await startSite(t, { "/": { html: sitePage(ownLit + tag), headers } });
    const { page, complaints } = await openPage(t, browser);
    let asked = 0;
    await page.route("**/chunks/chat-*", (route) => {
      asked += 1;
      return route.continue();
    });
    if (isAllowed) {
      await page.goto(site.url);
      await chatIn(page).ask("Hi", "Hello.");
      assert.deepEqual(complaints, []);
      return;
    }
    const advice = page.waitForEvent("console", (it) => it.text() === "Add trusted-types lit-html 'allow-duplicates'");
    await page.goto(site.url);
    await advice;
    await page.evaluate(() => window.dispatchEvent(new Event("online")));
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve)));
    assert.equal(asked, 1);
  });
}
