import assert from "node:assert/strict";
import { after } from "node:test";
import type { FrameLocator, Page } from "playwright-core";
import { launchBrowser } from "../support/browser.ts";
import { it, test } from "../support/rows.ts";
import { say } from "../support/scripted-provider.ts";
import { startSite } from "../support/site.ts";
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

for (const [kind, env] of [
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

test("a wrong key is refused at once; the right one is kept over a reload until it is forgotten, and in no address but the socket's", async (t) => {
  const chat = await openChat(t, browser, { env: CHAT_KEY, turns: [[say("Welcome.")]] });
  const seen = watchAddresses(chat.page);
  await enterKey(chat, "wrong");
  await chat.page.getByText("That key was not accepted.").waitFor();
  assert.deepEqual(await storedKeys(chat), []);
  await enterKey(chat, "chat-two");
  await chat.input.waitFor();
  assert.deepEqual(
    (await storedKeys(chat)).map(([, value]) => value),
    ["chat-two"],
  );
  await chat.page.reload();
  await chat.ask("Hi", "Welcome.");
  await chat.page.getByRole("button", { name: "Forget the saved key" }).click();
  await chat.keyField.waitFor();
  assert.deepEqual(await storedKeys(chat), []);
  await chat.page.reload();
  await chat.keyField.waitFor();
  assert.doesNotMatch([chat.page.url(), ...seen.requests].join(), /wrong|chat-two/);
  const sent = seen.sockets.map((url) => new URL(url).searchParams.get("key"));
  assert.deepEqual(new Set(sent), new Set(["wrong", "chat-two"]));
  assert.doesNotMatch(chat.server.log.join(), /chat-two/);
});

it("where the browser keeps nothing the form says so, and the key lasts as long as the page", async (t) => {
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

it("in a frame of a site that the operator has not named a stored key opens nothing, stays, and none is kept", async (t) => {
  const pages: Record<string, string> = {};
  const [named, unnamed] = await Promise.all([startSite(t, pages), startSite(t, pages)]);
  const env = { ...CHAT_KEY, PARLEY_ALLOWED_ORIGINS: `*,${named.url}` };
  const chat = await openChat(t, browser, { env, turns: [] });
  const { page, server } = chat;
  await enterKey(chat, "chat-one");
  await chat.input.waitFor();
  const frame = (src: string) => `<!doctype html><iframe src="${src}" width="600" height="700"></iframe>`;
  /** Opens a chat in nested frames of these sites, the outermost first; returns whether it asks for a key. */
  const openIn = async (...sites: readonly string[]) => {
    const addresses = [...sites.map((site, depth) => `${site}/around${depth}`), `${server.url}/?embed=1`];
    for (const [depth, address] of addresses.slice(0, -1).entries()) {
      pages[new URL(address).pathname] = frame(addresses[depth + 1] ?? "");
    }
    await page.goto(addresses[0] ?? "");
    const inner = sites.reduce<FrameLocator | Page>((around) => around.frameLocator("iframe"), page);
    const field = inner.locator("agent-chat :is(#key, textarea)").first();
    await field.waitFor();
    return { inner, asked: (await field.getAttribute("id")) === "key" };
  };
  for (const sites of [[], [named.url], [named.url, named.url]]) {
    assert.equal((await openIn(...sites)).asked, false, sites.join(" > "));
  }
  for (const sites of [[unnamed.url], [named.url, unnamed.url], [unnamed.url, named.url]]) {
    const { inner, asked } = await openIn(...sites);
    assert.equal(asked, true, sites.join(" > "));
    for (const [key, next] of [
      ["wrong", "[part='key-form'] [role=alert]:not(:empty)"],
      ["chat-two", "agent-chat textarea"],
    ] as const) {
      await inner.locator("#key").fill(key);
      await inner.locator("#key").press("Enter");
      await inner.locator(next).first().waitFor();
    }
    await page.goto(server.url);
    assert.deepEqual(
      (await storedKeys(chat)).map(([, value]) => value),
      ["chat-one"],
    );
  }
});
