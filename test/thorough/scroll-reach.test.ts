/** Code and tables wider than the answer can be scrolled by keyboard and have a name; others are no Tab stops. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Locator } from "playwright-core";
import { hasFocus, isFocused, openChat } from "../browser/chat-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say, wait } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

const WIDE = "word ".repeat(60);
const ANSWER = `\`\`\`sh
some command --with="rather many arguments"
\`\`\`

\`\`\`ts
const wide = "${WIDE}";
\`\`\`

| a | b |
|---|---|
| 1 | 2 |

| ${WIDE} | b |
|---|---|
| 1 | 2 |
`;

const canFocus = async (locator: Locator) => {
  await locator.evaluate((element) => element.focus());
  return isFocused(locator);
};

test("what is wider than the answer is a stop with a name, and is scrolled there; what fits is none", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say(ANSWER.slice(0, 120)), say(ANSWER.slice(120))]],
  });
  const { page } = chat;
  await chat.say("Go");
  await chat.answered();
  const named = (name: string) => chat.answer.getByRole("group", { name, exact: true });
  for (const name of ["ts", "Table"]) {
    await named(name).focus();
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction((box) => Number(box?.scrollLeft) > 0, await named(name).elementHandle());
  }
  assert.equal(await named("Table").count(), 1);
  const [command, table] = [chat.answer.locator("pre").first(), chat.answer.locator(".table")];
  assert.equal(await canFocus(command), false);
  assert.equal(await canFocus(table.first()), false);
  await page.setViewportSize({ width: 320, height: 640 });
  await named("sh").waitFor();
  assert.equal(await canFocus(command), true);
  // An element that has the focus keeps it.
  await page.setViewportSize({ width: 1280, height: 640 });
  await page.waitForFunction((box) => box && box.scrollWidth === box.clientWidth, await command.elementHandle());
  await hasFocus(command);
  await chat.answer.locator(".code").nth(1).getByRole("button", { name: "Wrap lines" }).click();
  await named("ts").waitFor({ state: "detached" });
});

test("what fits is no stop either when its end comes after it was found to fit", async (t) => {
  const [code, table] = [gate(), gate()];
  const chat = await openChat(t, browser, {
    turns: [
      [
        say("```sh\nls -a"),
        wait(code.opened),
        say("\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |"),
        wait(table.opened),
        say("\n\nDone."),
      ],
    ],
  });
  await chat.say("Go");
  const noStop = ":not([tabindex])";
  await chat.answer.locator(`pre${noStop}`).waitFor();
  code.open();
  await chat.answer.locator(`.table${noStop}`).waitFor();
  table.open();
  await chat.send.waitFor();
  await chat.answer.getByText("Done.").waitFor();
  await chat.answer.locator(`pre${noStop}`).waitFor();
  await chat.answer.locator(`.table${noStop}`).waitFor();
});
