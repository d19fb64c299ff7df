/** What the launcher costs a site whose visitors never open it: work of the main thread while the page loads, and memory. */

import { sitePage, startSite } from "../../test/support/site.ts";
import { startServer } from "../../test/support/start-server.ts";
import { LONG_MS, memoryOf, PHONE, tasksDuring } from "./phone.mjs";

const LOADS = 5;

const SCRIPTS = ["widget.js", "launcher.js"];

/** A page of some length, so that it has work of its own. */
const CONTENT = "<p>Roses, tulips and other flowers are sold here every day of the week.</p>".repeat(200);

/** The median of the loads, each in a fresh profile. */
async function load(browser, url, selector) {
  const loads = [];
  for (let index = 0; index < LOADS; index += 1) {
    const page = await browser.newPage(PHONE);
    // Of the same site, so that the page is loaded in the process that is traced.
    await page.goto(new URL("/before", url).href);
    const tasks = await tasksDuring(page, async () => {
      await page.goto(url);
      await page.locator(selector).waitFor();
      await page.evaluate(() => new Promise((resolve) => requestIdleCallback(resolve)));
    });
    const sum = tasks.reduce((before, ms) => before + ms, 0);
    const [longest = 0] = tasks;
    loads.push({
      sum,
      longest,
      long: tasks.filter((ms) => ms > LONG_MS).length,
      ...(await memoryOf(page)),
    });
    await page.close();
  }
  return loads.sort((a, b) => a.sum - b.sum)[Math.floor(LOADS / 2)];
}

/** Rows of a table: the page without us, and with the closed launcher of each script what that is more. */
export async function closedLauncher(browser, t) {
  const server = await startServer(t, { turns: [] });
  const site = await startSite(t, {
    "/before": sitePage(""),
    "/without": sitePage(CONTENT),
    ...Object.fromEntries(
      SCRIPTS.map((script) => [
        `/${script}`,
        sitePage(`${CONTENT}<script src="${server.url}/${script}" async></script>`),
      ]),
    ),
  });
  const without = await load(browser, `${site.url}/without`, "main");
  const row = (name, { sum, longest, long, bytes, nodes }) => [
    name,
    sum.toFixed(0),
    longest.toFixed(0),
    String(long),
    (bytes / 1e6).toFixed(2),
    String(nodes),
  ];
  const rows = [["page", "all tasks", "longest", "over 50 ms", "heap, MB", "nodes"], row("without us", without)];
  for (const script of SCRIPTS) {
    const launcher = await load(browser, `${site.url}/${script}`, '[part="launcher"]');
    const more = Object.entries(launcher).map(([name, value]) => [name, value - without[name]]);
    rows.push(row(`with /${script}`, launcher), row("more", Object.fromEntries(more)));
  }
  return rows;
}
