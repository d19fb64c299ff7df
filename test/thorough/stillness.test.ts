/** What a reader looks at does not move because an answer begins or ends. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { BrowserContextOptions } from "playwright-core";
import { type ChatPage, openChat, standsAt } from "../browser/chat-page.ts";
import { button, panel, preview, visit } from "../browser/launcher-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { call, say, think, wait } from "../support/scripted-provider.ts";
import { define } from "../support/test-tools.ts";

const browser = await launchBrowser({ after });

/** Boxes of the question, the answer or its placeholder, and the composer. */
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
    // About as wide as a bubble before its lines wrap.
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

test("tool calls have their place in an answer that a reload brings back, before their code has come", async (t) => {
  const code = gate();
  const look = define("look", () => Promise.resolve("seen"));
  const chat = await openChat(t, browser, {
    agent: { tools: [look] },
    turns: [[call("a", "look"), call("b", "look")], [say("Done.")]],
  });
  await chat.ask("Go", "Done.");
  await chat.page.route("**/steps-*.js", async (route) => {
    await code.opened;
    await route.continue();
  });
  await chat.page.reload();
  await chat.answer.waitFor();
  await standsAt(chat.messages);
  const before = await places(chat);
  code.open();
  await chat.tools.nth(1).waitFor();
  await standsAt(chat.messages);
  assert.deepEqual(await places(chat), before);
});

/** Records in a page's `moved` each animation, transition and smooth scroll in a shadow root. */
function watchMotion(): void {
  const moved = new Set<string>();
  const { attachShadow, scroll }: { attachShadow: Element["attachShadow"]; scroll(options: ScrollToOptions): void } =
    Element.prototype;
  Element.prototype.attachShadow = function (init) {
    const root = attachShadow.call(this, init);
    root.addEventListener("animationstart", (event) => moved.add((event as AnimationEvent).animationName));
    root.addEventListener("transitionrun", (event) => moved.add((event as TransitionEvent).propertyName));
    return root;
  };
  Object.assign(Element.prototype, {
    scroll(this: Element, options: ScrollToOptions) {
      if (options.behavior === "smooth" || getComputedStyle(this).scrollBehavior === "smooth") moved.add("scroll");
      scroll.call(this, options);
    },
  });
  Object.assign(window, { moved });
}

/** Names of animations, of properties in transition, and of smooth scrolling. */
const MOTIONS = ["open", "pulse", "rise", "rotate", "scale", "scroll", "shimmer", "spin", "wait"];

for (const reducedMotion of ["reduce", "no-preference"] as const) {
  const isCalm = reducedMotion === "reduce";
  test(`in launcher and chat ${isCalm ? "nothing moves for those who prefer that" : "much moves for others"}`, async (t) => {
    const [begin, speak, end] = [gate(), gate(), gate()];
    const chat = await visit(t, browser, {
      script: 'data-preview="Hi" data-preview-after="0" data-feedback',
      agent: { tools: [define("look", () => speak.opened)] },
      turns: [
        [say("One.\n\n".repeat(40))],
        [wait(begin.opened), think("Hm."), call("c1", "look")],
        [say("Well"), wait(end.opened), say(".")],
      ],
      browser: { reducedMotion },
    });
    const { page } = chat;
    /** An animation begins one frame after its element appears, and never if the element is removed before. */
    const begins = async (...motions: string[]) => {
      if (!isCalm) await page.waitForFunction(`${JSON.stringify(motions)}.every((it) => moved.has(it))`);
    };
    await page.addInitScript(watchMotion);
    const held = gate();
    await page.route("**/chunks/panel-*.js", async (route) => {
      await held.opened;
      await route.continue();
    });
    await page.evaluate(() => sessionStorage.clear());
    await page.reload();
    await preview(page).waitFor();
    await begins("open");
    await button(page).click();
    await page.locator('[part="launcher"][aria-busy="true"]').waitFor();
    await begins("wait");
    held.open();
    await panel(page).waitFor();
    await chat.say("First");
    await chat.answered();
    await chat.say("Second");
    await chat.replies.locator(".waiting").waitFor();
    await begins("pulse");
    begin.open();
    await chat.tools.locator(".spinner").waitFor();
    await begins("spin", "shimmer");
    speak.open();
    await chat.answer.getByText("Well").waitFor();
    end.open();
    await chat.answered(2);
    await chat.thinking.getByRole("button").and(page.locator('[aria-expanded="false"]')).click();
    await chat.replies.last().hover();
    await page.getByRole("button", { name: "Bad answer" }).last().click();
    await page.locator('[part="feedback-form"]').waitFor();
    // The assertion below names the missing ones.
    await begins(...MOTIONS).catch(() => undefined);
    await page.keyboard.press("Escape");
    const moved = await page.evaluate<string[]>("[...moved]");
    if (isCalm) assert.deepEqual(moved, []);
    else for (const it of MOTIONS) assert.ok(moved.includes(it), `${it} is not in ${moved}`);
  });
}
