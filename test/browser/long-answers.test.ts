/** What keeps long answers and long conversations quick: work that does not grow with what is there already. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
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
