import type { Locator, Page } from "playwright-core";
import { within } from "../support/deadline.ts";

const ROLES = ["status", "alert"] as const;

/** What the one element inside `root` gives a screen reader to say, in its order. An alert has a mark of exclamation before it. */
export async function listen(
  page: Page,
  root: Page | Locator = page,
  roles: readonly (typeof ROLES)[number][] = ROLES,
): Promise<string[]> {
  const heard: string[] = [];
  await page.exposeFunction("heard", (text: string) => {
    if (text !== "") heard.push(text);
  });
  for (const role of roles) {
    await root.getByRole(role).evaluate(
      (region, before) => {
        new MutationObserver((records) => {
          for (const { type, target, addedNodes } of records) {
            for (const node of type === "characterData" ? [target] : addedNodes) {
              const text = node.nodeType === Node.COMMENT_NODE ? "" : node.textContent?.trim();
              if (text) void window.heard(before + text);
            }
          }
        }).observe(region, { childList: true, characterData: true, subtree: true });
      },
      role === "alert" ? "! " : "",
    );
  }
  return heard;
}

/** Resolves when what was spoken so far has been heard: calls come in their order. */
export async function allHeard(page: Page): Promise<void> {
  await page.evaluate(() => window.heard(""));
}

/** Resolves when this has been heard, for however short a time it stood there. */
export async function untilHeard(page: Page, heard: readonly string[], text: string) {
  const listening = async () => {
    while (!heard.includes(text)) {
      await page.evaluate(() => new Promise((next) => requestAnimationFrame(next)));
    }
  };
  await within(listening(), JSON.stringify(text));
}

declare global {
  interface Window {
    heard: (text: string) => Promise<void>;
  }
}
