/** A real Chromium for tests: the system's where there is one, else the one of `@sparticuz/chromium`. */

import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { atEnd, type TestEnd } from "./at-end.ts";
import { DEADLINE_MS } from "./deadline.ts";

const SYSTEM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Unpacked once and kept between runs, since it takes seconds. */
const CACHE = "node_modules/.cache/parley-chromium";

async function executable(): Promise<string> {
  const system = [process.env.CHROMIUM_PATH ?? "", ...SYSTEM].find((path) => existsSync(path));
  return system ?? join(await unpacked(), "chromium");
}

/** Test files run at the same time: each unpacks into a folder of its own, and the first to finish wins. */
async function unpacked(): Promise<string> {
  if (existsSync(CACHE)) return CACHE;
  mkdirSync("node_modules/.cache", { recursive: true });
  const folder = mkdtempSync(`${CACHE}-`);
  // The package unpacks into the folder for temporary files.
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
    // Somebody else was first; theirs is as good.
    rmSync(folder, { recursive: true, force: true });
  }
  return CACHE;
}

/** Every name under `.example` is this machine, so that pages come from origins that are not loopback ones. */
const OTHER_SITES = "--host-resolver-rules=MAP *.example 127.0.0.1";

/** The one of this process, and how many tests or files use it. */
let shared: { readonly browser: Promise<Browser>; users: number } | undefined;

/**
 * A browser until the end of the test, or of the file for `{ after }` of `node:test`. Files that run in one process share
 * one: what must be apart is in profiles (`openPage`).
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
      // A scroll by keyboard is then over when it has begun.
      "--disable-smooth-scrolling",
      OTHER_SITES,
    ],
  });
}

/** What a page complained of: script errors, console errors, refusals by its Content-Security-Policy. */
export interface WatchedPage {
  page: Page;
  complaints: string[];
}

/** Opens a page in a fresh profile, and gathers its complaints. */
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

/** With `SLOW=6` in the environment a page has a sixth of the processor: it loses the races that it loses on a slow machine. */
function slowDown(page: Page): void {
  const rate = Number(process.env.SLOW);
  if (!rate) return;
  const slow = async () => (await page.context().newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate });
  // A page that has been closed by then needs it no more.
  slow().catch(() => {});
}

/** Waits until the page has complained so. The console reaches a test by another way than what is shown, and may come later. */
export async function complained({ page, complaints }: WatchedPage, text: RegExp): Promise<void> {
  if (complaints.some((it) => text.test(it))) return;
  await page.waitForEvent("console", { predicate: (message) => text.test(message.text()) });
}
