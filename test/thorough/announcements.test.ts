import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { ApiError } from "../../server/protocol/errors.ts";
import type { AgentChat } from "../../widget/element/public-types.ts";
import { type ChatPage, hasFocus, openChat } from "../browser/chat-page.ts";
import { allHeard, listen, untilHeard } from "../browser/listening.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate, within } from "../support/deadline.ts";
import { call, end, fail, hang, say, type Turn, think, wait } from "../support/scripted-provider.ts";
import { broken, echo } from "../support/test-tools.ts";

const browser = await launchBrowser({ after });

const gates = { tools: gate() };

const fenced = (language: string, lines: number) => `\`\`\`${language}\n${"x()\n".repeat(lines)}\`\`\`\n\n`;
const table = (rows: number) => `| A | B | C |\n|---|---|---|\n${"| 1 | 2 | 3 |\n".repeat(rows)}`;

const CASES: readonly {
  what: string;
  turns: readonly Turn[];
  /** What the user does besides sending. */
  act?: (chat: ChatPage) => Promise<void>;
  expected: readonly string[];
}[] = [
  {
    what: "an answer sentence by sentence, without Markdown's marks and buttons",
    turns: [
      [
        say("# Result\n\n**Pong** came back. See [the page](https://example.org).\n\n"),
        say("- one\n- [x] two\n\n```js\nx()\n```\n\n| A | B |\n|---|---|\n| 1 | 2 |\n"),
      ],
    ],
    expected: ["Answering…", "Result", "Pong came back.", "See the page.", "one", "two", "js", "x()", "A B", "1 2"],
  },
  {
    what: "why an answer was cut",
    turns: [[say("Half an answer"), end("length")]],
    expected: ["Answering…", "Half an answer", "This answer was cut off because it reached the length limit."],
  },
  {
    what: "tools as they begin and end, and thinking not at all",
    turns: [
      [think("Hm."), call("c1", "echo", { text: "ping" })],
      [call("c2", "broken")],
      [wait(gates.tools.opened), say("Pong.")],
    ],
    act: async ({ tools }) => {
      await tools.nth(1).waitFor();
      gates.tools.open();
    },
    expected: ["Answering…", "Using Echo…", "Echo: completed", "Using Broken…", "Broken: failed", "Pong."],
  },
  {
    what: "of a long program and a long table only the size, and formulas as they are written",
    turns: [
      [
        say(`${fenced("typescript", 9)}${fenced("typescript", 10)}${fenced("", 12)}- In a list:\n\n  $$x^2$$\n\n`),
        say(`${table(9)}\n${table(140)}\n$$\\frac{a}{b}$$\n`),
      ],
    ],
    expected: [
      "Answering…",
      "typescript",
      "x() ".repeat(9).trim(),
      "Code, typescript, 10 lines",
      "Code, 12 lines",
      "In a list:",
      "x^2",
      "A B C",
      ...Array.from({ length: 9 }, () => "1 2 3"),
      "Table, 3 columns, 140 rows",
      "\\frac{a}{b}",
    ],
  },
  {
    what: "tools of one turn together, once when they begin and once when all are over",
    turns: [
      [...["c1", "c2", "c3"].map((id) => call(id, "echo", { text: id })), call("c4", "broken")],
      ["c5", "c6"].map((id) => call(id, "broken")),
      [say("Pong.")],
    ],
    expected: ["Answering…", "Using 4 tools…", "3 done, 1 failed", "Using 2 tools…", "2 failed", "Pong."],
  },
  {
    what: "that an answer was stopped, after what there is of it",
    turns: [[say("Half of"), hang]],
    act: async ({ replies, stop }) => {
      await replies.getByText("Half of").waitFor();
      await stop.click();
    },
    expected: ["Answering…", "Half of", "You stopped this answer."],
  },
  {
    what: "what a pressed thumb leads to",
    turns: [[say("One.")]],
    act: async ({ page, replies }) => {
      await page.locator("agent-chat").evaluate((chat) => chat.setAttribute("feedback", ""));
      await replies.getByRole("button", { name: "Bad answer" }).press("Enter");
      await page.getByLabel("Incomplete").check();
      await page.getByRole("button", { name: "Send", exact: true }).press("Enter");
      await page.locator('[part="input"]').focus();
    },
    expected: ["Answering…", "One.", "What was wrong?", "(optional)", "Thank you."],
  },
  {
    what: "a failure at once",
    turns: [[fail(new ApiError("provider_error", "The model is ill."))]],
    expected: ["Answering…", "! The model is ill."],
  },
];

/** Waits until `count` texts were spoken. */
async function heardOf(page: Page, heard: readonly string[], count: number): Promise<void> {
  while (heard.length < count) await allHeard(page);
}

test("a listener hears exactly what happens, and the focus stays where it is", async (t) => {
  for (const { what, turns, act, expected } of CASES) {
    await t.test(what, async (t) => {
      const chat = await openChat(t, browser, { agent: { tools: [echo, broken] }, turns });
      await chat.greeting.waitFor();
      await chat.page.locator("agent-chat").evaluate((element) => {
        (element as AgentChat).renderers = {
          $$() {
            return document.createElement("math");
          },
        };
      });
      const heard = await listen(chat.page);
      await chat.say("Go");
      await act?.(chat);
      // The send button is also visible before an answer begins.
      await within(heardOf(chat.page, heard, expected.length), "what is to be heard");
      await chat.send.waitFor();
      // Announcements are removed after a while; nothing follows.
      await chat.page.locator('[role="status"]:not(:has(p))').waitFor({ state: "attached" });
      await allHeard(chat.page);
      assert.deepEqual(heard, expected);
      await hasFocus(chat.input);
      assert.equal(await chat.messages.getAttribute("aria-live"), "off");
    });
  }
});

test("what became of files is spoken: which were taken, which refused, and why", async (t) => {
  const chat = await openChat(t, browser, { turns: [] });
  await chat.greeting.waitFor();
  const heard = await listen(chat.page);
  await chat.files.setInputFiles([
    { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") },
    { name: "offer.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.7\n") },
    { name: "empty.pdf", mimeType: "application/pdf", buffer: Buffer.alloc(0) },
  ]);
  await untilHeard(chat.page, heard, "empty.pdf: empty.");
  assert.deepEqual(heard, [
    "notes.txt: only JPEG, PNG, GIF, WebP, and PDF files are taken.",
    "offer.pdf attached.",
    "empty.pdf: empty.",
  ]);
});

test("a long answer is spoken whole and in its order", async (t) => {
  const lines = Array.from({ length: 320 }, (_, index) => `Line ${index + 1} of a long answer.`);
  const chat = await openChat(t, browser, { turns: [[say(lines.join("\n\n"))]] });
  await chat.greeting.waitFor();
  const heard = await listen(chat.page);
  await chat.say("Go");
  await chat.answered();
  await untilHeard(chat.page, heard, "Line 320 of a long answer.");
  assert.deepEqual(heard, ["Answering…", ...lines]);
});
