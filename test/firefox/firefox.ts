/** Debian's Firefox for tests, driven by WebDriver BiDi: Playwright needs a Firefox of its own making. */

import { existsSync } from "node:fs";
import puppeteer, { type Browser, type Page } from "puppeteer-core";
import { WINDOW_ARGUMENT } from "./browser-window.ts";

const PLACES = [process.env.FIREFOX_PATH ?? "", "/usr/bin/firefox-esr", "/usr/bin/firefox"];

/** Far longer than anything here takes. */
const DEADLINE_MS = 15_000;

/** Where Firefox is on this machine, if it is. */
export const firefoxPath: string | undefined = PLACES.find((path) => existsSync(path));

/** Runs at the end of a test, or of the file for `{ after }` of `node:test`. */
interface Cleanup {
  after(close: () => Promise<void>): void;
}

/** Launches Firefox, which closes with the file. */
export async function launchFirefox(t: Cleanup, executablePath: string): Promise<Browser> {
  const browser = await puppeteer.launch({
    browser: "firefox",
    protocol: "webDriverBiDi",
    executablePath,
    args: [WINDOW_ARGUMENT],
    headless: true,
    // Long transitions would be waited for.
    extraPrefsFirefox: { "ui.prefersReducedMotion": 1 },
  });
  t.after(() => browser.close());
  return browser;
}

/** Opens an address in a fresh profile. `complaints` gathers errors of scripts and of the console. */
export async function openInFirefox(
  t: Cleanup,
  browser: Browser,
  url: string,
): Promise<{ page: Page; complaints: string[] }> {
  const context = await browser.createBrowserContext();
  t.after(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(DEADLINE_MS);
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  await page.goto(url);
  return { page, complaints };
}
