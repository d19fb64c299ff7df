/** A real Chromium for tests: the system's if there is one, else the one of `@sparticuz/chromium`. */

import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { atEnd, type TestEnd } from "./at-end.ts";
import { DEADLINE_MS } from "./deadline.ts";

const SYSTEM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Unpacked once and kept between runs, because unpacking takes seconds. */
const CACHE = "node_modules/.cache/parley-chromium";

async function executable(): Promise<string> {
  const system = [process.env.CHROMIUM_PATH ?? "", ...SYSTEM].find((path) => existsSync(path));
  return system ?? join(await unpacked(), "chromium");
}

/** Test files run in parallel: each unpacks into a folder of its own, and the first to finish renames it to `CACHE`. */
async function unpacked(): Promise<string> {
  if (existsSync(CACHE)) return CACHE;
  mkdirSync("node_modules/.cache", { recursive: true });
  const folder = mkdtempSync(`${CACHE}-`);
  // The package unpacks into `TMPDIR`.
  const before = process.env.TMPDIR;
  process.env.TMPDIR = folder;
  try {
    const { default: packed } = await import("@sparticuz/chromium");
    await packed.executablePath();
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
  try {
    renameSync(folder, CACHE);
  } catch {
    // Another process was first; use its copy.
    rmSync(folder, { recursive: true, force: true });
  }
  return CACHE;
}

/** Resolves every name under `.example` to this machine, so that tests can load pages from non-loopback origins. */
const OTHER_SITES = "--host-resolver-rules=MAP *.example 127.0.0.1";

/** The browser that tests and files of this process share, and the number of its users. */
let shared: { readonly browser: Promise<Browser>; users: number } | undefined;

/**
 * Returns a browser until the end of the test, or of the file if `t` is `{ after }` of `node:test`. Files in one
 * process share the browser; `openPage` isolates them by profile.
 */
export function launchBrowser(t: TestEnd): Promise<Browser> {
  const mine = shared ?? { browser: launch(), users: 0 };
  shared = mine;
  mine.users += 1;
  atEnd(t, async () => {
    mine.users -= 1;
    if (mine.users > 0) return;
    shared = undefined;
    await (await mine.browser).close();
  });
  return mine.browser;
}

async function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: await executable(),
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--disable-background-networking",
      // A scroll by keyboard then completes at once.
      "--disable-smooth-scrolling",
      OTHER_SITES,
    ],
  });
}

/** A page and its complaints: script errors, console errors, and Content-Security-Policy violations. */
export interface WatchedPage {
  page: Page;
  complaints: string[];
}

/** Opens a page in a fresh profile and collects its complaints. */
export async function openPage(
  t: TestEnd,
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext(options);
  atEnd(t, () => context.close());
  context.setDefaultTimeout(DEADLINE_MS);
  context.on("page", slowDown);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  return { page, complaints };
}

/** `SLOW=6` in the environment slows a page's processor down sixfold, to provoke race conditions of slow machines. */
function slowDown(page: Page): void {
  const rate = Number(process.env.SLOW);
  if (!rate) return;
  const slow = async () => (await page.context().newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate });
  // Fails if the page is closed already, which does not matter.
  slow().catch(() => {});
}

/** Waits for a complaint that matches. Console messages may arrive later than changes to the page. */
export async function complained({ page, complaints }: WatchedPage, text: RegExp): Promise<void> {
  if (complaints.some((it) => text.test(it))) return;
  await page.waitForEvent("console", { predicate: (message) => text.test(message.text()) });
}
