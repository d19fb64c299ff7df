/**
 * `npm run bench:widget`: what the chat costs a browser, measured on the built files in the Chromium of the tests: frames,
 * the longest tasks on a phone, storage, and what the script costs the page around it.
 * `npm run bench:widget -- --before <dist/public of another build>` measures that one in turn with this one.
 */

import { parseArgs } from "node:util";
import { fillList } from "../test/browser/kept.ts";
import { launchBrowser } from "../test/support/browser.ts";
import { gate } from "../test/support/deadline.ts";
import { startServer } from "../test/support/start-server.ts";
import { define } from "../test/support/test-tools.ts";
import { median } from "./server/order.mjs";
import { writeTable } from "./server/report.mjs";

/** How much slower a mid-range phone is than a desktop, according to Chrome's developer tools. */
const SLOWER = 4;

const RUNS = 3;
const ANSWER_CHARS = 100_000;
const TOOL_CHARS = 2_000_000;
const HOST_CHANGES = 600;
const MOUNTS = 20;

/** Numbers of the exchanges whose frames are measured. */
const EXCHANGES = [1, 25, 100, 400];

/** How much of an answer's end is streamed at the pace of a model, with a frame for each piece. */
const END_CHARS = 5_000;

const PROSE =
  "A paragraph with **strong words**, `code`, and [a link](https://example.org/page), which goes on for a while, as " +
  "answers do, until it has said what there is to say.\n\n";
const CODE = "```ts\nexport function add(a: number, b: number): number {\n  return a + b; // the sum\n}\n```\n\n";
const LIST = "- An item with *emphasis* and `code` in it\n- another one, which is a little longer\n\n";
const TABLE = "| name | value | note |\n|:-----|------:|------|\n| one | 1 | *first* |\n\n";
const PART = `## A heading\n\n${PROSE}${LIST}${CODE}${PROSE}${TABLE}`;
const ANSWER = PART.repeat(ANSWER_CHARS / PART.length + 1).slice(0, ANSWER_CHARS);

const closing = [];
const t = { after: (close) => closing.unshift(close) };

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const says = (delta) => [{ type: "text", delta }];

/** `chars` characters each `ms` milliseconds. */
function* speak(text, chars, ms) {
  for (let at = 0; at < text.length; at += chars) {
    yield { type: "text", delta: text.slice(at, at + chars) };
    yield { type: "wait", for: pause(ms) };
  }
}

/** Opens the chat page of a server whose model says these turns; without `publicFolder`, the page of this build. */
async function openChat({ browser, publicFolder }, turns, agent = {}) {
  const env = { PARLEY_RATE_PER_ADDRESS: "0", PARLEY_RATE_PER_SOCKET: "0", PARLEY_MAX_TOOL_OUTPUT_CHARS: "4000000" };
  const server = await startServer(t, { turns, env, publicFolder, agent });
  const page = await browser.newPage({ viewport: { width: 412, height: 800 } });
  await page.goto(server.url);
  await page.locator("textarea").waitFor();
  const session = await page.context().newCDPSession(page);
  // Processor time: on a shared machine, elapsed time includes the work of others.
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return { page, session, server };
}

/** Sends messages one after the other, and waits for each answer. */
function send(page, count) {
  return page.evaluate(async (left) => {
    const chat = document.querySelector("agent-chat");
    globalThis.isAnswering = true;
    for (; left > 0; left--) await chat.send(`Question ${left}?`);
    globalThis.isAnswering = false;
  }, count);
}

/** Milliseconds of the main thread so far. */
async function workOf(session, parts = ["TaskDuration"]) {
  const { metrics } = await session.send("Performance.getMetrics");
  return metrics.filter(({ name }) => parts.includes(name)).reduce((sum, { value }) => sum + value * 1000, 0);
}

/** The main thread's mean time per frame, in milliseconds, from `begins` until the end of a message's answer. */
async function meanFrame({ page, session }, begins, parts) {
  const done = send(page, 1);
  await begins;
  const before = await workOf(session, parts);
  const frames = await page.evaluate(async () => {
    let count = 0;
    for (; globalThis.isAnswering; count++) await new Promise(requestAnimationFrame);
    return count;
  });
  await done;
  return ((await workOf(session, parts)) - before) / frames;
}

/** A turn that says a text quickly, resolves `begins`, and then says `end` at the pace of a model. */
function slowEnd(text, end) {
  const begins = gate();
  function* turn() {
    yield* speak(text, 512, 16);
    // The page must have drawn what came quickly.
    yield { type: "wait", for: pause(1000) };
    begins.open();
    yield* speak(end, 16, 17);
  }
  return { begins: begins.opened, turn: turn() };
}

/** The time for script, style and layout of a frame. */
async function frameAtTheEnd(build) {
  const { begins, turn } = slowEnd(ANSWER.slice(0, -END_CHARS), ANSWER.slice(-END_CHARS));
  const chat = await openChat(build, [turn]);
  const frame = await meanFrame(chat, begins, ["ScriptDuration", "LayoutDuration", "RecalcStyleDuration"]);
  await chat.page.close();
  return { frame };
}

/** The mean time of a frame in an exchange, by its number, while the text field has the focus. */
async function framesByExchange(build) {
  const frames = {};
  const exchanges = EXCHANGES.map((number, index) => ({
    number,
    before: Array(number - 1 - (EXCHANGES[index - 1] ?? 0)).fill(says(PART.repeat(2))),
    ...slowEnd(PART, PROSE.repeat(12)),
  }));
  const turns = exchanges.flatMap(({ before, turn }) => [...before, turn]);
  const chat = await openChat(build, turns);
  await chat.page.locator("textarea").focus();
  for (const { number, before, begins } of exchanges) {
    await send(chat.page, before.length);
    frames[`frame${number}`] = await meanFrame(chat, begins);
  }
  await chat.page.close();
  return frames;
}

/** The longest task of the main thread while something happens, in milliseconds of a phone's processor. */
async function longestTask({ page, session }, act) {
  const events = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  const isComplete = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  const traceConfig = { includedCategories: ["toplevel"] };
  await session.send("Tracing.start", { traceConfig, transferMode: "ReportEvents" });
  await act();
  // Some parts are drawn when the page is idle.
  await page.waitForTimeout(1000);
  await session.send("Tracing.end");
  await isComplete;
  await page.close();
  const threadOf = ({ pid, tid }) => `${pid} ${tid}`;
  const names = events.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain");
  const mains = new Set(names.map(threadOf));
  const tasks = events.filter((event) => event.name.endsWith("RunTask") && mains.has(threadOf(event)));
  return Math.max(...tasks.map(({ tdur = 0 }) => (tdur / 1000) * SLOWER));
}

async function longTasks(build) {
  const writing = await openChat(build, [speak(ANSWER.repeat(3), 96, 12)]);
  const written = await longestTask(writing, () => send(writing.page, 1));
  const restoring = await openChat(build, Array(90).fill(says(ANSWER.slice(0, 20_000))));
  await send(restoring.page, 90);
  // So that unloading the page is not measured.
  await restoring.page.goto("about:blank");
  await restoring.session.send("HeapProfiler.collectGarbage");
  const restored = await longestTask(restoring, async () => {
    await restoring.page.goto(restoring.server.url);
    await restoring.page.waitForTimeout(5000);
  });
  const rows = define("rows", () => JSON.stringify(Array(TOOL_CHARS / 50).fill({ id: 1, note: PROSE.slice(0, 33) })));
  const asks = [{ type: "call", call: { id: "c1", name: "rows", arguments: "{}" } }];
  const opening = await openChat(build, [asks, says("Done.")], { tools: [rows] });
  await send(opening.page, 1);
  const opened = await longestTask(opening, () => opening.page.locator(".step-row").click());
  return { written, restored, opened };
}

/** Runs in the page: records reads of conversations, the characters written, and how long each save takes. */
function observe() {
  const { put, get, getAll } = IDBObjectStore.prototype;
  const { setTimeout: wait } = globalThis;
  const seen = Object.assign(globalThis, { reads: 0, written: 0, spent: 0, saves: [] });
  const clock = {
    time(act, self, given) {
      const start = performance.now();
      const result = act.apply(self, given);
      seen.spent += performance.now() - start;
      return result;
    },
  };
  // A save begins with a timer of 1000 ms, and ends when it writes its row.
  globalThis.setTimeout = (act, ms, ...given) => wait(ms === 1000 ? () => clock.time(act, null, given) : act, ms);
  for (const [name, read] of Object.entries({ get, getAll })) {
    IDBObjectStore.prototype[name] = function (...given) {
      seen.reads += this.name === "conversations";
      if (this.name === "summaries") seen.listing ??= performance.now();
      return read.apply(this, given);
    };
  }
  IDBObjectStore.prototype.put = function (...given) {
    seen.written += JSON.stringify(given).length;
    const result = clock.time(put, this, given);
    if (this.name === "conversations") seen.saves.push(seen.spent);
    if (this.name === "conversations") seen.spent = 0;
    return result;
  };
}

/**
 * Milliseconds from a press until what it shows has been drawn. In a page that is still loading, the button is pressed
 * as soon as it exists: time then counts from the first reading of the library, without which there is no button.
 */
function press(page, ...selectors) {
  return page.evaluate(async ([button, shown]) => {
    const find = (selector) => document.querySelector("agent-chat")?.shadowRoot?.querySelector(selector);
    const isLoading = !find(button);
    while (!find(button)) await new Promise(requestAnimationFrame);
    const start = isLoading ? globalThis.listing : performance.now();
    find(button).click();
    while (!find(shown)) await new Promise(requestAnimationFrame);
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    return performance.now() - start;
  }, selectors);
}

/** A first visit on a slow phone: until it greets, what that costs, and until an immediate message is answered. */
async function firstVisit({ browser, publicFolder }) {
  const { url } = await startServer(t, { turns: [says("Hi.")], publicFolder });
  const page = await browser.newPage({ viewport: { width: 412, height: 800 } });
  const session = await page.context().newCDPSession(page);
  const bytes = 200 * 1024;
  const network = { offline: false, latency: 150, downloadThroughput: bytes, uploadThroughput: bytes };
  await session.send("Network.enable");
  await session.send("Network.emulateNetworkConditions", network);
  await session.send("Emulation.setCPUThrottlingRate", { rate: SLOWER });
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  await page.goto(url, { waitUntil: "commit" });
  const untilThere = (selector) =>
    page.evaluate(async (wanted) => {
      while (!document.querySelector("agent-chat")?.shadowRoot?.querySelector(wanted))
        await new Promise(requestAnimationFrame);
      const files = performance.getEntriesByType("resource").filter(({ name }) => name.endsWith(".js"));
      return [performance.now(), files.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0) / 1000];
    }, selector);
  const [greeting, kilobytes] = await untilThere(".welcome");
  const work = await workOf(session);
  await page.locator("textarea").fill("Hello");
  await page.keyboard.press("Enter");
  const [answered] = await untilThere(".markdown p");
  await page.close();
  return { greeting, kilobytes, work, firstAnswer: answered };
}

/** 200 conversations, one of which has 800 messages: what the list, that one, its answers and a draft below it cost. */
async function library(build) {
  const answers = [1, 2].map(() => speak(PROSE.repeat(25), 16, 17));
  const { page } = await openChat(build, [says("One."), ...answers]);
  await send(page, 1);
  await page.waitForTimeout(1500);
  await page.evaluate(fillList(199, 10, 2300));
  await page.evaluate(fillList(1, 800, 2300));
  await page.addInitScript(observe);
  await page.reload({ waitUntil: "commit" });
  const figures = { listed: await press(page, "[part=list]", ".list.is-open .list-row") };
  figures.reads = await page.evaluate("reads");
  for (const [id, messages] of Object.entries({ filled1: 10, filled0: 800 })) {
    await press(page, ".list-new", ".greeting");
    figures[`open${messages}`] = await press(page, `[data-id=${id}]`, "agent-chat-message");
    await page.locator(`.exchange:nth-of-type(${messages / 2})`).waitFor({ state: "attached" });
    await page.evaluate("saves.length = 0");
    await send(page, 1);
    figures[`save${messages}`] = median(await page.evaluate("saves"));
  }
  await page.waitForTimeout(1500);
  await page.evaluate("written = 0");
  figures.search = await page.evaluate(async () => {
    const { shadowRoot: root } = document.querySelector("agent-chat");
    const field = root.querySelector(".list-search");
    const start = performance.now();
    field.value = "in no text";
    field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    while (!root.querySelector(".list").textContent.includes("Nothing found")) await new Promise(requestAnimationFrame);
    field.value = "";
    field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    return performance.now() - start;
  });
  await page.locator("textarea").pressSequentially("six words that are typed and ".repeat(2), { delay: 100 });
  // Typing takes 5.8 s.
  figures.typed = ((await page.evaluate("written")) / 1024) * (60 / 5.8);
  await page.close();
  return figures;
}

/** Milliseconds that the script adds to one change of a large page. */
async function hostPage({ browser, publicFolder }) {
  const { url } = await startServer(t, { turns: [], publicFolder });
  const page = await browser.newPage();
  const body = `<!doctype html><div id="app">${"<p>text</p>".repeat(20_000)}</div>`;
  await page.route("**/host", (route) => route.fulfill({ contentType: "text/html", body }));
  await page.goto(`${url}/host`);
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const change = async () => {
    const before = await workOf(session);
    await page.evaluate(async (count) => {
      const app = document.querySelector("#app");
      for (; count > 0; count--) app.lastChild.replaceWith((await null) ?? document.createElement("b"));
    }, HOST_CHANGES);
    return ((await workOf(session)) - before) / HOST_CHANGES;
  };
  const alone = await change();
  await page.addScriptTag({ url: `${url}/widget.js` });
  await page.locator("[part=launcher]").waitFor();
  const host = Math.max(0, (await change()) - alone);
  await page.close();
  return { host };
}

/** What is left of chats that a page has shown and removed again: connections to IndexedDB, and elements. */
async function mounts(build) {
  const { page, session } = await openChat(build, Array(MOUNTS).fill(says("Hi.")));
  await page.evaluate(async (left) => {
    document.querySelector("agent-chat").remove();
    for (; left > 0; left--) {
      const chat = document.body.appendChild(document.createElement("agent-chat"));
      chat.id = "support";
      chat.server = location.origin;
      await chat.send("Hello");
      await chat.updateComplete;
      chat.remove();
    }
  }, MOUNTS);
  // The last message is stored a second later.
  await page.waitForTimeout(2000);
  const count = async (prototype) => {
    const { result } = await session.send("Runtime.evaluate", { expression: prototype });
    const { objects } = await session.send("Runtime.queryObjects", { prototypeObjectId: result.objectId });
    const functionDeclaration = "function() { return this.length; }";
    const asked = { objectId: objects.objectId, functionDeclaration, returnByValue: true };
    return (await session.send("Runtime.callFunctionOn", asked)).result.value;
  };
  const figures = {
    databases: await count("IDBDatabase.prototype"),
    left: await count("customElements.get('agent-chat').prototype"),
  };
  await page.close();
  return figures;
}

async function measure(build) {
  const results = [];
  const parts = [frameAtTheEnd, framesByExchange, longTasks, firstVisit, library, mounts, hostPage];
  for (const part of parts) results.push(await part(build));
  return results;
}

const ROWS = [
  ["script, style and layout of a frame at the end of 100 kB", "frame", "ms", "≤ 1.5"],
  ...EXCHANGES.map((number) => [
    `main thread for a frame in exchange ${number}`,
    `frame${number}`,
    "ms",
    "≤ 1.5 × the first",
  ]),
  ["longest task on a phone while 300 kB are written", "written", "ms", "≤ 100"],
  ["longest task there when 2 MB are restored", "restored", "ms", "≤ 100"],
  ["longest task there when 2 MB of a tool are opened", "opened", "ms", "≤ 100"],
  ["a first visit on a slow phone, until it greets", "greeting", "ms", ""],
  ["scripts that have come over the wire then, with brotli", "kilobytes", "kB", ""],
  ["main thread until then, on that phone", "work", "ms", ""],
  [
    "until a first answer is drawn there, to a message that is sent as soon as it greets",
    "firstAnswer",
    "ms",
    "as before",
  ],
  ["200 conversations, from their first reading until the list is pressed open and drawn", "listed", "ms", "< 100"],
  ["conversations that are read with their messages from the load on", "reads", "", "1, the one that is shown"],
  ["a conversation of 10 messages, from the press until its end is drawn", "open10", "ms", ""],
  ["the same with 800 messages and 4 MB with their states", "open800", "ms", ""],
  ["main thread for a save while an answer comes, behind 10 messages", "save10", "ms", ""],
  ["the same behind 800 messages", "save800", "ms", "as behind 10"],
  ["a search through all of them that finds nothing", "search", "ms", ""],
  ["written to IndexedDB while typing for a minute", "typed", "KiB", "0"],
  [`connections to IndexedDB after ${MOUNTS} chats were shown and removed`, "databases", "", "1"],
  ["their elements that are still in memory", "left", "", "a few, however many"],
  ["a change of a page of 20,000 elements", "host", "ms", "≤ 0.05"],
];

const { before } = parseArgs({ options: { before: { type: "string" } } }).values;

try {
  const browser = await launchBrowser(t);
  const folders = before === undefined ? [undefined] : [before, undefined];
  const builds = folders.map((publicFolder) => ({ browser, publicFolder, results: [] }));
  // In turn, so that other load on the machine affects both.
  for (let run = 0; run < RUNS; run++) {
    for (const build of builds) build.results.push(Object.assign({}, ...(await measure(build))));
  }
  const heads = before === undefined ? ["measured"] : ["before", "now"];
  const rows = ROWS.map(([what, key, unit, goal]) => {
    const cells = builds.map(({ results }) => `${median(results.map((it) => it[key])).toPrecision(3)} ${unit}`.trim());
    return [what, ...cells, goal];
  });
  console.log(writeTable([["what", ...heads, "goal"], ...rows]));
} finally {
  for (const close of closing) await close();
}
