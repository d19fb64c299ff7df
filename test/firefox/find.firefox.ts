/** What the browser's own search finds in a conversation, of which only what is in view is laid out. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { ElementHandle } from "puppeteer-core";
import { say } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { findInPage } from "./browser-window.ts";
import { button, send, shown } from "./chat-page.ts";
import { firefoxPath, launchFirefox, openInFirefox } from "./firefox.ts";

if (firefoxPath === undefined) {
  throw new Error("There is no Firefox here: install firefox-esr, or name one in FIREFOX_PATH.");
}
const browser = await launchFirefox({ after }, firefoxPath);

/** A megabyte, in many sections. */
const LONG = Array.from({ length: 1_000 }, (_, index) => `${"word ".repeat(200)}number${index}.`);

const isLaidOut = (place: ElementHandle) =>
  place.evaluate((it) => (it as Element).checkVisibility({ contentVisibilityAuto: true }));

test("Ctrl+F finds what is not laid out at the moment, in an early message as in a long one, and scrolls to it", async (t) => {
  const server = await startServer(t, {
    turns: [[say("The colour is **ultramarine**.")], [say(LONG.join("\n\n"))]],
  });
  const { page } = await openInFirefox(t, browser, server.url);
  await send(page, "Which colour?");
  const early = await shown(page, "strong", "ultramarine");
  await button(page, "Send message");
  await send(page, "Tell me more");
  await shown(page, "p", "number999.");
  await button(page, "Send message");
  const middle = await page.waitForSelector(">>> p ::-p-text(number500.)");
  assert.ok(middle);
  // What is spoken is there a second time, as long as it is.
  await page.waitForFunction(
    () => !document.querySelector("agent-chat")?.shadowRoot?.querySelector('[role="status"] p'),
  );
  for (const [text, place] of [
    ["ultramarine", early],
    ["number500.", middle],
  ] as const) {
    assert.equal(await isLaidOut(place), false);
    assert.equal(await findInPage(page, text), true);
    await page.waitForFunction(
      (it) => {
        const { top, bottom } = (it as Element).getBoundingClientRect();
        return top < innerHeight && bottom > 0;
      },
      {},
      place,
    );
  }
  assert.equal(await findInPage(page, "vermilion"), false);
});
