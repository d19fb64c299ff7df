/** What keeps long answers and long conversations quick: work that does not grow with what is there already. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { openChat } from "../browser/chat-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say, wait } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

test("while an answer streams, no attribute around it is written, which would style all of it anew", async (t) => {
  const [rest, end] = [gate(), gate()];
  const tokens = Array.from({ length: 50 }, (_, index) => say(` Word ${index}.`));
  const chat = await openChat(t, browser, {
    turns: [[say("It begins."), wait(rest.opened), ...tokens, wait(end.opened), say(" The end.")]],
  });
  await chat.say("Go");
  await chat.answer.getByText("It begins.").waitFor();
  const records = await chat.page.evaluateHandle(() => {
    const told: Node[] = [];
    const observer = new MutationObserver((more) => told.push(...more.map(({ target }) => target)));
    const root = document.querySelector("agent-chat")?.shadowRoot;
    // Told of every writing, also of what was there before.
    for (const node of root ? [document, root] : []) {
      observer.observe(node, { attributes: true, subtree: true });
    }
    return told;
  });
  rest.open();
  await chat.answer.getByText("Word 49.").waitFor();
  const written = await records.evaluate((targets) =>
    targets.filter((target) => !(target as Element).closest(".markdown, .composer")).map(({ nodeName }) => nodeName),
  );
  assert.deepEqual(written, []);
  end.open();
  await chat.send.waitFor();
});

/** An event of Chromium's traces. */
interface TraceEvent {
  readonly name: string;
  readonly args?: {
    readonly elementCount?: number;
    readonly data?: { readonly reason?: string; readonly nodeName?: string };
  };
}

/** What Chromium tells of itself while something happens: events of one category of its traces. */
async function tracedDuring(
  page: Page,
  category: string,
  work: () => Promise<unknown>,
): Promise<readonly TraceEvent[]> {
  const session = await page.context().newCDPSession(page);
  const events: TraceEvent[] = [];
  session.on("Tracing.dataCollected", ({ value }) => {
    events.push(...(value as unknown as TraceEvent[]));
  });
  const traced = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  const traceConfig = { includedCategories: [category] };
  await session.send("Tracing.start", { traceConfig, transferMode: "ReportEvents" });
  await work();
  await session.send("Tracing.end");
  await traced;
  await session.detach();
  return events;
}

/** How many elements the browser styles while something happens. */
async function styledDuring(page: Page, work: () => Promise<unknown>): Promise<number> {
  const events = await tracedDuring(page, "devtools.timeline", work);
  const counts = events.flatMap(({ name, args }) => (name === "UpdateLayoutTree" ? [args?.elementCount ?? 0] : []));
  return counts.reduce((sum, count) => sum + count, 0);
}

test("earlier messages that are drawn above a long conversation style none of it anew", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("An answer.")]] });
  await chat.ask("A question", "An answer.");
  const add = (pairs: number) =>
    chat.messages.evaluate((scroller, count) => {
      const column = scroller.firstElementChild as Element;
      const pair = [...column.querySelectorAll(".message")].slice(-2);
      for (let added = 0; added < count; added++) {
        column.prepend(...pair.map((message) => message.cloneNode(true)));
      }
      return column.getBoundingClientRect().height;
    }, pairs);
  await add(400);
  const one = await styledDuring(chat.page, () => add(1));
  assert.ok(one > 0 && one < 400, `${one} elements of 802 messages were styled`);
});

test("while an answer streams, nothing is searched for through the transcript", async (t) => {
  const [rest, end] = [gate(), gate()];
  const chat = await openChat(t, browser, {
    turns: [[say("It begins."), wait(rest.opened), say(" It goes on."), wait(end.opened)]],
  });
  await chat.say("Go");
  await chat.answer.getByText("It begins.").waitFor();
  const searched = await chat.page.evaluateHandle(() => {
    const selectors = { cheap: 0, slow: [] as string[] };
    const search = ShadowRoot.prototype.querySelector;
    ShadowRoot.prototype.querySelector = function (this: ShadowRoot, selector: string) {
      const found: Element | null = search.call(this, selector);
      const transcript = search.call(this, '[part="messages"]');
      const isBefore = found?.contains(transcript);
      // A browser finds an id without searching.
      if (selector.startsWith("#") || isBefore) selectors.cheap += 1;
      else selectors.slow.push(selector);
      return found;
    };
    return selectors;
  });
  rest.open();
  await chat.answer.getByText("It goes on.").waitFor();
  const { cheap, slow } = await searched.jsonValue();
  assert.ok(cheap > 0);
  assert.deepEqual(slow, []);
  end.open();
  await chat.send.waitFor();
});

const INVALIDATION = "disabled-by-default-devtools.timeline.invalidationTracking";

test("the end of an answer has nothing that is in it styled anew", async (t) => {
  const ends = [gate(), gate()] as const;
  const text = Array.from({ length: 80 }, (_, index) => `Paragraph ${index}.`).join("\n\n");
  const chat = await openChat(t, browser, {
    turns: ends.map((end) => [say(text), wait(end.opened)]),
  });
  /** What all of which is styled anew when the answer ends. */
  const restyled = async (index: 0 | 1) => {
    await chat.say("Go");
    await chat.answer.getByText("Paragraph 79.").waitFor();
    const events = await tracedDuring(chat.page, INVALIDATION, async () => {
      ends[index].open();
      await chat.send.waitFor();
      await chat.answer.locator("xpath=following-sibling::*").waitFor();
    });
    return events
      .map(({ args }) => `${args?.data?.reason}: ${args?.data?.nodeName}`)
      .filter((told) => /invalidates subtree: .*(?:markdown|section)/.test(told));
  };
  assert.deepEqual(await restyled(0), []);
  // Chromium tells of it where a rule does so.
  await chat.page.locator("agent-chat").evaluate(({ shadowRoot }) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(".markdown:last-child > :last-child { color: red }");
    shadowRoot?.adoptedStyleSheets.push(sheet);
  });
  assert.notDeepEqual(await restyled(1), []);
});
