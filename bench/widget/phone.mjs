/**
 * What a mid-range phone has to do: tasks of the page's main thread while an answer of 100 kB streams and while a conversation
 * of 400 messages is restored, and the memory of a conversation that grows.
 *
 * What counts of a task is its time on the processor, times four: on a machine that does other things meanwhile a task lasts
 * longer by the clock, and has no more to do.
 */

import { startServer } from "../../test/support/start-server.ts";
import { encodeConversation } from "../../widget/chunks/stored-conversation.ts";
import { answers } from "./answers.mjs";
import { reached } from "./goals.mjs";
import { longestRecurring } from "./recurring.mjs";

/** A mid-range phone against a desktop, as the developer tools of Chrome take it. */
const SLOWER = 4;

/** A longer task holds up a tap or a key. */
export const LONG_MS = 50;

/** What is long in one of them only, the machine has done. */
const RUNS = 3;

/** Laying out a conversation of 1 MB may take so long. */
const LAYOUT_MS = 100;

/** A message of some 300 characters may keep so much of the heap, however many there are. */
const PER_MESSAGE_BYTES = 8_192;

const [[, mixture]] = answers;

export const PHONE = { viewport: { width: 412, height: 800 } };

/** A model that speaks 80 times a second, 32 characters each time. */
function* spoken(text) {
  for (let at = 0; at < text.length; at += 32) {
    yield { type: "text", delta: text.slice(at, at + 32) };
    yield { type: "wait", for: new Promise((resolve) => setTimeout(resolve, 12)) };
  }
}

/** Questions and answers as a tab keeps them, each answer with so many characters. */
function stored(count, agent, chars) {
  const messages = Array.from({ length: count }, (_, index) => {
    const id = `m${index + 1}`;
    if (index % 2 === 0) return { role: "user", id, text: `Question ${index}?`, files: [] };
    const from = mixture.indexOf("\n\n", (index * 397) % (mixture.length - 2 * chars)) + 2;
    const text = `Answer ${index}.\n\n${mixture.slice(from, from + chars)}`;
    const blocks = [{ type: "text", id: `${id}.0`, text }];
    return { role: "assistant", id, status: "done", finishReason: "stop", blocks };
  });
  const state = { conversation_history: [] };
  const rest = { agent, draft: { text: "", files: [] }, state, forks: new Map(), cut: false };
  return encodeConversation({ ...rest, messages }, Number.POSITIVE_INFINITY);
}

/** What took time in the page's main thread while something happened, of one category of Chrome's traces. */
async function eventsDuring(page, category, work) {
  const session = await page.context().newCDPSession(page);
  const events = [];
  session.on("Tracing.dataCollected", ({ value }) => {
    for (const event of value) events.push(event);
  });
  const traced = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  const traceConfig = { includedCategories: [category] };
  await session.send("Tracing.start", { traceConfig, transferMode: "ReportEvents" });
  await work();
  await session.send("Tracing.end");
  await traced;
  await session.detach();
  const threadOf = ({ pid, tid }) => `${pid} ${tid}`;
  const main = events.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain");
  const threads = new Set(main.map(threadOf));
  return events.filter((it) => it.tdur && threads.has(threadOf(it)));
}

/** Tasks of the page's main thread while something happens, in milliseconds on the processor, the longest first. */
export async function tasksDuring(page, work) {
  return (await placedTasks(page, work)).map(({ ms }) => ms);
}

/**
 * The same with the place of each: the part of all work that was done before it. By the clock the same work would be elsewhere
 * in each run, which ends when somebody asks whether it has.
 */
async function placedTasks(page, work) {
  const events = await eventsDuring(page, "toplevel", work);
  const tasks = events.filter(({ name }) => name.endsWith("RunTask")).sort((a, b) => a.ts - b.ts);
  const all = tasks.reduce((sum, { tdur }) => sum + tdur, 0);
  let before = 0;
  return tasks
    .map(({ tdur }) => {
      const at = before / all;
      before += tdur;
      return { at, ms: (tdur / 1000) * SLOWER };
    })
    .sort((a, b) => b.ms - a.ms);
}

/** Puts a conversation into a page's tab; answers what opens the page and resolves when all of it is drawn. */
async function restore(page, server, count, chars) {
  const { agent } = await (await fetch(`${server.url}/api/info`)).json();
  const item = [`agent-chat-session:${server.url}/`, stored(count, agent, chars)];
  await page.goto(`${server.url}/health`);
  await page.evaluate(([name, value]) => sessionStorage.setItem(name, value), item);
  // The page itself says when: asking it from outside would be work, too.
  await page.addInitScript((expected) => {
    const timer = setInterval(() => {
      const root = document.querySelector("agent-chat")?.shadowRoot;
      if (root?.querySelectorAll(".message").length !== expected) return;
      clearInterval(timer);
      requestAnimationFrame(() => setTimeout(() => console.log("drawn"), 300));
    }, 100);
  }, count);
  return async () => {
    const drawn = page.waitForEvent("console", { timeout: 120_000 });
    await page.goto(server.url, { waitUntil: "commit" });
    await drawn;
  };
}

async function restoring(browser, t) {
  const server = await startServer(t, { turns: [] });
  const page = await browser.newPage(PHONE);
  const tasks = await placedTasks(page, await restore(page, server, 400, 2_500));
  await page.close();
  return tasks;
}

/** Layouts of the page, in milliseconds on this machine, until a conversation of 1 MB is drawn. */
async function layingOut(browser, t) {
  const server = await startServer(t, { turns: [] });
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  const open = await restore(page, server, 400, 5_000);
  const events = await eventsDuring(page, "devtools.timeline", open);
  await page.close();
  return events.filter(({ name }) => name === "Layout").map(({ tdur }) => tdur / 1000);
}

async function streaming(browser, t) {
  const server = await startServer(t, { turns: [spoken(mixture)] });
  const page = await browser.newPage(PHONE);
  await page.goto(server.url);
  await page.locator("textarea").waitFor();
  await page.evaluate(() => {
    document.addEventListener("agent-chat-done", () => setTimeout(() => console.log("done"), 300));
  });
  const tasks = await placedTasks(page, async () => {
    const done = page.waitForEvent("console", { timeout: 240_000 });
    await page.evaluate(() => void document.querySelector("agent-chat").send("Go"));
    await done;
  });
  await page.close();
  return tasks;
}

/** Bytes of the page's heap, and its nodes, when the garbage is gone. */
export async function memoryOf(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  const { nodes } = await session.send("Memory.getDOMCounters");
  await session.detach();
  return { bytes: usedSize, nodes };
}

/** Rows of a table: what the page does that holds it up, in three runs. */
export async function phone(browser, t) {
  const rows = [["on a phone", "tasks", "longest", "over 50 ms", "longest that comes again", "goal"]];
  for (const [name, measure, apart] of [
    ["a 100 kB answer streams", streaming, 0.005],
    // One processor that is lent makes a greater part of these few seconds.
    ["400 messages, 500 kB, are restored", restoring, 0.03],
  ]) {
    const runs = [];
    for (let run = 0; run < RUNS; run += 1) runs.push(await measure(browser, t));
    const own = longestRecurring(runs, apart);
    rows.push([
      name,
      runs.map(({ length }) => length).join(", "),
      runs.map(([longest]) => (longest?.ms ?? 0).toFixed(0)).join(", "),
      runs.map((tasks) => tasks.filter(({ ms }) => ms > LONG_MS).length).join(", "),
      own.toFixed(0),
      reached(own <= LONG_MS),
    ]);
  }
  return rows;
}

/** Rows of a table: what it takes to lay out a conversation of 1 MB, the newest messages first. */
export async function layout(browser, t) {
  const times = await layingOut(browser, t);
  const sum = times.reduce((total, ms) => total + ms, 0);
  return [
    ["400 messages, 1 MB, are opened", "layouts", "longest", "all of them", "goal"],
    [
      "in milliseconds on this machine",
      String(times.length),
      Math.max(...times).toFixed(0),
      sum.toFixed(0),
      reached(sum <= LAYOUT_MS),
    ],
  ];
}

/** Memory with 100 and with 1,000 messages of 300 characters, and when a new conversation has begun after them. */
export async function memory(browser, t) {
  const server = await startServer(t, { turns: [] });
  const open = async (count) => {
    const page = await browser.newPage(PHONE);
    await (await restore(page, server, count, 300))();
    return page;
  };
  const short = await open(100);
  const few = await memoryOf(short);
  await short.close();
  const long = await open(1_000);
  const many = await memoryOf(long);
  await long.evaluate(() => document.querySelector("agent-chat").reset());
  const none = await memoryOf(long);
  await long.close();
  const each = (many.bytes - few.bytes) / 900;
  const row = (name, { bytes, nodes }, more, goal) => {
    return [name, (bytes / 1e6).toFixed(1), String(nodes), more, goal];
  };
  return [
    ["messages", "heap, MB", "nodes", "bytes for each more", "goal"],
    row("100", few, "", ""),
    row("1,000", many, each.toFixed(0), reached(each <= PER_MESSAGE_BYTES)),
    row("none again", none, "", reached(none.nodes <= few.nodes && none.bytes < few.bytes + 1e6)),
  ];
}
