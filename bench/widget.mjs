/**
 * What the widget costs: frames of a long answer against parsing the whole message again, the size of every file, the
 * time until somebody can type, what holds a phone up, and memory. Prints tables; needs a build. `npm run bench:widget`
 */

import { readdirSync, readFileSync } from "node:fs";
import { build } from "esbuild";
import { litCoreOnly } from "../build/lit-core.mjs";
import { markedLexerOnly } from "../build/marked-lexer.mjs";
import { launchBrowser } from "../test/support/browser.ts";
import { sitePage, startSite } from "../test/support/site.ts";
import { startServer } from "../test/support/start-server.ts";
import { answers } from "./widget/answers.mjs";
import { closedLauncher } from "./widget/closed-launcher.mjs";
import { frameGoals } from "./widget/goals.mjs";
import { layout, memory, phone } from "./widget/phone.mjs";

const LOADS = 7;

const closing = [];
const t = { after: (close) => closing.unshift(close) };

function print(title, rows) {
  console.log(`\n${title}\n`);
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  for (const [index, row] of rows.entries()) {
    const cells = row.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column]),
    );
    console.log(`| ${cells.join(" | ")} |`);
    if (index > 0) continue;
    console.log(`|${widths.map((width, column) => `${"-".repeat(width + 1)}${column ? ":" : "-"}`).join("|")}|`);
  }
}

function sizes() {
  const paths = [
    "widget.js",
    "launcher.js",
    ...readdirSync("dist/public/chunks")
      .filter((name) => name.endsWith(".js"))
      .map((name) => `chunks/${name}`),
  ];
  const bytes = (path) => readFileSync(`dist/public/${path}`).length.toLocaleString("en");
  print("Bytes of each file, as built and on the wire", [
    ["file", "raw", "gzip", "brotli"],
    ...paths.map((path) => [path, bytes(path), bytes(`${path}.gz`), bytes(`${path}.br`)]),
  ]);
}

/** The widget's Markdown as it is built. */
async function pageScript() {
  const { outputFiles } = await build({
    entryPoints: ["bench/widget/page.ts"],
    bundle: true,
    format: "iife",
    target: "es2022",
    minify: true,
    write: false,
    plugins: [litCoreOnly, markedLexerOnly],
    // Its chunks are not there: what they add is not measured.
    define: { PARLEY_CHUNKS: JSON.stringify("-none"), PARLEY_LOCALES: '""' },
  });
  return outputFiles[0].text;
}

async function frames(browser) {
  const page = await browser.newPage({ viewport: { width: 800, height: 900 } });
  await page.goto((await startSite(t, { "/": sitePage("") })).url);
  // The whole package, of which the widget has the lexer only.
  await page.addScriptTag({ path: "node_modules/marked/lib/marked.umd.js" });
  await page.addScriptTag({ content: await pageScript() });
  const milliseconds = (value) => value.toFixed(2);
  const rows = [
    ["answer", "start", "end", "end/start", "in a loop", "longest", "whole: start", "whole: end", "whole/ours"],
  ];
  const costs = [];
  for (const [name, text] of answers) {
    const { ours, whole } = await page.evaluate((source) => globalThis.benchmark(source), text);
    costs.push(ours);
    rows.push([
      name,
      milliseconds(ours.start),
      milliseconds(ours.end),
      (ours.end / ours.start).toFixed(1),
      milliseconds(ours.loop),
      milliseconds(ours.longest),
      milliseconds(whole.start),
      milliseconds(whole.end),
      `${(whole.end / ours.end).toFixed(0)} x`,
    ]);
  }
  print("Milliseconds of script and layout per frame of 16 characters", rows);
  const [[, mixture]] = answers;
  const sight = await page.evaluate((text) => globalThis.inspect(text), mixture.slice(0, 20_000));
  print("Goals of a stream of 100 kB (what is seen: of its first 20 kB)", frameGoals(costs[0], sight));
  await page.close();
}

/** Milliseconds from the navigation until something can be used, in fresh profiles. */
async function timeTo(browser, url, selector) {
  const times = [];
  for (let load = 0; load < LOADS; load += 1) {
    const page = await browser.newPage();
    await page.goto(url, { waitUntil: "commit" });
    await page.locator(selector).waitFor();
    times.push(await page.evaluate(() => performance.now()));
    await page.close();
  }
  return times.sort((a, b) => a - b)[Math.floor(LOADS / 2)];
}

async function interactive(browser) {
  const server = await startServer(t, { turns: [] });
  const site = await startSite(t, {
    "/": sitePage(`<script src="${server.url}/widget.js" async></script>`),
    "/early": sitePage(`<script src="${server.url}/launcher.js" async></script>`),
    "/without": sitePage(`<button>Nothing</button>`),
  });
  const rows = [["page", "median of 7"]];
  for (const [name, url, selector] of [
    ["/ until the text field", `${server.url}/`, "textarea"],
    ["a host page until the launcher", `${site.url}/`, '[part="launcher"]'],
    ["the same with /launcher.js", `${site.url}/early`, '[part="launcher"]'],
    ["the same page without us, until its button", `${site.url}/without`, "button"],
  ]) {
    rows.push([name, (await timeTo(browser, url, selector)).toFixed(0)]);
  }
  print("Milliseconds until interactive, on this machine", rows);
}

try {
  sizes();
  const browser = await launchBrowser(t);
  await frames(browser);
  await interactive(browser);
  print(
    "Tasks of the page on a phone, in milliseconds on a processor that is four times slower",
    await phone(browser, t),
  );
  print(
    "A site's page with the launcher that nobody opens, in milliseconds on such a processor",
    await closedLauncher(browser, t),
  );
  print("Layout of a long conversation", await layout(browser, t));
  print("Memory of a conversation", await memory(browser, t));
} finally {
  for (const close of closing) await close();
}
