/** Drafts and messages survive events at the wrong moment: while the page loads, is left, or changes the chat. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { type ChatPage, chatIn, contents, openChat, untilLoaded, watchAddresses } from "../browser/chat-page.ts";
import { goBack, holdKept, leave, untilForgotten } from "../browser/kept.ts";
import { chatTag, visit } from "../browser/launcher-page.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say, wait } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";

const browser = await launchBrowser({ after });

/** Runs a site's script on the element as soon as it is defined. */
const atOnce = ({ page }: ChatPage, code: string) =>
  page.addInitScript(`customElements.whenDefined("agent-chat").then(() => {
    const chat = document.querySelector("agent-chat");
    ${code}
  });`);

test("a site that sends a message or wants the transcript as soon as the page is there means the conversation that is kept", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")], [say("Two.")]] });
  await chat.ask("First", "One.");
  await atOnce(chat, `window.transcript = chat.exportTranscript("markdown"); chat.send("Second");`);
  await chat.page.reload();
  assert.match(String(await chat.page.evaluate("window.transcript")), /First\n\n.*\n\nOne\./);
  await chat.replies.getByText("Two.").waitFor();
  assert.equal(await chat.questions.count(), 2);
  assert.deepEqual(contents(chat, 1), ["First", "One.", "Second"]);
});

test("a site that begins anew as soon as the page is there has an empty conversation", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")]] });
  await chat.ask("First", "One.");
  await atOnce(chat, "chat.reset()");
  await chat.page.reload();
  await chat.greeting.waitFor();
  await untilForgotten(chat.page, /First/);
});

/** Reloads the page, and withholds its stored data until the returned function is called. */
async function reloadInTwoSteps({ page }: ChatPage) {
  const release = await holdKept(page);
  await page.reload();
  await page.getByRole("button", { name: "Attach files" }).and(page.locator(":enabled")).waitFor();
  return release;
}

test("what was being written is there at once; Enter before the earlier conversation is there sends once it is, and what is written then is the next draft", async (t) => {
  const chat = await openChat(t, browser, {
    agent: { chat: { suggestions: ["What can you do?"] } },
    turns: [[say("One.")], [say("Two.")]],
  });
  await chat.ask("First", "One.");
  await chat.input.fill("Half a thou");
  const release = await reloadInTwoSteps(chat);
  assert.equal(await chat.input.inputValue(), "Half a thou");
  await chat.say("Second");
  await chat.input.press("Enter");
  assert.equal(await chat.input.inputValue(), "Second");
  assert.equal(await chat.page.locator('[part="suggestion"]').count(), 0, "they begin anew");
  await chat.input.pressSequentially("Thi");
  await release();
  await chat.replies.getByText("Two.").waitFor();
  assert.equal(await chat.input.inputValue(), "Thi");
  assert.equal(await chat.questions.count(), 2);
  assert.deepEqual(contents(chat, 1), ["First", "One.", "Second"]);
});

test("such an Enter sends nothing while the answer goes on that the page was left in, and the text stays", async (t) => {
  const rest = gate();
  const chat = await openChat(t, browser, {
    turns: [[say("The first half"), wait(rest.opened), say(" and the rest.")]],
  });
  await chat.say("First");
  await chat.replies.getByText("The first half").waitFor();
  const release = await reloadInTwoSteps(chat);
  await chat.say("Second");
  await release();
  await chat.replies.getByText("The first half").waitFor();
  rest.open();
  await chat.replies.getByText("The first half and the rest.").waitFor();
  assert.equal(await chat.input.inputValue(), "Second");
  assert.equal(await chat.questions.count(), 1);
});

test("a page that is gone back to shows what was said on another one meanwhile", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("One.")], [say("Two.")], [say("Three.")]],
  });
  const dialled = chat.page.waitForEvent("websocket");
  await chat.ask("First", "One.");
  // With an open connection, the browser would not put the page into its back/forward cache.
  const closed = dialled.then((line) => line.waitForEvent("close"));
  await dialled;
  await leave(chat.page, "before");
  await closed;
  await chat.ask("Second", "Two.");
  await leave(chat.page, "meanwhile");
  await chat.page.reload();
  await chat.replies.getByText("Two.").waitFor();
  await goBack(chat.page, "before");
  await chat.replies.getByText("Two.").waitFor({ state: "detached" });
  await goBack(chat.page, "meanwhile");
  await chat.replies.getByText("Two.").waitFor();
  await chat.ask("Third", "Three.");
  assert.deepEqual(contents(chat, 2), ["First", "One.", "Second", "Two.", "Third"]);
  await goBack(chat.page);
  await chat.greeting.waitFor();
});

test("a waiting message that is taken up again leaves alone what is being written, also before what changes others is loaded", async (t) => {
  const chat = await openChat(t, browser, {
    proxy: { upgrades: "pass" },
    expectedComplaints: /^WebSocket connection to|^Failed to load resource: net::/,
    turns: [],
  });
  await chat.page.route("**/chunks/edit-in-place-*", (route) => route.abort());
  await chat.page.reload();
  await chat.greeting.waitFor();
  await untilLoaded(chat);
  await chat.proxy.down();
  await chat.say("First");
  const queued = chat.page.locator('[part="queued"]');
  await queued.waitFor();
  await chat.input.fill("And second");
  await queued.getByRole("button", { name: "Change" }).click();
  assert.equal(await chat.input.inputValue(), "First\n\nAnd second");
});

test("another key while an answer comes does not interrupt it, and is the one of the next message", async (t) => {
  const rest = gate();
  const server = await startServer(t, {
    env: { PARLEY_WIDGET_KEY: "key-1,key-2" },
    turns: [[say("Half of"), wait(rest.opened), say(" it all.")], [say("Two.")]],
  });
  const html = sitePage(
    `<agent-chat api-key="key-1" style="height: 500px"></agent-chat><script src="${server.url}/widget.js"></script>`,
  );
  const site = await startSite(t, { "/": html });
  const { page } = await openPage(t, browser);
  const dialled: (string | null)[] = [];
  page.on("websocket", (line) => dialled.push(new URL(line.url()).searchParams.get("key")));
  await page.goto(site.url);
  const chat = chatIn(page.locator("agent-chat"));
  await chat.say("First");
  await chat.replies.getByText("Half of").waitFor();
  await page.evaluate(async () => {
    const element = document.querySelector("agent-chat");
    if (element) element.apiKey = "key-2";
    await element?.updateComplete;
  });
  rest.open();
  await chat.replies.getByText("Half of it all.").waitFor();
  await chat.answered();
  await chat.ask("Second", "Two.");
  assert.deepEqual(dialled, ["key-1", "key-2"]);
});

test("another server while a message is changed leaves that server's conversation alone", async (t) => {
  const env = { PARLEY_ALLOWED_ORIGINS: "*" };
  const chat = await visit(t, browser, { env, turns: [[say("One.")]], body: chatTag(500) });
  const { page } = chat;
  const two = await startServer(t, { env, turns: [[say("Two.")]] });
  await chat.ask("To one", "One.");
  const element = page.locator("agent-chat");
  await element.evaluate((it, url) => it.setAttribute("server", url), two.url);
  await chat.greeting.waitFor();
  await chat.ask("To two", "Two.");
  await page.getByRole("button", { name: "Change this message" }).click();
  // Without the attribute, the server of the script is used.
  await element.evaluate((it) => it.removeAttribute("server"));
  await chat.replies.getByText("One.").waitFor();
  assert.equal(await page.locator('[part="editing"]').count(), 0);
  assert.equal(await chat.input.inputValue(), "");
});

test("a line that was not used for minutes, as in a sleep of the machine, is not trusted with a message", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("One.")], [say("Two.")], [say("Three.")]],
  });
  const { sockets } = watchAddresses(chat.page);
  await chat.page.clock.install();
  await chat.page.reload();
  await chat.ask("First", "One.");
  await chat.page.clock.fastForward("01:00");
  await chat.ask("Second", "Two.");
  assert.equal(sockets.length, 1);
  await chat.page.clock.fastForward("10:00");
  await chat.ask("Third", "Three.");
  assert.equal(sockets.length, 2);
  assert.deepEqual(contents(chat, 2), ["First", "One.", "Second", "Two.", "Third"]);
});
