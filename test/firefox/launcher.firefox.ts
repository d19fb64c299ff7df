/** The launcher in Firefox: by keyboard, under a strict policy, and as large as a phone. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import { gate } from "../support/deadline.ts";
import { say, type Turn, wait } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";
import { moveMouse } from "./browser-window.ts";
import { button, FIELD, focused, send, shown } from "./chat-page.ts";
import { firefoxPath, launchFirefox, openInFirefox } from "./firefox.ts";

if (firefoxPath === undefined) {
  throw new Error("There is no Firefox here: install firefox-esr, or name one in FIREFOX_PATH.");
}
const browser = await launchFirefox({ after }, firefoxPath);

/** Opens a site with the launcher, whose policy allows scripts with a nonce alone. */
async function open(t: TestContext, turns: readonly Turn[], attributes = "", file = "widget.js") {
  const server = await startServer(t, { turns });
  const policy = `default-src 'none'; script-src 'nonce-r4nd0m'; connect-src ${server.url} ${server.url.replace("http", "ws")}; img-src 'self' blob:; require-trusted-types-for 'script'; trusted-types lit-html`;
  const html = sitePage(
    `<button id="page">Buy</button><script src="${server.url}/${file}" nonce="r4nd0m" ${attributes}></script>`,
  );
  const headers = { "content-security-policy": policy };
  const site = await startSite(t, { "/": { html, headers }, "/next": { html, headers } });
  const { page, complaints } = await openInFirefox(t, browser, site.url);
  t.after(() => assert.deepEqual(complaints, [], "the page complained"));
  return page;
}

test("under a strict policy the preview is dismissed, and the launcher opened and closed, by keyboard; the focus goes with it", async (t) => {
  const page = await open(
    t,
    [[say("Hello, `visitor`.\n\n```js\nx()\n```\n")]],
    'data-preview="Questions?" data-preview-after="0"',
  );
  const dismiss = await button(page, "Hide this message");
  await dismiss?.focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector(">>> .preview", { hidden: true });
  assert.equal(await focused(page), "Open chat");
  await page.keyboard.press("Enter");
  await page.waitForSelector(FIELD, { visible: true });
  await page.waitForSelector(">>> textarea:focus");
  await page.keyboard.type("Hi");
  await page.keyboard.press("Enter");
  await shown(page, ".markdown", "Hello,");
  await shown(page, ".markdown pre", "x()");
  await button(page, "Send message");
  await page.keyboard.press("Escape");
  await page.waitForSelector(FIELD, { hidden: true });
  assert.equal(await focused(page), "Open chat");
});

test("the early button of /launcher.js opens the chat, under a strict policy and by keyboard, and is gone then", async (t) => {
  const page = await open(t, [[say("Hello.")]], 'data-label="Ask us"', "launcher.js");
  await (await button(page, "Ask us"))?.focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector(">>> textarea:focus");
  await send(page, "Hi");
  await shown(page, ".markdown", "Hello.");
  const buttons = await page.$$(">>> .launcher");
  assert.equal(buttons.length, 1);
});

test("on a phone the panel is modal, and an answer that ends on the next page is shown beside the button", async (t) => {
  const left = gate();
  const page = await open(t, [[say("Let me"), wait(left.opened), say(" see.")]]);
  await page.setViewport({ width: 390, height: 844 });
  await (await button(page, "Open chat"))?.click();
  await page.waitForSelector(">>> dialog:modal");
  await send(page, "Go");
  await shown(page, ".markdown", "Let me");
  const seen: unknown[] = [];
  for (let stops = 0; stops < 8; stops += 1) {
    await page.keyboard.press("Tab");
    seen.push(await focused(page));
  }
  assert.ok(!seen.includes("Buy"), `the page behind was reached: ${seen.join(", ")}`);
  await (await button(page, "Close chat"))?.click();
  await page.waitForSelector(FIELD, { hidden: true });
  await page.goto(new URL("/next", page.url()).href);
  await button(page, "Open chat");
  left.open();
  await shown(page, ".preview", "Let me see.");
  await button(page, "Open chat, 1 new message");
});

test("the panel that opens at exit does so when the mouse leaves the page for the tabs, and not before", async (t) => {
  const page = await open(t, [], 'data-auto-open="exit"');
  await button(page, "Open chat");
  await page.evaluate(() => {
    document.addEventListener("mousemove", () => {
      document.title = "entered";
    });
  });
  await moveMouse(page, "page");
  await page.waitForFunction(() => document.title === "entered");
  await button(page, "Open chat");
  await moveMouse(page, "tabs");
  await page.waitForSelector(FIELD, { visible: true });
});
