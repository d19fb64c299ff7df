/** "New conversation" in the panel of a site, and its undo. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { chatIn } from "../browser/chat-page.ts";
import { button, visit } from "../browser/launcher-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { hang, say, wait } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

for (const persist of ["session", "none"]) {
  test(`in a panel a closed conversation comes back with its answer, and is ended when the page is left (persist="${persist}")`, async (t) => {
    const rest = gate();
    const { page, server, site } = await visit(t, browser, {
      turns: [
        [say("Half"), wait(rest.opened), say(" and the rest.")],
        [say("More."), hang],
      ],
      script: `data-persist="${persist}"`,
    });
    await button(page).click();
    const chat = chatIn(page);
    const reset = page.getByRole("button", { name: "New conversation" });
    const undo = page.getByRole("button", { name: "Undo" });
    await chat.say("First");
    await chat.replies.getByText("Half").waitFor();
    await reset.click();
    await chat.greeting.waitFor();
    // Opens another connection, which the server must not take for the end of the answer.
    await chat.input.press("a");
    await undo.click();
    rest.open();
    await chat.replies.getByText("Half and the rest.").waitFor();
    assert.equal(await chat.input.inputValue(), "a");
    await chat.send.waitFor();
    await chat.say("Second");
    await chat.replies.getByText("More.").waitFor();
    await reset.click();
    await undo.waitFor();
    await page.goto(`${site.url}/next`);
    await server.model.asked[1]?.aborted;
    await chat.greeting.waitFor();
    assert.deepEqual([await chat.questions.count(), await undo.count()], [0, 0]);
  });
}
