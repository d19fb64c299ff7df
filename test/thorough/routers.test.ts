/** Client-side routers replace the page's content without loading a page. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { AgentChatLauncher } from "../../widget/element/public-types.ts";
import { button, script, visit } from "../browser/launcher-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say, wait } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

for (const [router, navigate] of [
  ["Turbo and Astro", "document.body.replaceWith(next)"],
  ["an innerHTML of the body", "document.body.innerHTML = next.innerHTML"],
  [
    "htmx",
    "document.body.prepend(...next.childNodes); while (document.body.children.length > 1) document.body.removeChild(document.body.lastChild)",
  ],
  [
    "a script as a whole",
    "{ const html = document.createElement('html'); html.append(next); document.documentElement.replaceWith(html); }",
  ],
  ["document.write()", "document.open(); document.write(next.outerHTML); document.close();"],
] as const) {
  test(`where ${router} replaces the page there is one button again, with its open panel, and the answer goes on`, async (t) => {
    const left = gate();
    const chat = await visit(t, browser, {
      script: 'data-key="k" data-label="Ask us"',
      turns: [[say("Let me"), wait(left.opened), say(" see.")], [say("More.")]],
    });
    const { page } = chat;
    await button(page).click();
    await chat.say("Go");
    await chat.replies.getByText("Let me").waitFor();
    // A cached page contains a copy of the launcher.
    const visitNext = (inside: string) =>
      script(
        page,
        `{ const next = document.createElement("body");
           next.innerHTML = ${JSON.stringify(inside)};
           next.append(document.querySelector("agent-chat-launcher").cloneNode(true));
           ${navigate} }`,
      );
    await visitNext("<main>Next</main>");
    left.open();
    await chat.replies.getByText("Let me see.").waitFor();
    await visitNext("<main>One more</main>");
    await chat.replies.getByText("Let me see.").waitFor();
    await chat.ask("And?", "More.");
    assert.equal(await button(page).count(), 1);
    const key = page.locator("agent-chat-launcher").evaluate((it) => (it as AgentChatLauncher).apiKey);
    assert.equal(await key, "k");
  });
}
