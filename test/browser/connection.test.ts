import assert from "node:assert/strict";
import { after, type TestContext } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { it, test } from "../support/rows.ts";
import { call, hang, say, think, wait } from "../support/scripted-provider.ts";
import { echo } from "../support/test-tools.ts";
import {
  type ChatPage,
  type ChatPageOptions,
  contents,
  holdInfo,
  openChat,
  stopTime,
  watchAddresses,
} from "./chat-page.ts";

const browser = await launchBrowser({ after });

/** Opens the page through a proxy; the browser's messages about lost connections are allowed. */
async function openThrough(
  t: TestContext,
  upgrades: "pass" | "refuse" | "swallow",
  options: ChatPageOptions,
): Promise<ChatPage & { seen: ReturnType<typeof watchAddresses> }> {
  const chat = await openChat(t, browser, {
    ...options,
    proxy: { upgrades },
    expectedComplaints: /^WebSocket connection to|^Failed to load resource: net::/,
  });
  return { ...chat, seen: watchAddresses(chat.page) };
}

test("where WebSocket is blocked, the conversation goes over HTTP with thinking and tools, and Stop ends the model's request", async (t) => {
  const chat = await openThrough(t, "refuse", {
    agent: { tools: [echo] },
    turns: [[think("Hm."), call("c1", "echo", { text: "ping" })], [say("Pong.")], [say("Remembered."), hang]],
  });
  await chat.say("Ping");
  await chat.replies.getByText("Pong.").waitFor();
  // Rows are rendered by a lazy part of the script.
  await chat.tools.waitFor();
  assert.equal(await chat.thinking.count(), 1);
  assert.equal(await chat.tools.getAttribute("data-status"), "completed");
  await chat.say("And?");
  await chat.replies.getByText("Remembered.").waitFor();
  await chat.stop.click();
  await chat.replies.getByText("You stopped this answer.").waitFor();
  await chat.server.model.asked[2]?.aborted;
  assert.equal(chat.seen.sockets.length, 1, "a blocked socket is not tried again");
  assert.deepEqual(contents(chat, 2)?.filter(Boolean), ["Ping", "ping", "Pong.", "And?"]);
});

/** Opens the page where WebSockets get no response, and stops its clock. */
async function openSwallowed(t: TestContext, options: ChatPageOptions) {
  const chat = await openThrough(t, "swallow", options);
  const { clock } = chat.page;
  await clock.install();
  const load = async () => {
    await chat.page.reload();
    await chat.greeting.or(chat.replies).first().waitFor();
    await stopTime(chat.page);
    await clock.runFor(1_000);
  };
  await load();
  const isPosted = () => chat.page.waitForRequest((request) => request.url().endsWith("/api/chat"));
  return { ...chat, clock, load, isPosted };
}

it("where a WebSocket hears nothing, the first message waits a second and a half for it, and those of later pages not at all", async (t) => {
  const chat = await openSwallowed(t, { turns: [[say("One.")], [say("Two.")], [say("Three.")]] });
  const first = chat.isPosted();
  await chat.say("First");
  await chat.clock.runFor(1_500);
  await first;
  await chat.clock.resume();
  await chat.replies.getByText("One.").waitFor();
  await chat.load();
  const second = chat.isPosted();
  await chat.say("Second");
  await second;
  await chat.clock.resume();
  await chat.replies.getByText("Two.").waitFor();
  await chat.ask("Third", "Three.");
  assert.deepEqual(contents(chat, 2), ["First", "One.", "Second", "Two.", "Third"]);
  assert.equal(chat.server.model.asked.length, 3, "no message was sent twice");
});

test("a message to a server that is down waits in sight, can be changed, and is sent once when it is up", async (t) => {
  const chat = await openThrough(t, "pass", { turns: [[say("One.")], [say("Back.")]] });
  await chat.ask("First", "One.");
  await chat.proxy.down();
  await chat.say("Secnd");
  const connection = chat.page.locator('[part="connection"]');
  await connection.getByText("cannot be reached").waitFor();
  const queued = chat.page.locator('[part="queued"]');
  await queued.getByText("Waiting to be sent").waitFor();
  assert.equal(await chat.replies.count(), 1, "nobody seems to answer");
  await queued.getByRole("button", { name: "Change" }).click();
  assert.equal(await chat.questions.count(), 1);
  assert.equal(await chat.input.inputValue(), "Secnd");
  await chat.say("Second");
  await queued.waitFor();
  // From the next pause on, retries wait for more than half an hour; otherwise one could precede the click.
  await chat.page.evaluate(() => {
    Math.random = () => 1_000;
  });
  // The current pause may already be a long one.
  await chat.page.getByRole("button", { name: "Try now" }).click();
  await connection.getByText(/Trying again in \d{4,} s/).waitFor();
  await chat.proxy.up();
  await chat.page.getByRole("button", { name: "Try now" }).click();
  await chat.replies.getByText("Back.").waitFor();
  await connection.waitFor({ state: "detached" });
  assert.equal(await chat.error.count(), 0);
  assert.deepEqual(contents(chat, 1), ["First", "One.", "Second"]);
  assert.equal(chat.server.model.asked.length, 2);
});

test("a message that is sent without a network says itself that it waits: nothing pulses, and there is nothing to stop", async (t) => {
  const chat = await openThrough(t, "pass", { turns: [[say("One.")], [say("Back.")]] });
  await chat.ask("First", "One.");
  await chat.proxy.down();
  await chat.page.context().setOffline(true);
  await chat.say("Second");
  await chat.page.locator('[part="queued"]').getByText("Waiting to be sent").waitFor();
  assert.deepEqual([await chat.page.locator(".waiting").count(), await chat.stop.count()], [0, 0]);
  await chat.proxy.up();
  await chat.page.context().setOffline(false);
  await chat.replies.getByText("Back.").waitFor();
  assert.equal(await chat.page.locator('[part="queued"]').count(), 0);
});

/** An opening connection is given up after some seconds, which the next minute would skip. */
function isDoneSoon(done: Promise<unknown>): Promise<boolean> {
  return Promise.race([done.then(() => true), pause(3_000, false)]);
}

it("an agent that says nothing for minutes is not taken for a server that is gone", async (t) => {
  const rest = gate();
  const chat = await openThrough(t, "pass", { turns: [[wait(rest.opened), say("At last.")]] });
  await chat.page.clock.install();
  await chat.page.reload();
  const asked = chat.server.model.nextAsked();
  await chat.say("First");
  await asked;
  for (let minute = 1; minute <= 3; minute++) {
    // The chat checks the connection by reconnecting, since scripts cannot see the server's pings.
    const resumed = new Promise((next) => chat.page.once("websocket", (socket) => socket.once("framesent", next)));
    // On a busy machine the page may not be waiting yet when its clock jumps.
    do await chat.page.clock.fastForward("01:00");
    while (!(await isDoneSoon(resumed)));
    assert.equal(await chat.page.locator('[part="connection"]').count(), 0);
  }
  rest.open();
  await chat.replies.getByText("At last.").waitFor();
  assert.equal(chat.server.model.asked.length, 1);
});

it("after an outage the line is good again when it is open, although the agent still works", async (t) => {
  const rest = gate();
  const chat = await openThrough(t, "pass", {
    turns: [[say("Half of"), wait(rest.opened), say(" it all.")]],
  });
  await chat.say("First");
  await chat.replies.getByText("Half of").waitFor();
  await chat.proxy.down();
  const connection = chat.page.locator('[part="connection"]');
  await connection.getByText("cannot be reached").waitFor();
  await chat.proxy.up();
  await chat.page.evaluate(() => window.dispatchEvent(new Event("online")));
  await connection.waitFor({ state: "detached" });
  rest.open();
  await chat.replies.getByText("Half of it all.").waitFor();
});

it("a browser without a network says so, and the network's return sends what waits", async (t) => {
  const chat = await openThrough(t, "pass", { turns: [[say("One.")]] });
  await chat.greeting.waitFor();
  // The part that renders messages loads while the page is idle.
  await chat.page.evaluate(() => customElements.whenDefined("agent-chat-message").then(() => undefined));
  await chat.page.context().setOffline(true);
  await chat.page.locator('[part="connection"]').getByText("You are offline").waitFor();
  await chat.say("First");
  await chat.page.locator('[part="queued"]').waitFor();
  await chat.page.context().setOffline(false);
  await chat.replies.getByText("One.").waitFor();
  assert.equal(chat.server.model.asked.length, 1);
});

test("a page that meets its server down offers to try again, and then greets", async (t) => {
  const chat = await openThrough(t, "pass", {
    turns: [],
    agent: { chat: { welcome: "Here I am." } },
  });
  await holdInfo(chat.page);
  await chat.page.route("**/api/info", (route) => route.abort());
  await chat.page.reload();
  await chat.error.getByText("cannot be reached").waitFor();
  const again = chat.page.waitForRequest("**/api/info");
  await chat.retry.click();
  await again;
  await chat.page.unroute("**/api/info");
  await chat.greeting.getByText("Here I am.").waitFor();
});

test("a server that shuts down in the middle of an answer says so, and the text stays", async (t) => {
  const never = gate();
  const chat = await openThrough(t, "pass", { turns: [[say("Half of"), wait(never.opened)]] });
  await chat.say("First");
  await chat.replies.getByText("Half of").waitFor();
  const closed = chat.server.close();
  await chat.error.waitFor();
  assert.equal(await chat.replies.getByText("Half of").isVisible(), true);
  assert.equal(await chat.retry.isVisible(), true);
  never.open();
  await closed;
});

it("a page that comes into view tries at once to reach the server", async (t) => {
  const chat = await openThrough(t, "pass", { turns: [[say("One.")]] });
  await chat.greeting.waitFor();
  // The part that renders messages loads while the page is idle, and later after a pause.
  await chat.page.evaluate(() => customElements.whenDefined("agent-chat-message").then(() => undefined));
  // Makes all pauses longer than the test.
  await chat.page.evaluate(() => {
    Math.random = () => 100;
  });
  await chat.proxy.down();
  await chat.say("First");
  const comeIntoView = () => {
    const { textContent } = document.querySelector("agent-chat")?.shadowRoot?.querySelector(".dock") ?? {};
    if (textContent?.includes("Trying again in")) return true;
    document.dispatchEvent(new Event("visibilitychange"));
    return false;
  };
  // Not on each frame: the chat needs one to update its message.
  await chat.page.waitForFunction(comeIntoView, undefined, { polling: 200 });
  await chat.proxy.up();
  await chat.page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await chat.replies.getByText("One.").waitFor();
});

test("no message goes without the metadata of its page, also while the code that checks it cannot be loaded", async (t) => {
  const seen: unknown[] = [];
  const chat = await openChat(t, browser, {
    agent: {
      instructions: ({ metadata }) => {
        seen.push(metadata);
        return "Help.";
      },
    },
    turns: [[say("Bonjour.")]],
    expectedComplaints: /^Failed to load resource: net::/,
  });
  await chat.page.route("**/chunks/identity-*", (route) => route.abort());
  await chat.page.evaluate('document.querySelector("agent-chat").metadata = { shop: "fr" }');
  await chat.input.fill("Hi");
  await chat.input.press("Enter");
  await chat.page.getByRole("alert").filter({ hasText: "cannot be reached" }).waitFor({ state: "attached" });
  assert.equal(await chat.input.inputValue(), "Hi");
  await chat.page.unroute("**/chunks/identity-*");
  await chat.ask("Hi", "Bonjour.");
  assert.deepEqual(seen, [{ shop: "fr" }]);
});
