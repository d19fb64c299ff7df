/** The browser databases in which chats store conversations: how many connections they open, and how these end. */

import assert from "node:assert/strict";
import { after } from "node:test";
import type { Page } from "playwright-core";
import type { AgentChat } from "../../widget/element/agent-chat.ts";
import { launchBrowser } from "../support/browser.ts";
import { it, test } from "../support/rows.ts";
import { say } from "../support/scripted-provider.ts";
import { openChat } from "./chat-page.ts";
import { untilKept } from "./kept.ts";

const browser = await launchBrowser({ after });

/** Number of live objects of a class. */
async function countAlive(page: Page, name: string): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { result } = await session.send("Runtime.evaluate", { expression: `${name}.prototype` });
  const { objects } = await session.send("Runtime.queryObjects", { prototypeObjectId: `${result.objectId}` });
  const counted = await session.send("Runtime.callFunctionOn", {
    objectId: `${objects.objectId}`,
    functionDeclaration: "function() { return this.length; }",
    returnByValue: true,
  });
  return counted.result.value;
}

it("twenty chats that were in the page leave one connection to what is kept", async (t) => {
  const { page } = await openChat(t, browser, { turns: Array.from({ length: 20 }, () => [say("Yes.")]) });
  await page.evaluate(async () => {
    document.querySelector("agent-chat")?.remove();
    for (let index = 0; index < 20; index += 1) {
      const chat = document.createElement("agent-chat") as AgentChat;
      document.body.append(chat);
      await chat.send("Hi");
      chat.remove();
    }
  });
  await untilKept(page, /Yes\./);
  assert.equal(await countAlive(page, "IDBDatabase"), 1);
});

/** iOS, for example, closes connections without an event. `closeAll` simulates this; `isBroken` blocks new ones. */
const CLOSING = `{
  const opened = new Set();
  const { open } = IDBFactory.prototype;
  IDBFactory.prototype.open = function (...given) {
    if (window.isBroken) throw new DOMException("It is broken.", "UnknownError");
    const opening = open.apply(this, given);
    opening.addEventListener("success", () => opened.add(opening.result));
    return opening;
  };
  window.closeAll = () => opened.forEach((database) => database.close());
}`;

test("what is said after the browser has closed the connection is kept, or the chat says before a reload that it is not", async (t) => {
  const { page, ask, questions } = await openChat(t, browser, {
    turns: ["One", "Two", "Three"].map((text) => [say(text)]),
  });
  await page.addInitScript(CLOSING);
  await page.reload();
  await ask("First", "One");
  await untilKept(page, /One/);
  await page.evaluate("closeAll()");
  await ask("Second", "Two");
  await untilKept(page, /Two/);
  await page.reload();
  await questions.getByText("Second").waitFor();
  await page.evaluate("closeAll(); isBroken = true");
  await ask("Third", "Three");
  await page.getByText("The browser does not keep this conversation").waitFor();
});
