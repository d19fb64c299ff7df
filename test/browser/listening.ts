import type { Locator, Page } from "playwright-core";
import { within } from "../support/deadline.ts";

const ROLES = ["status", "alert"] as const;

/** Records what a screen reader would speak of the only live regions in `root`. Alerts begin with "!". */
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

/** Waits until all speech so far has been recorded: calls arrive in order. */
export async function allHeard(page: Page): Promise<void> {
  await page.evaluate(() => window.heard(""));
}

/** Waits until this text has been spoken, even if it was shown only briefly. */
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
