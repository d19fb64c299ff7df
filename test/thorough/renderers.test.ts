/** Blocks rendered by the page. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { AgentChat } from "../../widget/element/agent-chat.ts";
import { openChat } from "../browser/chat-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say, wait } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

/** Script of a page with a renderer. */
const SCRIPT = `
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelector("agent-chat").renderers = {
      csv: (text, { theme }) => {
        const table = document.createElement("table");
        table.ariaLabel = "Sales in " + theme + " colours";
        for (const line of text.split("\\n")) {
          const row = table.insertRow();
          for (const cell of line.split(",")) row.insertCell().textContent = cell;
        }
        return table;
      },
    };
  });
`;

test("a page draws csv fences as tables, once they have ended, again in another theme and after a reload", async (t) => {
  const rest = gate();
  const chat = await openChat(t, browser, {
    turns: [[say("Sales:\n\n```csv\nmonth,sum\nMay,12\n"), wait(rest.opened), say("June,14\n```\n\nThat is all.")]],
  });
  const { page, answer } = chat;
  await page.addInitScript(SCRIPT);
  await page.reload();
  await chat.say("Show me");
  await answer.locator("pre").getByText("May,12").waitFor();
  assert.equal(await answer.locator("table").count(), 0);
  rest.open();
  await chat.answered();
  const cells = () => answer.getByRole("cell").allTextContents();
  await answer.getByRole("table", { name: "Sales in light colours" }).waitFor();
  assert.deepEqual(await cells(), ["month", "sum", "May", "12", "June", "14"]);
  assert.equal(await answer.locator("pre").count(), 0);
  await page.locator("agent-chat").evaluate((element) => {
    (element as AgentChat).theme = "dark";
  });
  await answer.getByRole("table", { name: "Sales in dark colours" }).waitFor();
  await page.reload();
  await answer.getByRole("table").waitFor();
  assert.deepEqual(await cells(), ["month", "sum", "May", "12", "June", "14"]);
});
