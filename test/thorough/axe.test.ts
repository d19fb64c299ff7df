import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { Page } from "playwright-core";
import { ApiError } from "../../server/protocol/errors.ts";
import type { AgentChat } from "../../widget/element/agent-chat.ts";
import { type ChatElement, chatIn, openRows, untilTaken } from "../browser/chat-page.ts";
import { fillList } from "../browser/kept.ts";
import { axeFindings, OF_COLOURS } from "../support/axe.ts";
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

/** A complete answer with all kinds of content, a failed one, and one in progress. */
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
  // The other call may still be running, too.
  const running = chat.tools.and(chat.replies.locator('[data-status="running"]'));
  await running.filter({ hasText: "endless" }).waitFor();
  await chat.files.setInputFiles([
    { name: "next.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.7\n") },
    { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") },
  ]);
  await chat.input.fill("A draft");
}

/** Checks the visible page, and its colours in both themes. Without motion, so that no colour is in transition. */
async function assertClean(page: Page, state: string): Promise<void> {
  for (const [colorScheme, rules] of [["light"], ["dark", OF_COLOURS]] as const) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await axeFindings(page, rules), [], `${state}, ${colorScheme}`);
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
    // Tall, because axe does not check what is out of view.
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
  await page.getByRole("button", { name: "Cancel" }).click();
  await proxy.down();
  await chat.say("Fail");
  await page.locator('[part="queued"]').waitFor();
  await page.locator('[part="connection"]').waitFor();
  await assertClean(page, "no connection");
});

test("axe finds nothing while messages wait for the end of an answer, also in a low window, from right to left, with forced colours, and beside an edit and messages of the page", async (t) => {
  const server = await startServer(t, { turns: [[say("Hi.")], TURNS[3] ?? []], agent: { tools: [echo, endless] } });
  const viewport = { width: 390, height: 420 };
  const { page } = await openPage(t, browser, { reducedMotion: "reduce", viewport, isMobile: true, hasTouch: true });
  const chat = chatIn(page);
  await page.goto(server.url);
  await chat.ask("Hello", "Hi.");
  await chat.questions.locator(".bubble").tap();
  await page.getByRole("button", { name: "Change this message" }).tap();
  await chat.edited.waitFor();
  await chat.say("Go on");
  await page.locator('[data-status="running"]').first().waitFor();
  for (const text of ["One", "Two", "Three"]) {
    await chat.input.fill(text);
    await chat.send.click();
    await page.locator('[part="pending"]').getByText(text, { exact: true }).waitFor({ state: "attached" });
    await untilTaken(chat);
  }
  await assertClean(page, "pending messages in a low window");
  await page.getByRole("button", { name: "3 waiting", expanded: false }).tap();
  await page.locator('[part="pending"]').getByText("Three", { exact: true }).waitFor();
  await assertClean(page, "pending messages in a low window, opened");
  await page.setViewportSize({ width: 390, height: 3000 });
  await assertClean(page, "pending messages and an edit");
  const element = page.locator("agent-chat");
  await element.evaluate((it) => it.setAttribute("lang", "ar"));
  await page.getByRole("button", { name: "إرسال الآن" }).waitFor();
  await assertClean(page, "pending messages and an edit from right to left");
  const start = async (selector: string) => Math.round((await page.locator(selector).first().boundingBox())?.x ?? -1);
  assert.deepEqual([await start(".bubble"), await start(".pending-message")], [16, 16], "in line");
  await element.evaluate((it) => it.setAttribute("lang", "en"));
  await page.getByRole("button", { name: "Send now" }).waitFor();
  await page.emulateMedia({ forcedColors: "active" });
  await assertClean(page, "pending messages and an edit with forced colours");
  await page.emulateMedia({ forcedColors: "none" });
  await chat.stop.click();
  await page.getByRole("button", { name: "Send anyway?" }).waitFor();
  await page.locator("agent-chat").evaluate(async (element) => {
    await (element as AgentChat).addMessage({ text: "Hi", name: "Maria" });
  });
  await page.locator('[part="name"]').waitFor();
  await assertClean(page, "pending messages after a stop, and a message of the page");
  await page.locator("agent-chat").evaluate((element) => {
    (element as AgentChat).messageHeader = ({ role, name = role }) =>
      Object.assign(document.createElement("p"), { className: "speaker", textContent: name });
  });
  await page.locator(".speaker").getByText("Maria").waitFor();
  await assertClean(page, "headers of the page");
});

test("axe finds nothing at two answers with footnotes, in a panel of a site that has a header, too", async (t) => {
  const { page } = await openPage(t, browser, { reducedMotion: "reduce" });
  const server = await startServer(t, { turns: ["One", "Two"].map((text) => [say(`${text}.[^1]\n\n[^1]: A note.`)]) });
  const script = `<script src="${server.url}/widget.js"></script>`;
  const site = await startSite(t, { "/": sitePage(`<header>A shop</header>${script}`) });
  await page.goto(site.url);
  await page.getByRole("button", { name: "Open chat" }).click();
  const chat = chatIn(page.locator("agent-chat"));
  for (const count of [1, 2]) {
    await chat.say("Go");
    await chat.answered(count);
    await chat.replies
      .locator(".footnotes")
      .nth(count - 1)
      .waitFor();
  }
  await assertClean(page, "two answers with notes");
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
  await chat.input.press("Enter");
  await page.locator('[part="pending"]').waitFor();
  await chat.stop.click();
  await page.getByRole("button", { name: "Send anyway?" }).waitFor();
  await page.getByRole("button", { name: "Change this message" }).last().click();
  await chat.edited.waitFor();
  await assertClean(page, "a pending message and an edit");
  await page.getByRole("button", { name: "Close chat" }).first().click();
  await opener.waitFor();
  await assertClean(page, "closed again");
});

test("axe finds nothing in the list of conversations, with every state of a row and of its foot, as a column and over the chat; nor at alternatives", async (t) => {
  const server = await startServer(t, { turns: [[say("One.")], [say("Two.")]] });
  const { page } = await openPage(t, browser, { reducedMotion: "reduce" });
  const chat = chatIn(page);
  const press = (name: string) => page.getByRole("button", { name, exact: true }).first().click();
  const row = page.locator('[part="conversation"]');
  const search = async (text: string, found: number) => {
    await page.getByRole("searchbox").fill(text);
    await row.nth(found - 1).waitFor({ state: found > 0 ? "attached" : "detached" });
    await row.nth(found).waitFor({ state: "detached" });
  };
  await page.goto(server.url);
  await chat.ask("Apples", "One.");
  await page.getByRole("button", { name: "Answer again" }).click();
  await page.getByText("2/2").waitFor();
  await chat.answered();
  await page.evaluate(fillList(12, 2));
  await page.reload();
  await row.nth(12).waitFor();
  await page.getByText("2/2").waitFor();
  const states: readonly [state: string, reach: () => Promise<unknown>][] = [
    ["alternatives", () => page.getByRole("searchbox").waitFor()],
    ["an unfolded row", () => press("Options for “Number 3”")],
    ["a row that is renamed", () => press("Rename")],
    ["a row that comes back", () => row.nth(2).press("Delete")],
    ["search results", () => search("pears", 11)],
    ["nothing found", () => search("nothing like this", 0)],
    ["a question", () => press("Forget everything")],
  ];
  for (const [state, reach] of states) {
    await reach();
    await assertClean(page, state);
  }
  await press("Keep");
  await page.setViewportSize({ width: 600, height: 800 });
  await press("Conversations");
  await search("number 1", 2);
  await assertClean(page, "search results over the chat");
  await search("", 12);
  await press("Options for “Number 4”");
  await press("Forget everything");
  await assertClean(page, "over the chat");
});
