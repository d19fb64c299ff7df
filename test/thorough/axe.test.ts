import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { Page } from "playwright-core";
import { ApiError } from "../../server/protocol/errors.ts";
import { type ChatElement, chatIn, openRows } from "../browser/chat-page.ts";
import { axeFindings } from "../support/axe.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { RED_PIXEL } from "../support/files.ts";
import { startProxy } from "../support/proxy.ts";
import { call, fail, say, type Turn, think } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";
import { broken, define, echo } from "../support/test-tools.ts";

const browser = await launchBrowser({ after });
const ANSWER = `# Title

**bold**, \`inline\`, [a link](https://example.org) and ![a chart](https://example.org/chart.png)

1. one
   - [x] done

\`\`\`ts
const a: number = 1; // a comment
\`\`\`

| Left | Right |${" wide column |".repeat(12)}
|:-----|------:|${"---|".repeat(12)}
| a | 1 |${" some cell |".repeat(12)}

> quoted

${"- an item of a long list\n".repeat(70)}`;

/** One answer with everything, one that failed, one that is still being given. */
const TURNS: readonly Turn[] = [
  [think("Hm."), call("c1", "echo", { text: "ping" }), call("c2", "broken")],
  [say(ANSWER)],
  [fail(new ApiError("provider_error", "The model is ill."))],
  [think("Let me see."), say("Wait"), call("c3", "echo", { text: "pong" }), call("c4", "endless")],
];

const endless = define(
  "endless",
  (_, { signal }) =>
    new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    }),
);

async function converse(chat: ChatElement): Promise<void> {
  await chat.files.setInputFiles([
    { name: "red.png", mimeType: "image/png", buffer: RED_PIXEL },
    { name: "offer.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.7\n") },
  ]);
  await chat.drafts.nth(1).waitFor();
  await chat.input.press("End");
  await chat.say("Everything");
  await chat.answer.getByText("quoted").waitFor();
  await chat.send.waitFor();
  await openRows(chat);
  await chat.say("Fail");
  await chat.retry.waitFor();
  await chat.say("Go on");
  // The other call may still run, too.
  const running = chat.tools.and(chat.replies.locator('[data-status="running"]'));
  await running.filter({ hasText: "endless" }).waitFor();
  await chat.files.setInputFiles([
    { name: "next.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.7\n") },
    { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") },
  ]);
  await chat.input.fill("A draft");
}

/** Checks what is on the screen in both themes. Without motion, so that no colour is on its way to another. */
async function assertClean(page: Page, state: string): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await axeFindings(page), [], `${state}, ${colorScheme}`);
  }
}

async function open(t: TestContext, env: Record<string, string> = {}) {
  const server = await startServer(t, {
    turns: TURNS,
    env,
    agent: { tools: [echo, broken, endless], chat: { suggestions: ["Ping"] } },
  });
  const { page } = await openPage(t, browser, {
    reducedMotion: "reduce",
    // Tall, since what is out of view is not judged.
    viewport: { width: 1280, height: 3000 },
  });
  return { server, page };
}

test("axe finds nothing on the page: greeting, key form, in a frame as well, and conversation", async (t) => {
  const { server, page } = await open(t);
  const chat = chatIn(page);
  await page.goto(`${server.url}/?embed=1`);
  await chat.greeting.waitFor();
  await assertClean(page, "greeting in a frame");
  await page.goto(server.url);
  await chat.greeting.waitFor();
  await assertClean(page, "greeting");
  await converse(chat);
  await assertClean(page, "conversation");
  await page.getByRole("button", { name: "red.png" }).first().click();
  await page.getByRole("dialog", { name: "red.png" }).waitFor();
  await assertClean(page, "open image");
  await page.keyboard.press("Escape");
  const locked = await open(t, { PARLEY_CHAT_KEY: "c-1" });
  for (const path of ["/", "/?embed=1"]) {
    await locked.page.goto(locked.server.url + path);
    const field = chatIn(locked.page).keyField;
    await field.fill("wrong");
    await field.press("Enter");
    await locked.page.getByText("That key was not accepted.").waitFor();
    await assertClean(locked.page, `key form on ${path}`);
  }
});

test("axe finds nothing while a message is changed, while one waits for the connection, and after a reload", async (t) => {
  const { server, page } = await open(t);
  const proxy = await startProxy(t, server.port);
  const chat = chatIn(page);
  await page.goto(proxy.url);
  await chat.say("Everything");
  await chat.answer.getByText("quoted").waitFor();
  await chat.send.waitFor();
  await page.reload();
  await chat.answer.getByText("quoted").waitFor();
  await page.getByRole("button", { name: "Change this message" }).click();
  await page.locator('[part="editing"]').waitFor();
  await assertClean(page, "open edit");
  await page.getByRole("button", { name: "Leave the message as it was" }).click();
  await proxy.down();
  await chat.say("Fail");
  await page.locator('[part="queued"]').waitFor();
  await page.locator('[part="connection"]').waitFor();
  await assertClean(page, "no connection");
});

test("axe finds nothing on a site with the launcher: closed, with its preview, opened, in a conversation, closed again", async (t) => {
  const { server, page } = await open(t);
  const site = await startSite(t, {
    "/": sitePage(
      `<script src="${server.url}/widget.js" data-feedback data-disclaimer="Answers may be wrong."></script>`,
    ),
  });
  await page.goto(site.url);
  const opener = page.getByRole("button", { name: "Open chat" });
  await opener.waitFor();
  await assertClean(page, "closed");
  await opener.click();
  const chat = chatIn(page.locator("agent-chat"));
  await chat.greeting.waitFor();
  await assertClean(page, "opened");
  await converse(chat);
  await page.getByRole("button", { name: "Bad answer" }).first().click();
  await page.getByLabel("Incomplete").check();
  await assertClean(page, "conversation");
  await page.getByRole("button", { name: "Close chat" }).first().click();
  await opener.waitFor();
  await assertClean(page, "closed again");
});
