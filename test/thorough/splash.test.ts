/** The page before its script is loaded. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { chatIn } from "../browser/chat-page.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { startServer } from "../support/start-server.ts";

const browser = await launchBrowser({ after });

for (const path of ["/", "/?embed=1"]) {
  test(`until ${path} has its script it shows a mark, after long what can be done, and then nothing of both`, async (t) => {
    const server = await startServer(t, { turns: [] });
    const { page, complaints } = await openPage(t, browser);
    const held = gate();
    await page.route("**/chunks/*.js", async (route) => {
      await held.opened;
      await route.continue();
    });
    await page.goto(server.url + path, { waitUntil: "commit" });
    const mark = page.locator(".splash svg");
    const advice = page.getByText("Please check your connection");
    await mark.waitFor();
    assert.equal(await advice.isVisible(), false);
    // Skips ten seconds.
    await advice.evaluate((it) => {
      for (const animation of it.getAnimations()) animation.finish();
    });
    assert.equal(await advice.isVisible(), true);
    held.open();
    await chatIn(page).input.waitFor();
    assert.equal(await mark.isVisible(), false);
    assert.equal(await advice.isVisible(), false);
    assert.deepEqual(complaints, []);
  });
}

test("without JavaScript the page says that it is needed, and shows no mark", async (t) => {
  const server = await startServer(t, { turns: [] });
  const { page } = await openPage(t, browser, { javaScriptEnabled: false });
  await page.goto(server.url);
  const words = page.locator("noscript");
  await words.waitFor();
  assert.match((await words.textContent()) ?? "", /needs JavaScript/);
  assert.equal(await page.locator(".splash svg").isVisible(), false);
});
