import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { Page } from "playwright-core";
import { chatIn } from "../browser/chat-page.ts";
import { type VisitOptions, visit } from "../browser/launcher-page.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { say } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";

const browser = await launchBrowser({ after });

/** Styles of careless and hostile sites. */
const HOSTILE_CSS = `<style>
  * { all: unset; color: red; font: italic 40px/3 fantasy; letter-spacing: 1em; text-transform: uppercase }
  html { font-size: 40px }
  body > * { transform: rotate(3deg); opacity: 0.5; display: none; position: static; width: 10px; zoom: 2 }
  button, textarea, p, div, section { background: lime; border: 20px solid red; width: 5px; visibility: hidden }
  agent-chat, agent-chat-launcher { position: static; bottom: 50%; z-index: -1; margin: 100px; filter: blur(9px) }
</style>`;

/** Computed styles and boxes of an element and all its descendants, through shadow roots. */
async function looksOf(page: Page, selector: string): Promise<string[]> {
  // Announcements disappear after a moment.
  await page.locator('[role="status"] p').first().waitFor({ state: "detached" });
  return page.locator(selector).evaluate((start) => {
    const looks: string[] = [];
    const origin = start.getBoundingClientRect();
    const queue: Element[] = [start];
    for (let node = queue.shift(); node !== undefined; node = queue.shift()) {
      const style = getComputedStyle(node);
      const { x, y, width, height } = node.getBoundingClientRect();
      const chosen = [
        style.color,
        style.backgroundColor,
        style.font,
        style.letterSpacing,
        style.whiteSpace,
        style.textAlign,
        style.textShadow,
        style.textTransform,
        style.border,
        style.opacity,
        style.visibility,
        style.filter,
      ];
      const isDrawn = width > 0 || height > 0;
      const box = isDrawn ? [x - origin.x, y - origin.y, width, height].map(Math.round) : [];
      looks.push([node.localName, ...box, ...chosen].join(" | "));
      // Announcements disappear on their own, sooner on one page than on another.
      if (node.matches('[role="status"]')) continue;
      queue.push(...(node.shadowRoot?.children ?? []), ...node.children);
    }
    return looks;
  });
}

const open = async (t: TestContext, options: VisitOptions = {}): Promise<Page> =>
  (await visit(t, browser, { turns: [[say("# Title\n\n**Hello** `there`.")]], ...options })).page;

async function openPanel(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Open chat" }).click();
  const chat = chatIn(page.locator("agent-chat"));
  await chat.say("Hi");
  await chat.replies.getByText("there").waitFor();
  await chat.send.waitFor();
}

test("a site's styles change nothing in the launcher and its panel", async (t) => {
  const plain = await open(t);
  const hostile = await open(t, { head: HOSTILE_CSS });
  await openPanel(plain);
  await openPanel(hostile);
  const expected = await looksOf(plain, "agent-chat-launcher");
  assert.ok(expected.length > 50, `only ${expected.length} elements`);
  assert.deepEqual(await looksOf(hostile, "agent-chat-launcher"), expected);
});

test("the widget changes nothing in its site, open or closed", async (t) => {
  const site = await startSite(t, { "/": sitePage("") });
  const { page: without } = await openPage(t, browser);
  await without.goto(site.url);
  const page = await open(t);
  const expected = [await looksOf(without, "main > h1"), await looksOf(without, "main > p")];
  await page.locator('[part="launcher"]').waitFor();
  assert.deepEqual([await looksOf(page, "main > h1"), await looksOf(page, "main > p")], expected);
  await openPanel(page);
  assert.deepEqual([await looksOf(page, "main > h1"), await looksOf(page, "main > p")], expected);
  const globals = await page.evaluate(() => [
    document.styleSheets.length,
    document.adoptedStyleSheets.length,
    document.documentElement.attributes.length,
    document.title,
  ]);
  assert.deepEqual(globals, [0, 0, 1, "Shop"]);
});

test("the launcher shifts nothing and makes the page no longer", async (t) => {
  const page = await open(t, { body: "<p>Text of the site.</p>".repeat(80) });
  await page.locator('[part="launcher"]').waitFor();
  const size = () =>
    page.evaluate(() => {
      const { scrollWidth, scrollHeight, scrollTop } = document.documentElement;
      return { scrollWidth, scrollHeight, scrollTop };
    });
  const before = await size();
  await page.evaluate(() => scrollTo(0, 300));
  await openPanel(page);
  assert.deepEqual(await size(), { ...before, scrollTop: 300 });
  const shifts = await page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        new PerformanceObserver((list) => {
          // As in browsers, shifts within half a second after user input do not count.
          const unasked = list
            .getEntries()
            .filter((entry) => "hadRecentInput" in entry && entry.hadRecentInput === false);
          resolve(unasked.length);
        }).observe({ type: "layout-shift", buffered: true });
        // Buffered entries, if any, are delivered before the second frame from here.
        requestAnimationFrame(() => requestAnimationFrame(() => resolve(0)));
      }),
  );
  assert.equal(shifts, 0);
});

test("a site's styles reach nothing inside a hand-placed chat, by rule or by inheritance", async (t) => {
  const body = '<div style="all: initial; display: block; height: 400px"><agent-chat></agent-chat></div>';
  const css = `<style>
    * { color: red; font: italic 40px/3 fantasy; letter-spacing: 1em; text-transform: uppercase; white-space: nowrap; text-align: right; text-shadow: 0 0 9px red }
    button, textarea, p, h1, code, div > div, .message { color: red; font-size: 40px; background: lime }
  </style>`;
  const plain = await open(t, { body });
  const hostile = await open(t, { body, head: css });
  for (const page of [plain, hostile]) {
    const chat = chatIn(page);
    await chat.say("Hi");
    await chat.replies.getByText("there").waitFor();
    await chat.send.waitFor();
  }
  assert.deepEqual(await looksOf(hostile, "agent-chat .chat"), await looksOf(plain, "agent-chat .chat"));
});
