/** What a reader looks at stays where it is: nothing moves because an answer begins or ends. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { BrowserContextOptions } from "playwright-core";
import { type ChatPage, openChat } from "../browser/chat-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say, wait } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

/** Where the question, the answer or what stands for it, and the composer are. */
function places({ page }: ChatPage): Promise<(string | undefined)[]> {
  return page.locator("agent-chat").evaluate((chat) =>
    [".bubble", ".waiting, [part='markdown']", "[part='composer']"].map((selector) => {
      const box = chat.shadowRoot?.querySelector(selector)?.getBoundingClientRect();
      return box && `${selector}: ${box.x}, ${box.y}, ${box.width} × ${box.height}`;
    }),
  );
}

const CASES: readonly [string, BrowserContextOptions][] = [
  ["with a mouse", { viewport: { width: 1280, height: 800 } }],
  ["on a phone", { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }],
];

for (const [name, options] of CASES) {
  test(`an answer begins where it was waited for and ends without moving anything, ${name}`, async (t) => {
    const [begin, end] = [gate(), gate()];
    const chat = await openChat(t, browser, {
      turns: [[wait(begin.opened), say("One line"), wait(end.opened), say(".")]],
      browser: options,
    });
    // Of about the width at which a bubble breaks its lines.
    await chat.say(`${"A question that fills its bubble ".repeat(4)}?`);
    await chat.replies.locator(".waiting").waitFor();
    const waiting = await places(chat);
    begin.open();
    await chat.replies.getByText("One line").waitFor();
    const begun = await places(chat);
    assert.deepEqual(begun, waiting);
    end.open();
    await chat.page.getByRole("button", { name: "Copy answer" }).waitFor();
    assert.deepEqual(await places(chat), begun);
  });
}
