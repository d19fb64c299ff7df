/** What a person sees before the first message. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { launchBrowser, openPage } from "../support/browser.ts";
import { startServer } from "../support/start-server.ts";
import { chatIn, watchAddresses } from "./chat-page.ts";
import { PHONE } from "./launcher-page.ts";

const browser = await launchBrowser({ after });

for (const [name, profile] of [
  ["a phone", PHONE],
  ["a desktop", { viewport: { width: 1280, height: 800 } }],
] as const) {
  test(`on ${name} the page at / is complete when it is first painted: it asks nothing, and nothing shifts`, async (t) => {
    const server = await startServer(t, {
      turns: [],
      agent: {
        chat: {
          welcome: "Hello! I am Ada.",
          suggestions: ["Where is my order?", "What does a new chain cost?", "How do I send something back?"],
          disclaimer: "Ada is a machine and can be wrong. Please check what is important to you before you rely on it.",
        },
      },
    });
    const { page } = await openPage(t, browser, profile);
    const { requests } = watchAddresses(page);
    await page.addInitScript(() => {
      const shifts: number[] = [];
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) shifts.push((entry as PerformanceEntry & { value: number }).value);
      }).observe({ type: "layout-shift", buffered: true });
      Object.assign(window, { shifts });
    });
    await page.goto(server.url);
    const chat = chatIn(page);
    await chat.input.waitFor();
    const parts = { greeting: chat.greeting, suggestions: page.locator('[part="suggestions"]') };
    for (const part of Object.values(parts)) assert.ok(await part.isVisible());
    assert.ok(await page.locator('[part="disclaimer"]').isVisible());
    assert.ok(await page.getByRole("button", { name: "Attach files" }).isEnabled());
    // What comes late would be here by the second frame behind the last request.
    await page.waitForLoadState("networkidle");
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    const shift = await page.evaluate<number>("shifts.reduce((sum, value) => sum + value, 0)");
    assert.ok(shift <= 0.01, `shifted by ${shift}`);
    assert.deepEqual(
      requests.filter((url) => url.endsWith("/api/info")),
      [],
    );
  });
}
