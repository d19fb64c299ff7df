/** The chat in Firefox, and what a person does with it. */

import assert from "node:assert/strict";
import type { ElementHandle, Page } from "puppeteer-core";

/** `>>>` looks through shadow roots. */
export const FIELD = ">>> textarea";

export async function send(page: Page, text: string): Promise<void> {
  const field = await page.waitForSelector(FIELD);
  await field?.click();
  await page.keyboard.type(text);
  await page.keyboard.press("Enter");
}

/** Waits for a text inside what the selector finds, and gives that element. */
export async function shown(page: Page, selector: string, text: string): Promise<ElementHandle> {
  const found = await page.waitForSelector(`>>> ${selector} ::-p-text(${text})`, { visible: true });
  assert.ok(found, text);
  return found;
}

export const button = (page: Page, name: string) =>
  page.waitForSelector(`>>> button[aria-label="${name}"]`, { visible: true });

/** The accessible name of what has the focus, through shadow roots. */
export const focused = (page: Page) =>
  page.evaluate(() => {
    let element = document.activeElement;
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    return element?.getAttribute("aria-label") ?? element?.textContent?.trim();
  });
