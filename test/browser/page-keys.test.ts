import assert from "node:assert/strict";
import { after, test } from "node:test";
import { launchBrowser } from "../support/browser.ts";
import { say } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { type ChatPage, openChat, watchAddresses } from "./chat-page.ts";

const browser = await launchBrowser({ after });

const CHAT_KEY = { PARLEY_CHAT_KEY: "chat-one, chat-two" };

async function enterKey(chat: ChatPage, key: string): Promise<void> {
  await chat.keyField.fill(key);
  await chat.keyField.press("Enter");
}

const storedKeys = (chat: ChatPage) =>
  chat.page.evaluate(() => Object.entries({ ...localStorage }).filter(([name]) => name.includes("key")));

test("without keys on a loopback address the page asks for none", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Open.")]] });
  await chat.ask("Hi", "Open.");
  assert.equal(await chat.keyField.count(), 0);
  assert.equal(await chat.page.getByRole("button", { name: "Forget the saved key" }).count(), 0);
});

for (const [kind, env] of [
  ["chat", { PARLEY_CHAT_KEY: "the-key" }],
  ["API", { PARLEY_API_KEY: "the-key" }],
  ["widget", { PARLEY_WIDGET_KEY: "the-key" }],
] as const) {
  test(`with only ${kind} keys the page asks on the first visit, and such a key opens it`, async (t) => {
    const chat = await openChat(t, browser, { env, turns: [[say("Welcome.")]] });
    await chat.keyField.waitFor();
    assert.equal(await chat.input.count(), 0, "nothing can be sent before");
    await enterKey(chat, "the-key");
    await chat.ask("Hi", "Welcome.");
  });
}

test("a wrong key is told so at once, is not stored, and the right one then works", async (t) => {
  const chat = await openChat(t, browser, { env: CHAT_KEY, turns: [[say("Welcome.")]] });
  await enterKey(chat, "wrong");
  await chat.page.getByText("That key was not accepted.").waitFor();
  assert.deepEqual(await storedKeys(chat), []);
  await enterKey(chat, "chat-two");
  await chat.ask("Hi", "Welcome.");
});

test("the key is kept in localStorage: after a reload the page asks no more", async (t) => {
  const chat = await openChat(t, browser, { env: CHAT_KEY, turns: [[say("Again.")]] });
  await enterKey(chat, "chat-one");
  await chat.input.waitFor();
  assert.deepEqual(
    (await storedKeys(chat)).map(([, value]) => value),
    ["chat-one"],
  );
  await chat.page.reload();
  await chat.ask("Hi", "Again.");
});

test("where the browser keeps nothing the form says so, and the key lasts as long as the page", async (t) => {
  const chat = await openChat(t, browser, { env: CHAT_KEY, turns: [[say("Welcome.")]] });
  await chat.page.getByText("It is kept in this browser only.").waitFor();
  await chat.page.addInitScript(() => {
    Object.defineProperty(window, "localStorage", {
      get() {
        throw new DOMException("blocked", "SecurityError");
      },
    });
  });
  await chat.page.reload();
  await chat.page.getByText("you will be asked again on your next visit").waitFor();
  await enterKey(chat, "chat-one");
  await chat.ask("Hi", "Welcome.");
  await chat.page.reload();
  await chat.keyField.waitFor();
});

test("a forgotten key is gone from the browser, and the page asks again", async (t) => {
  const chat = await openChat(t, browser, { env: CHAT_KEY, turns: [] });
  await enterKey(chat, "chat-one");
  await chat.page.getByRole("button", { name: "Forget the saved key" }).click();
  await chat.keyField.waitFor();
  assert.deepEqual(await storedKeys(chat), []);
  await chat.page.reload();
  await chat.keyField.waitFor();
});

test("a revoked key is asked for again, and the message that met it is sent after all", async (t) => {
  const chat = await openChat(t, browser, { env: CHAT_KEY, turns: [[say("Got it.")]] });
  await enterKey(chat, "chat-one");
  await chat.input.waitFor();
  const [[name] = [""]] = await storedKeys(chat);
  await chat.page.evaluate((item) => localStorage.setItem(item, "revoked"), name);
  await chat.page.reload();
  await chat.say("Precious words");
  await chat.page.getByText("That key was not accepted.").waitFor();
  assert.equal(await chat.questions.getByText("Precious words").isVisible(), true);
  assert.deepEqual(await storedKeys(chat), []);
  await enterKey(chat, "chat-two");
  await chat.replies.getByText("Got it.").waitFor();
  assert.equal(await chat.questions.count(), 1);
  assert.deepEqual(
    chat.server.model.asked.map(({ start }) => start.message),
    ["Precious words"],
  );
});

test("where WebSocket is blocked, a wrong key is told so at once, too, and is not stored", async (t) => {
  const chat = await openChat(t, browser, {
    env: CHAT_KEY,
    turns: [[say("Over HTTP.")]],
    proxy: { upgrades: "refuse" },
    // A right key is proved by asking for a run that is not there.
    expectedComplaints: /^WebSocket connection to|status of 40[14]/,
  });
  await enterKey(chat, "wrong");
  await chat.page.getByText("That key was not accepted.").waitFor();
  assert.deepEqual(await storedKeys(chat), []);
  await enterKey(chat, "chat-one");
  await chat.ask("Hello?", "Over HTTP.");
});

test("where WebSocket is blocked, the message that meets a revoked key is not lost", async (t) => {
  const chat = await openChat(t, browser, {
    env: CHAT_KEY,
    turns: [[say("Over HTTP.")]],
    proxy: { upgrades: "refuse" },
    expectedComplaints: /^WebSocket connection to|status of 40[14]/,
  });
  await enterKey(chat, "chat-one");
  await chat.input.waitFor();
  const [[name] = [""]] = await storedKeys(chat);
  await chat.page.evaluate((item) => localStorage.setItem(item, "revoked"), name);
  await chat.page.reload();
  await chat.say("Hello?");
  await chat.page.getByText("That key was not accepted.").waitFor();
  await enterKey(chat, "chat-two");
  await chat.replies.getByText("Over HTTP.").waitFor();
});

test("the key is in no address but the socket's", async (t) => {
  const chat = await openChat(t, browser, { env: CHAT_KEY, turns: [[say("Hidden.")]] });
  const seen = watchAddresses(chat.page);
  await enterKey(chat, "chat-one");
  await chat.ask("Hi", "Hidden.");
  await chat.page.reload();
  await chat.input.waitFor();
  assert.deepEqual(
    [chat.page.url(), ...seen.requests].filter((url) => url.includes("chat-one")),
    [],
  );
  assert.deepEqual(
    seen.sockets.map((url) => new URL(url).searchParams.get("key")),
    ["chat-one"],
  );
  assert.ok(chat.server.log.every((line) => !line.includes("chat-one")));
});

test("the page takes neither a key nor a server from its own address", async (t) => {
  const other = await startServer(t);
  const chat = await openChat(t, browser, {
    env: CHAT_KEY,
    turns: [],
    path: `/?key=chat-one&api-key=chat-one&server=${encodeURIComponent(other.url)}`,
  });
  await chat.keyField.waitFor();
  assert.deepEqual(await storedKeys(chat), []);
  const seen = watchAddresses(chat.page);
  await enterKey(chat, "chat-two");
  await chat.input.waitFor();
  const hosts = [...seen.requests, ...seen.sockets].map((url) => new URL(url).host);
  assert.deepEqual(
    hosts.filter((host) => host !== new URL(chat.server.url).host),
    [],
  );
});
