/**
 * `npm run bench:widget`: what the chat costs a browser, measured on the built page at `/` in the Chromium of the tests:
 * a frame at the end of a long answer, the longest task on a phone, and the memory of a conversation.
 */

import { launchBrowser } from "../test/support/browser.ts";
import { startServer } from "../test/support/start-server.ts";
import { median } from "./server/order.mjs";
import { writeTable } from "./server/report.mjs";

const PHONE = { viewport: { width: 412, height: 800 } };

/** A mid-range phone against a desktop, as Chrome's developer tools take it. */
const SLOWER = 4;

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

/** Opens the chat page of a server whose model says these turns. */
async function openChat(browser, turns) {
  const server = await startServer(t, { turns, env: { PARLEY_RATE_PER_ADDRESS: "0", PARLEY_RATE_PER_SOCKET: "0" } });
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
    for (; left > 0; left--) {
      const done = new Promise((resolve) => document.addEventListener("agent-chat-done", resolve, { once: true }));
      chat.send(`Question ${left}?`);
      await done;
    }
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
async function frameAtTheEnd(browser) {
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
  const chat = await openChat(browser, [turn()]);
  await chat.session.send("Performance.enable");
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

/** The longest task of the main thread while an answer is written, in milliseconds of a phone's processor. */
async function longestTask(browser) {
  const { page, session } = await openChat(browser, [speak(ANSWER, 32, 12)]);
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
  return tasks.reduce((longest, { tdur = 0 }) => Math.max(longest, (tdur / 1000) * SLOWER), 0);
}

/** KiB of the page's heap for each of 200 messages, and MB that are left after a new conversation has begun. */
async function memory(browser) {
  const turns = Array.from({ length: 110 }, () => [{ type: "text", delta: PROSE.repeat(2) }]);
  const { page, session } = await openChat(browser, turns);
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

async function medianOf(measure, browser) {
  const values = [];
  for (let run = 0; run < RUNS; run++) values.push(await measure(browser));
  return median(values);
}

try {
  const browser = await launchBrowser(t);
  const frame = await medianOf(frameAtTheEnd, browser);
  const task = await medianOf(longestTask, browser);
  const { each, left } = await memory(browser);
  const judge = (value, most, unit) => [`${value.toPrecision(3)} ${unit}`, `≤ ${most}`];
  console.log(
    writeTable([
      ["what", "measured", "goal"],
      ["mean frame at the end of an answer of 100 kB", ...judge(frame, 1.5, "ms")],
      ["longest task on a phone while it is written", ...judge(task, 100, "ms")],
      ["heap for each of 200 messages", ...judge(each, 8, "KiB")],
      ["heap that is left after a new conversation", ...judge(left, 1, "MB")],
    ]),
  );
} finally {
  for (const close of closing) await close();
}
