import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import type { AgentChat } from "../../widget/agent-chat.ts";
import { mount, until } from "./mount.ts";
import { done, startScriptedServer } from "./scripted-server.ts";

beforeEach(() => localStorage.clear());

const storageName = (url: string) => `agent-chat-key:${new URL(url).href}`;

test("a server that asks for a key gets one from the person, and only a good one is stored", async (t) => {
  const server = await startScriptedServer(t, { key: "good" });
  const page = await mount(t, { server: server.url });
  assert.equal(page.find("textarea"), null);
  await page.enterKey("bad");
  await until(page.chat, () => page.text("#key-problem").startsWith("That key was not accepted"));
  assert.equal(localStorage.getItem(storageName(server.url)), null);
  await page.enterKey("good");
  await page.shown("textarea");
  assert.equal(localStorage.getItem(storageName(server.url)), "good");
  assert.deepEqual(server.dialled, ["bad", "good"]);
});

test("a stored key is used without asking, and can be forgotten", async (t) => {
  const server = await startScriptedServer(t, { key: "good" });
  localStorage.setItem(storageName(server.url), "good");
  const page = await mount(t, { server: server.url });
  await page.shown("textarea");
  await page.click("[part=forget-key]");
  await page.shown("#key");
  assert.equal(localStorage.getItem(storageName(server.url)), null);
});

test("a key that is forgotten while the server is asked about it lets nobody in", async (t) => {
  const server = await startScriptedServer(t, { key: "good" });
  const page = await mount(t, { server: server.url });
  await page.enterKey("good");
  await page.click("[part=forget-key]");
  await until(page.chat, () => page.find("[type=submit]:disabled") === null);
  assert.equal(page.find("textarea"), null);
  assert.equal(localStorage.getItem(storageName(server.url)), null);
  await page.enterKey("good");
  await page.shown("textarea");
  assert.equal(localStorage.getItem(storageName(server.url)), "good");
});

test("a key that was typed is not stored where the site brings one while the server is asked about it", async (t) => {
  const server = await startScriptedServer(t, { key: "good" });
  const page = await mount(t, { server: server.url });
  await page.enterKey("bad");
  page.chat.apiKey = "good";
  await page.shown("textarea");
  assert.equal(localStorage.getItem(storageName(server.url)), null);
});

test("a message that meets a refused stored key waits for a good one and is then sent", async (t) => {
  const server = await startScriptedServer(t, { key: "good" });
  localStorage.setItem(storageName(server.url), "revoked");
  const page = await mount(t, { server: server.url });
  let isOver = false;
  const sent = page.chat.send("Important").then(() => {
    isOver = true;
  });
  await page.shown("#key");
  assert.match(page.text(".key-form"), /Your message will be sent|not accepted/);
  assert.match(page.text(".bubble"), /Important/);
  await page.enterKey("good");
  const turn = await server.turn();
  assert.equal(turn.body.message, "Important");
  assert.equal(isOver, false, "a message that waits for a key is not over");
  turn.send(done("Here."));
  await sent;
  await until(page.chat, () => page.text(".markdown") === "Here.");
  assert.equal(page.all(".message").length, 2);
});

for (const [what, end] of [
  ["stopped", (chat: AgentChat) => chat.stop()],
  ["forgotten with its conversation", (chat: AgentChat) => chat.reset()],
] as const) {
  test(`a message that waits for a key is over when it is ${what}`, async (t) => {
    const server = await startScriptedServer(t, { key: "good" });
    localStorage.setItem(storageName(server.url), "revoked");
    const page = await mount(t, { server: server.url });
    const sent = page.chat.send("Important");
    await page.shown("#key");
    await end(page.chat);
    await sent;
    await page.enterKey("good");
    await page.shown("textarea");
    const next = page.chat.send("Another");
    const turn = await server.turn();
    assert.equal(turn.body.message, "Another");
    turn.send(done("ok"));
    await next;
  });
}

test("a key that the site brought is sent but never stored, and visitors are not asked for another", async (t) => {
  const server = await startScriptedServer(t, { key: "good" });
  const page = await mount(t, { server: server.url, apiKey: "revoked" });
  const sent = page.chat.send("Hi");
  await sent;
  await page.shown("[part=error]");
  assert.match(page.text("[part=error]"), /owner of the site/);
  assert.equal(page.find("#key"), null);
  assert.equal(localStorage.length, 0);

  page.chat.apiKey = "good";
  await page.chat.updateComplete;
  void page.chat.send("Again");
  assert.equal((await server.turn()).body.message, "Again");
});

test("where the site takes its key away again, visitors are asked for theirs", async (t) => {
  const server = await startScriptedServer(t, { key: "good" });
  const page = await mount(t, { server: server.url, apiKey: "revoked" });
  page.chat.setAttribute("api-key", "revoked as well");
  await page.chat.updateComplete;
  page.chat.removeAttribute("api-key");
  await page.chat.updateComplete;
  void page.chat.send("Hi");
  await page.enterKey("good");
  assert.equal((await server.turn()).body.message, "Hi");
});

test("where storage is blocked the key lasts as long as the page", async (t) => {
  const server = await startScriptedServer(t, { key: "good" });
  const storage = Object.getOwnPropertyDescriptor(globalThis, "localStorage");
  assert.ok(storage);
  Object.defineProperty(globalThis, "localStorage", {
    configurable: true,
    get() {
      throw new DOMException("denied", "SecurityError");
    },
  });
  t.after(() => Object.defineProperty(globalThis, "localStorage", storage));
  const page = await mount(t, { server: server.url });
  await page.enterKey("good");
  await page.shown("textarea");
  const later = await mount(t, { server: server.url });
  await later.shown("textarea");
});

test("with WebSocket blocked the key goes as a bearer token", async (t) => {
  const server = await startScriptedServer(t, { key: "good", socket: false });
  const page = await mount(t, { server: server.url });
  await page.enterKey("good");
  await page.shown("textarea");
  void page.chat.send("Hi");
  const turn = await server.turn();
  assert.deepEqual([turn.over, turn.authorization], ["http", "Bearer good"]);
  turn.send(done("ok"));
  await until(page.chat, () => page.text(".markdown") === "ok");
});
