/** The printed page: the whole conversation, in dark text, without controls. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { openChat } from "../browser/chat-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { call, say } from "../support/scripted-provider.ts";
import { echo } from "../support/test-tools.ts";

const browser = await launchBrowser({ after });

const LINES = Array.from({ length: 40 }, (_, index) => `Line ${index + 1}.\n\n`).join("");
const WIDE = `| ${"a wide column | ".repeat(12)}\n|${"---|".repeat(12)}\n| ${"some cell | ".repeat(12)}\n`;
const CODE = `\`\`\`\n${"code ".repeat(60)}\n${"line\n".repeat(60)}\`\`\`\n`;

test("a conversation is printed whole, on as many sheets as it takes, without what can only be pressed", async (t) => {
  const chat = await openChat(t, browser, {
    agent: { tools: [echo] },
    turns: [
      [call("c1", "echo", { text: "ping" })],
      [say(LINES)],
      [say(LINES)],
      [say(`${LINES}${WIDE}\n${CODE}\nThe end.`)],
    ],
    browser: { colorScheme: "dark", viewport: { width: 720, height: 900 } },
  });
  for (const [number, text] of ["Line 40.", "Line 40.", "The end."].entries()) {
    await chat.say("More");
    await chat.replies.nth(number).getByText(text).waitFor();
    await chat.send.waitFor();
  }
  await chat.answer.getByRole("button", { name: "Show all 61 lines" }).waitFor();
  const pdf = (await chat.page.pdf({ format: "A4" })).toString("latin1");
  const sheets = pdf.match(/\/Type\s*\/Page\b/g)?.length ?? 0;
  // The message of 40 lines takes more than a page; three times that with a table and code take more than five.
  assert.ok(sheets > 5, `${sheets} sheets`);
  await chat.page.emulateMedia({ media: "print" });
  assert.equal(await chat.page.getByRole("button").filter({ visible: true }).count(), 1);
  assert.equal(await chat.page.getByRole("button", { name: /^Echo/ }).isVisible(), true);
  assert.equal(await chat.input.isVisible(), false);
  const cut = await chat.answer
    .locator(".table, pre")
    .evaluateAll((boxes) =>
      boxes.map(({ scrollWidth, clientWidth, scrollHeight, clientHeight }) => [
        scrollWidth - clientWidth,
        scrollHeight - clientHeight,
      ]),
    );
  assert.deepEqual(cut, [
    [0, 0],
    [0, 0],
  ]);
  // No word of the wide table is broken: "column" stays on one line.
  const words = await chat.answer
    .locator("td")
    .evaluateAll((cells) =>
      cells.map((cell) => cell.clientHeight / Number.parseFloat(getComputedStyle(cell).lineHeight)),
    );
  assert.ok(Math.max(...words) < 3.5, String(words));
  assert.equal(
    await chat.answer.evaluate((it) => getComputedStyle(it).color),
    "rgb(24, 24, 27)",
    "dark letters, also from a dark screen",
  );
});
