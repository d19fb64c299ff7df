/** The launcher in Firefox and WebKit: by keyboard, under a strict policy, and at a phone's size. */

import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { gate } from "../support/deadline.ts";
import { say, type Turn, wait } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";
import { engineTest, FIELD, type Page } from "./page.ts";

/** Opens a site with the launcher, whose policy allows only scripts with a nonce. */
async function open(t: TestContext, page: Page, turns: readonly Turn[], attributes = "") {
  const server = await startServer(t, { turns });
  const policy = `default-src 'none'; script-src 'nonce-r4nd0m'; connect-src ${server.url} ${server.url.replace("http", "ws")}; img-src 'self' blob:; require-trusted-types-for 'script'; trusted-types lit-html`;
  const html = sitePage(
    `<button id="page">Buy</button><script src="${server.url}/widget.js" nonce="r4nd0m" ${attributes}></script>`,
  );
  const headers = { "content-security-policy": policy };
  const site = await startSite(t, { "/": { html, headers }, "/next": { html, headers } });
  await page.open(site.url);
  return site;
}

engineTest(
  "under a strict policy the preview is dismissed, and the launcher opened and closed, by keyboard; the focus goes with it",
  async (page, t) => {
    const hello = "Hello, `visitor`.\n\n```js\nx()\n```\n";
    await open(t, page, [[say(hello)]], 'data-preview="Questions?" data-preview-after="0"');
    await page.focus(await page.button("Hide this message"));
    await page.press("Enter");
    await page.gone('[part="preview"]');
    await page.hasFocus("Open chat");
    await page.press("Enter");
    await page.shown(`${FIELD}:focus`);
    await page.type("Hi");
    await page.press("Enter");
    await page.shown('[part="markdown"]', "Hello,");
    await page.shown('[part="markdown"] pre', "x()");
    await page.button("Send message");
    await page.press("Escape");
    await page.gone(FIELD);
    await page.hasFocus("Open chat");
  },
);

engineTest(
  "the early button opens the chat, under a strict policy and by keyboard, and is gone then",
  async (page, t) => {
    await open(t, page, [[say("Hello.")]], 'data-label="Ask us"');
    await page.focus(await page.button("Ask us"));
    await page.press("Enter");
    await page.shown(`${FIELD}:focus`);
    await page.send("Hi");
    await page.shown('[part="markdown"]', "Hello.");
    assert.equal(await page.run(() => findAll('[part="launcher"]').length), 1);
  },
);

engineTest(
  "button and panel stand above all of a page that moves its body, and open and close by the site's shortcut",
  async (page, t) => {
    await open(t, page, [], 'data-shortcut="Ctrl+Alt+K"');
    await page.run(() => {
      document.body.style.transform = "translateY(50px)";
      const banner = document.body.appendChild(document.createElement("div"));
      for (const [name, value] of Object.entries({ position: "fixed", inset: "0", "z-index": "2147483647" })) {
        banner.style.setProperty(name, value);
      }
    });
    /** Whether the element is fully inside the window and on top at its centre. */
    const isOnTop = (selector: string) =>
      page.until((wanted: string) => {
        const [element] = findAll(wanted).filter(isShown);
        if (!element) return false;
        const { left, right, top, bottom } = element.getBoundingClientRect();
        const root = element.getRootNode() as ShadowRoot;
        const hit = root.elementFromPoint((left + right) / 2, (top + bottom) / 2);
        return top >= 0 && left >= 0 && right <= innerWidth && bottom <= innerHeight && element.contains(hit);
      }, selector);
    await isOnTop('[part="launcher"]');
    await page.press("Control+Alt+k");
    await page.shown(`${FIELD}:focus`);
    await isOnTop(FIELD);
    await page.press("Control+Alt+k");
    await page.gone(FIELD);
    await isOnTop('[part="launcher"]');
  },
);

engineTest(
  "on a phone the panel is modal, and an answer that ends on the next page is shown beside the button",
  async (page, t) => {
    await page.driver.resize(390, 844);
    const left = gate();
    const site = await open(t, page, [[say("Let me"), wait(left.opened), say(" see.")]]);
    await page.click(await page.button("Open chat"));
    await page.shown("dialog:modal");
    await page.send("Go");
    await page.shown('[part="markdown"]', "Let me");
    const seen: unknown[] = [];
    for (let stops = 0; stops < 8; stops += 1) {
      await page.press("Tab");
      seen.push(await page.focused());
    }
    assert.ok(!seen.includes("Buy"), `the page behind was reached: ${seen.join(", ")}`);
    await page.click(await page.button("Close chat"));
    await page.gone(FIELD);
    await page.open(`${site.url}/next`);
    await page.button("Open chat");
    left.open();
    await page.shown('[part="preview"]', "Let me see.");
    await page.button("Open chat, 1 new message");
  },
);
