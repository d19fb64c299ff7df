/** What a person does with the browser itself, around the page: as its window gets it, and not by a script of the page. */

import assert from "node:assert/strict";
import type { Browser, Page } from "puppeteer-core";

/** Lets a test reach the window. */
export const WINDOW_ARGUMENT = "--remote-allow-system-access";

/** What Puppeteer has and does not describe. */
interface BidiBrowser {
  readonly connection: {
    send(method: string, params: object): Promise<{ readonly result: unknown }>;
  };
}

/** Calls a function, of which this is the source, in the window that shows the page. */
async function inWindowOf(page: Page, source: string, ...values: string[]): Promise<unknown> {
  await page.bringToFront();
  const { connection } = page.browser() as Browser & BidiBrowser;
  const tree = await connection.send("browsingContext.getTree", { "moz:scope": "chrome" });
  const [window] = (tree.result as { contexts: { context: string }[] }).contexts;
  const answer = await connection.send("script.callFunction", {
    functionDeclaration: source,
    arguments: values.map((value) => ({ type: "string", value })),
    target: { context: window?.context },
    awaitPromise: true,
  });
  const { result } = answer.result as { result?: { value?: unknown } };
  assert.ok(result, JSON.stringify(answer.result));
  return result.value;
}

/** The browser's code for a text that is not in the page. */
const NOT_FOUND = 1;

const FIND = `(text) => new Promise((resolve) => {
  const { finder } = gBrowser.selectedBrowser;
  const listener = {
    onFindResult({ result }) {
      finder.removeResultListener(listener);
      resolve(result);
    },
  };
  finder.addResultListener(listener);
  finder.fastFind(text, false, false);
})`;

/** Searches the page as Ctrl+F does, which scrolls to what it finds; answers whether it is there. */
export async function findInPage(page: Page, text: string): Promise<boolean> {
  return (await inWindowOf(page, FIND, text)) !== NOT_FOUND;
}

const MOVE_MOUSE = `(place) => {
  const { top } = gBrowser.selectedBrowser.getBoundingClientRect();
  window.synthesizeMouseEvent("mousemove", 300, place === "page" ? top + 200 : top - 40, {}, {});
}`;

/** Moves the mouse into the page, or up to the tabs above it. */
export async function moveMouse(page: Page, place: "page" | "tabs"): Promise<void> {
  await inWindowOf(page, MOVE_MOUSE, place);
}
