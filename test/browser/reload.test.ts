/** The conversation survives reloads: no message is lost, and no event is repeated. */

import assert from "node:assert/strict";
import { after } from "node:test";
import type { AgentChat } from "../../widget/element/agent-chat.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { RED_PIXEL as PNG } from "../support/files.ts";
import { it, test } from "../support/rows.ts";
import { call, say, think, wait } from "../support/scripted-provider.ts";
import { echo } from "../support/test-tools.ts";
import { type ChatPage, canCopy, contents, openChat, shown } from "./chat-page.ts";
import { kept, untilKept } from "./kept.ts";
import { listen, untilHeard } from "./listening.ts";

const browser = await launchBrowser({ after });

const stored = ({ page }: ChatPage) => kept(page);

const reset = ({ page }: Pick<ChatPage, "page">) => page.getByRole("button", { name: "New conversation" });

const NOT_KEPT = "The browser does not keep this conversation";

test("after a reload everything is there as it was, nothing is spoken, and the conversation goes on", async (t) => {
  const chat = await openChat(t, browser, {
    agent: { tools: [echo] },
    turns: [[think("Hm."), call("c1", "echo", { text: "ping" })], [say("**Pong.**")], [say("Yes.")]],
  });
  await chat.ask("Ping", "Pong.");
  await chat.input.fill("Half a thou");
  // Rows are rendered by a lazy part of the script.
  await chat.tools.waitFor();
  await chat.thinking.getByText("Hm.").waitFor({ state: "hidden" });
  const before = await shown(chat.messages);
  await chat.page.reload();
  await chat.replies.getByText("Pong.").waitFor();
  await chat.tools.waitFor();
  // Answers have no name until the server has sent the agent's.
  await chat.page.getByText("Acme Support").first().waitFor();
  assert.equal(await chat.input.inputValue(), "Half a thou");
  assert.equal(await shown(chat.messages), before);
  assert.equal(
    await chat.page
      .locator('[role="status"]')
      .allInnerTexts()
      .then((all) => all.join("")),
    "",
  );
  await chat.ask("Really?", "Yes.");
  assert.deepEqual(contents(chat, 2)?.filter(Boolean), ["Ping", "ping", "**Pong.**", "Really?"]);
});

test("a reload after any event of an answer changes nothing of it, and the agent is asked no more often", async (t) => {
  const gates = Array.from({ length: 5 }, gate);
  const [first, second, third, fourth, fifth] = gates.map((it) => wait(it.opened));
  assert.ok(first && second && third && fourth && fifth);
  const ping = { text: "ping" };
  const chat = await openChat(t, browser, {
    agent: { tools: [echo] },
    turns: [
      [think("Let me see."), think(" Yes."), call("c1", "echo", ping)],
      [say("One, "), say("two, "), say("three.")],
      [think("Let me see."), first, think(" Yes."), second, call("c1", "echo", ping)],
      [third, say("One, "), fourth, say("two, "), fifth, say("three.")],
    ],
  });
  const transcript = async () => {
    const text = await chat.page.evaluate(() => document.querySelector("agent-chat")?.exportTranscript("json"));
    return String(text).replace(/"(duration_ms|at)": [^,\n]+/g, "");
  };
  const holds = (part: string) =>
    chat.page.waitForFunction(async (it) => {
      const text = await document.querySelector("agent-chat")?.exportTranscript("json");
      return text?.includes(it);
    }, part);
  await chat.ask("Go", "One, two, three.");
  const whole = await transcript();
  await reset(chat).click();
  await chat.greeting.waitFor();
  await chat.say("Go");
  const parts = ["Let me see.", " Yes.", '"status": "completed"', "One, ", "two, "];
  for (const [index, part] of parts.entries()) {
    await holds(part);
    await chat.page.reload();
    await holds(part);
    await chat.stop.waitFor();
    gates[index]?.open();
  }
  await holds("three.");
  await chat.send.waitFor();
  assert.equal(await transcript(), whole);
  assert.equal(chat.server.model.asked.length, 4);
});

test("what was being written outlives a reload in the middle of changing a message", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")]] });
  await chat.ask("First", "One.");
  await chat.input.fill("Half a thou");
  await canCopy(chat.page);
  await chat.page.getByRole("button", { name: "Change this message" }).click();
  assert.equal(await chat.edited.inputValue(), "First");
  await chat.edited.fill("First, chan");
  await chat.page.reload();
  await chat.replies.getByText("One.").waitFor();
  assert.deepEqual([await chat.input.inputValue(), await chat.edited.inputValue()], ["Half a thou", "First, chan"]);
});

/** Limits the size of a row in the browser's database. */
const limitRows = ({ page }: ChatPage, characters: number) =>
  page.evaluate(`{
    const put = IDBObjectStore.prototype.put;
    IDBObjectStore.prototype.put = function (row) {
      if (JSON.stringify(row).length > ${characters}) throw new DOMException("full", "QuotaExceededError");
      return put.call(this, row);
    };
  }`);

it("where storage is full the oldest messages go and the conversation stays", async (t) => {
  const long = "x".repeat(400_000);
  const { opened, open } = gate();
  const turns = [[say(long)], [say("Two.")], [say("Thr"), wait(opened), say("ee.")]];
  const chat = await openChat(t, browser, { turns });
  await limitRows(chat, 1_000_000);
  await chat.say("First");
  await chat.answered();
  await chat.ask("Second", "Two.");
  // The conversation's state alone takes 400,000 characters.
  await limitRows(chat, 500_000);
  // If the beginning of an answer is stored, its end causes the whole conversation to be written again.
  await chat.say("Third");
  await untilKept(chat.page, /Thr/);
  open();
  await untilKept(chat.page, /"isCut":true/);
  await chat.page.reload();
  await chat.replies.getByText("Three.").waitFor();
  await chat.page.getByText("Earlier messages are no longer shown here.").waitFor();
  assert.equal(await chat.replies.getByText("Two.").count(), 1);
  assert.equal(chat.server.model.asked[2]?.messages.length, 5, "the agent knows all of it");
  await limitRows(chat, 0);
  await chat.page.getByText(NOT_KEPT).waitFor({ state: "detached" });
});

for (const area of ["sessionStorage", "indexedDB"]) {
  it(`where the browser blocks ${area} the conversation lasts as long as the page, and says so`, async (t) => {
    const chat = await openChat(t, browser, { turns: [[say("One.")]] });
    await chat.page.addInitScript((name) => {
      Object.defineProperty(window, name, {
        get() {
          throw new DOMException("blocked", "SecurityError");
        },
      });
    }, area);
    await chat.page.reload();
    await chat.ask("First", "One.");
    await chat.page.getByText(NOT_KEPT).waitFor();
    await chat.page.reload();
    await chat.greeting.waitFor();
    assert.equal(await chat.page.getByText(NOT_KEPT).count(), 0, "there is nothing to lose");
  });
}

it("a conversation says that it will not be kept as long as storage has no room at all, and not with persist=none", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("One.")], [say("Two.")], [say("Three.")]],
  });
  await chat.page.evaluate(() => {
    for (let size = 2 ** 22; size >= 1; ) {
      try {
        sessionStorage.setItem(`site${sessionStorage.length}`, "y".repeat(size));
      } catch {
        size /= 2;
      }
    }
  });
  const note = chat.messages.getByText(NOT_KEPT);
  await chat.ask("First", "One.");
  await note.waitFor();
  const answer = await chat.replies.elementHandle();
  await chat.page.evaluate(() => sessionStorage.clear());
  await chat.ask("Second", "Two.");
  await note.waitFor({ state: "detached" });
  assert.ok(await answer?.evaluate((node) => node.isConnected), "it was not drawn anew");
  await chat.page.evaluate(() => {
    document.querySelector("agent-chat")?.setAttribute("persist", "none");
  });
  await chat.ask("Third", "Three.");
  assert.equal(await note.count(), 0);
});

it("of a draft a reload keeps the text, and says once which files are to be attached again", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Thank you.")]] });
  await chat.input.fill("See this");
  await chat.files.setInputFiles({ name: "red.png", mimeType: "image/png", buffer: PNG });
  await chat.page.getByRole("button", { name: "Remove red.png" }).waitFor();
  await chat.page.reload();
  const lost = chat.page.getByText("red.png: no longer here, please attach again.");
  await lost.first().waitFor();
  assert.equal(await chat.input.inputValue(), "See this");
  assert.equal(await chat.page.locator('[part="refusals"]').isVisible(), true);
  assert.doesNotMatch(await stored(chat), new RegExp(PNG.toString("base64").slice(0, 40)));
  await chat.ask("Only this, then", "Thank you.");
  await chat.page.reload();
  await chat.replies.getByText("Thank you.").waitFor();
  assert.equal(await lost.count(), 0);
});

test("what the agent suggests stands below its last answer, also after a reload, and is sent with a click", async (t) => {
  const said = ["As a table", "And tomorrow?"];
  let asked = 0;
  const chat = await openChat(t, browser, {
    agent: {
      instructions: ({ suggest, title }) => {
        title("Weather");
        suggest(asked++ === 0 ? said : []);
        return "Be brief.";
      },
    },
    turns: [[say("Rain.")], [say("Sun.")], [say("Snow.")]],
  });
  const chips = chat.replies.locator('[part="suggestion"]');
  const spoken = await listen(chat.page);
  const done = chat.page.evaluate(
    () => new Promise((resolve) => addEventListener("agent-chat-done", (event) => resolve(event.suggestions))),
  );
  await chat.ask("Weather?", "Rain.");
  assert.deepEqual(await chips.allInnerTexts(), said);
  assert.deepEqual(await done, said);
  await untilHeard(chat.page, spoken, "Suggestions: As a table, And tomorrow?");
  await chat.page.reload();
  await chips.first().waitFor();
  assert.deepEqual(await chips.allInnerTexts(), said);
  await untilKept(chat.page, /"title":"Weather"/);
  const [answer, first] = [await chat.answer.boundingBox(), await chips.first().boundingBox()];
  assert.ok(answer && first && Math.abs(answer.x - first.x) < 2 && first.y > answer.y, "at its start side");
  // Suggestions of the page replace those of the agent.
  await chat.page.locator("agent-chat").evaluate((it) => (it as AgentChat).suggest(["Mine"]));
  await chat.page.getByRole("button", { name: "Mine" }).waitFor();
  assert.equal(await chips.count(), 0);
  await chat.page.locator("agent-chat").evaluate((it) => (it as AgentChat).suggest([]));
  await chips.last().focus();
  await chat.page.keyboard.press("Enter");
  await chat.answered(2);
  assert.deepEqual([await shown(chat.questions.last()), await chips.count()], ["You said:\nAnd tomorrow?", 0]);
});

it("a message says when it was sent, and after half an hour's pause or midnight, between the messages, on which day, as above the first one from the next day on", async (t) => {
  const midnight = gate();
  const turns = [[say("One.")], [say("Two.")], [say("Three.")], [wait(midnight.opened), say("Four.")]];
  const chat = await openChat(t, browser, { turns });
  const setClock = (time: string) => chat.page.clock.setFixedTime(new Date(time));
  const separators = chat.page.locator('[part="separator"]');
  await setClock("2026-03-12T14:00:00");
  await chat.ask("First", "One.");
  await setClock("2026-03-12T14:29:00");
  await chat.ask("Second", "Two.");
  assert.equal(await separators.count(), 0);
  await setClock("2026-03-12T15:00:00");
  await chat.ask("Third", "Three.");
  assert.match(await shown(separators), /^today 3:00\sPM$/i);
  const add = async (time: string) => {
    await setClock(`2026-03-${time}`);
    await chat.page.locator("agent-chat").evaluate((it, text) => (it as AgentChat).addMessage({ text }), time);
  };
  let known = 1;
  const assertLater = async (...times: readonly string[]) => {
    assert.equal(await separators.count(), known + times.length);
    for (const [index, time] of times.entries()) {
      assert.equal((await shown(separators.nth(known + index))).replace(/\s/g, " "), time);
    }
  };
  // Messages added by the page have a time, too.
  await add("12T15:29:00");
  await assertLater();
  await setClock("2026-03-12T23:59:00");
  await chat.say("Fourth");
  await chat.questions.nth(3).waitFor();
  await setClock("2026-03-13T00:01:00");
  midnight.open();
  await chat.answered(4);
  known = 2;
  await assertLater("Yesterday 11:59 PM");
  for (const time of ["00:02", "00:31", "01:01"]) await add(`13T${time}:00`);
  await assertLater("Yesterday 11:59 PM", "Today 12:02 AM", "Today 1:01 AM");
  const time = chat.replies.first().locator("time");
  assert.match((await time.textContent()) ?? "", /^2:00\sPM$/);
  assert.equal(await time.evaluate((it) => new Date((it as HTMLTimeElement).dateTime).getHours()), 14);
  assert.equal(await time.isVisible(), false);
  await chat.replies.first().hover();
  await time.waitFor();
  const exported = (format: "json" | "markdown") =>
    chat.page.evaluate((it) => document.querySelector("agent-chat")?.exportTranscript(it), format);
  assert.match((await exported("markdown")) ?? "", /## You said: March 12, 2026 at 2:29\sPM/);
  const [first] = JSON.parse((await exported("json")) ?? "");
  assert.equal(new Date(first.at).getMinutes(), 0);
  await setClock("2026-03-13T09:00:00");
  await chat.page.reload();
  assert.match(await shown(separators.first()), /^yesterday 2:00\sPM$/i);
  await setClock("2026-03-15T09:00:00");
  await chat.page.reload();
  assert.match(await shown(separators.first()), /^March 12, 2026 at 2:00\sPM$/);
});
