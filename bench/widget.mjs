/**
 * `npm run bench:widget`: what the chat costs a browser, measured on the built page at `/` in the Chromium of the tests:
 * a frame at the end of a long answer, the longest task on a phone, and the memory of a conversation.
 * `npm run bench:widget -- --before <dist/public of another build>` measures that one in turn with this one.
 */

import { parseArgs } from "node:util";
import { launchBrowser } from "../test/support/browser.ts";
import { startServer } from "../test/support/start-server.ts";
import { median } from "./server/order.mjs";
import { writeTable } from "./server/report.mjs";

const PHONE = { viewport: { width: 412, height: 800 } };

/** A mid-range phone against a desktop, as Chrome's developer tools take it. */
const SLOWER = 4;

/** From here on browsers call a task long: an input may have to wait for its end. */
const LONG_MS = 50;

const RUNS = 3;
const ANSWER_CHARS = 100_000;

/** So much of an answer's end is written at the pace of a model, a frame for each piece. */
const END_CHARS = 5_000;

const PROSE =
  "A paragraph with **strong words**, `code`, and [a link](https://example.org/page), which goes on for a while, as " +
  "answers do, until it has said what there is to say.\n\n";
const PART = `## A heading

${PROSE}- An item with *emphasis* and \`code\` in it
- another one, which is a little longer

\`\`\`ts
export function add(a: number, b: number): number {
  return a + b; // the sum
}
\`\`\`

${PROSE}| name | value | note |
|:-----|------:|------|
| one | 1 | *first* |

`;
const ANSWER = PART.repeat(ANSWER_CHARS / PART.length + 1).slice(0, ANSWER_CHARS);

const closing = [];
const t = { after: (close) => closing.unshift(close) };

/** `chars` characters each `ms` milliseconds. */
function* speak(text, chars, ms) {
  for (let at = 0; at < text.length; at += chars) {
    yield { type: "text", delta: text.slice(at, at + chars) };
    yield { type: "wait", for: new Promise((resolve) => setTimeout(resolve, ms)) };
  }
}

/** Opens the chat page of a server whose model says these turns. Without a folder it is that of this build. */
async function openChat({ browser, publicFolder }, turns) {
  const env = { PARLEY_RATE_PER_ADDRESS: "0", PARLEY_RATE_PER_SOCKET: "0" };
  const server = await startServer(t, { turns, env, publicFolder });
  const page = await browser.newPage(PHONE);
  await page.goto(server.url);
  await page.locator("textarea").waitFor();
  const session = await page.context().newCDPSession(page);
  return { page, session };
}

/** Sends messages one after the other, and waits for each answer. */
function send(page, count) {
  return page.evaluate(async (left) => {
    const chat = document.querySelector("agent-chat");
    for (; left > 0; left--) await chat.send(`Question ${left}?`);
  }, count);
}

/** Milliseconds of script, style and layout so far, and how many frames there were. */
async function workOf({ page, session }) {
  const { metrics } = await session.send("Performance.getMetrics");
  const parts = ["ScriptDuration", "LayoutDuration", "RecalcStyleDuration"];
  const seconds = metrics.filter(({ name }) => parts.includes(name)).reduce((sum, { value }) => sum + value, 0);
  return { ms: seconds * 1000, frames: await page.evaluate(() => globalThis.frameCount) };
}

/** The mean frame while the last characters of the answer are written. */
async function frameAtTheEnd(build) {
  const end = ANSWER.slice(-END_CHARS);
  let atTheEnd;
  const beginsToEnd = new Promise((resolve) => {
    atTheEnd = resolve;
  });
  function* turn() {
    yield* speak(ANSWER.slice(0, -END_CHARS), 512, 16);
    // The page must have drawn what came quickly.
    yield { type: "wait", for: new Promise((resolve) => setTimeout(resolve, 1000)) };
    atTheEnd();
    yield* speak(end, 16, 17);
  }
  const chat = await openChat(build, [turn()]);
  // Of the processor: on a shared machine the clock goes on for others.
  await chat.session.send("Performance.enable", { timeDomain: "threadTicks" });
  await chat.page.evaluate(() => {
    globalThis.frameCount = 0;
    const count = () => {
      globalThis.frameCount += 1;
      requestAnimationFrame(count);
    };
    count();
  });
  const done = send(chat.page, 1);
  await beginsToEnd;
  const before = await workOf(chat);
  await done;
  const after = await workOf(chat);
  await chat.page.close();
  return (after.ms - before.ms) / (after.frames - before.frames);
}

/** The tasks of the main thread while an answer is written, in milliseconds of a phone's processor. */
async function tasksOf(build) {
  const { page, session } = await openChat(build, [speak(ANSWER, 32, 12)]);
  const events = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  const isComplete = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  const traceConfig = { includedCategories: ["toplevel"] };
  await session.send("Tracing.start", { traceConfig, transferMode: "ReportEvents" });
  await send(page, 1);
  await session.send("Tracing.end");
  await isComplete;
  await page.close();
  const threadOf = ({ pid, tid }) => `${pid} ${tid}`;
  const mains = events.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain");
  const threads = new Set(mains.map(threadOf));
  const tasks = events.filter((event) => event.name.endsWith("RunTask") && threads.has(threadOf(event)));
  const times = tasks.map(({ tdur = 0 }) => (tdur / 1000) * SLOWER);
  return { longest: Math.max(...times), long: times.filter((ms) => ms >= LONG_MS).length };
}

/** KiB of the page's heap for each of 200 messages, and MB that are left after a new conversation has begun. */
async function memory(build) {
  const turns = Array.from({ length: 110 }, () => [{ type: "text", delta: PROSE.repeat(2) }]);
  const { page, session } = await openChat(build, turns);
  const heap = async () => {
    await session.send("HeapProfiler.collectGarbage");
    return (await session.send("Runtime.getHeapUsage")).usedSize;
  };
  await send(page, 10);
  const few = await heap();
  await send(page, 100);
  const many = await heap();
  await page.evaluate(() => document.querySelector("agent-chat").reset());
  const none = await heap();
  await page.close();
  return { each: (many - few) / 200 / 1024, left: (none - few) / 1e6 };
}

async function measure(build) {
  const { longest, long } = await tasksOf(build);
  return { frame: await frameAtTheEnd(build), longest, long, ...(await memory(build)) };
}

const ROWS = [
  ["mean frame at the end of an answer of 100 kB", "frame", "ms", "≤ 1.5"],
  ["longest task on a phone while it is written", "longest", "ms", "≤ 100"],
  ["tasks of 50 ms and more there", "long", "", ""],
  ["heap for each of 200 messages", "each", "KiB", ""],
  ["heap that is left after a new conversation", "left", "MB", ""],
];

const { before } = parseArgs({ options: { before: { type: "string" } } }).values;

try {
  const browser = await launchBrowser(t);
  const folders = before === undefined ? [undefined] : [before, undefined];
  const builds = folders.map((publicFolder) => ({ browser, publicFolder, results: [] }));
  // In turn, so that what else the machine does meets both.
  for (let run = 0; run < RUNS; run++) {
    for (const build of builds) build.results.push(await measure(build));
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
