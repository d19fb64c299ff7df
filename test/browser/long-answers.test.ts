/** What keeps long answers and long conversations quick: work that does not grow with what is there already. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say, wait } from "../support/scripted-provider.ts";
import { openChat } from "./chat-page.ts";

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
    targets
      .filter((target) => !(target as Element).closest(".markdown, .composer"))
      .map(({ nodeName }) => nodeName),
  );
  assert.deepEqual(written, []);
  end.open();
  await chat.send.waitFor();
});

/** How many elements the browser styles while something happens. */
async function styledDuring(page: Page, work: () => Promise<unknown>): Promise<number> {
  const session = await page.context().newCDPSession(page);
  let styled = 0;
  session.on("Tracing.dataCollected", ({ value }) => {
    for (const { name, args } of value as unknown as {
      name: string;
      args?: { elementCount?: number };
    }[]) {
      if (name === "UpdateLayoutTree") styled += args?.elementCount ?? 0;
    }
  });
  const traced = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  const traceConfig = { includedCategories: ["devtools.timeline"] };
  await session.send("Tracing.start", { traceConfig, transferMode: "ReportEvents" });
  await work();
  await session.send("Tracing.end");
  await traced;
  await session.detach();
  return styled;
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
