/** The server's key: asking for it, checking, storing and forgetting it. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import type { Client } from "../../widget/session/client.ts";
import { TestStorage } from "./browser-stubs.ts";
import { lastAnswer, openClient, text } from "./chat-client.ts";
import { done, startScriptedServer } from "./scripted-server.ts";

beforeEach(() => localStorage.clear());

const stored = (url: string) => localStorage.getItem(`agent-chat-key:${url}`);

for (const socket of [true, false]) {
  const over = socket ? "WebSocket" : "HTTP";

  test(`over ${over}, a wrong key is refused at once and not stored, and the right one is`, async (t) => {
    const server = await startScriptedServer(t, { key: "good", socket });
    const { client } = await openClient(t, server);
    assert.equal(client.key.prompt, "required");
    await client.submitKey("bad");
    assert.equal(client.key.prompt, "refused");
    assert.equal(stored(server.url), null);
    await client.submitKey("good");
    assert.equal(client.key.prompt, undefined);
    assert.equal(stored(server.url), "good");
  });

  test(`over ${over}, the key goes with the message`, async (t) => {
    const server = await startScriptedServer(t, { key: "good", socket });
    const { client } = await openClient(t, server);
    await client.submitKey("good");
    const { ended } = await client.session.send(text("Hi"));
    const turn = await server.turn();
    assert.deepEqual([turn.over, turn.authorization], socket ? ["socket", undefined] : ["http", "Bearer good"]);
    turn.send(done("ok"));
    await ended;
    if (socket) assert.deepEqual(new Set(server.dialled), new Set(["good"]));
  });

  test(`over ${over}, a message that meets a refused stored key waits for a good one and is then sent`, async (t) => {
    const { client, server, ended } = await meetRefusal(t, socket);
    let isOver = false;
    void ended.then(() => {
      isOver = true;
    });
    await client.submitKey("good");
    const turn = await server.turn();
    assert.equal(turn.body.message, "Important");
    assert.equal(isOver, false, "a message that waits for a key is not over");
    turn.send(done("Here."));
    await ended;
    assert.equal(client.session.messages.length, 2);
  });
}

test("a stored key is used without asking, and can be forgotten", async (t) => {
  const server = await startScriptedServer(t, { key: "good" });
  localStorage.setItem(`agent-chat-key:${server.url}`, "good");
  const { client } = await openClient(t, server);
  assert.equal(client.key.prompt, undefined);
  client.forgetKey();
  assert.equal(client.key.prompt, "required");
  assert.equal(stored(server.url), null);
});

test("a key that is forgotten while the server is asked about it opens nothing", async (t) => {
  const server = await startScriptedServer(t, { key: "good" });
  const { client } = await openClient(t, server);
  const checked = client.submitKey("good");
  assert.equal(client.isCheckingKey, true);
  client.forgetKey();
  await checked;
  assert.equal(client.isCheckingKey, false);
  assert.equal(client.key.prompt, "required");
  assert.equal(stored(server.url), null);
  await client.submitKey("good");
  assert.equal(stored(server.url), "good");
});

test("a key that was typed is not stored where the site brings one while the server is asked about it", async (t) => {
  const server = await startScriptedServer(t, { key: "good" });
  const { client } = await openClient(t, server);
  const checked = client.submitKey("bad");
  client.setSiteKey("good");
  await checked;
  assert.equal(client.key.prompt, undefined);
  assert.equal(stored(server.url), null);
});

test("a key about which the server cannot be asked is stored once an answer has proved it", async (t) => {
  let isDown = false;
  const server = await startScriptedServer(t, { key: "good", isDown: () => isDown });
  const { client } = await openClient(t, server);
  isDown = true;
  await client.submitKey("good");
  assert.equal(client.key.prompt, undefined);
  assert.equal(stored(server.url), null);
  isDown = false;
  const { ended } = await client.session.send(text("Hi"));
  (await server.turn()).send(done("ok"));
  await ended;
  assert.equal(stored(server.url), "good");
});

/** Sends a message with a stored key that is no longer valid. */
async function meetRefusal(t: Parameters<typeof openClient>[0], socket = true) {
  const server = await startScriptedServer(t, { key: "good", socket });
  localStorage.setItem(`agent-chat-key:${server.url}`, "revoked");
  const chat = await openClient(t, server);
  const { ended } = await chat.client.session.send(text("Important"));
  await chat.until(({ session }) => session.status === "locked");
  assert.equal(chat.client.key.prompt, "refused");
  assert.equal(chat.client.session.messages.length, 1, "the message stays in sight, without an answer");
  return { ...chat, server, ended };
}

for (const [what, end] of [
  ["stopped", ({ session }: Client) => session.stop()],
  ["removed with its conversation", ({ library }: Client) => void library.reset()],
] as const) {
  test(`a message that waits for a key is over when it is ${what}`, async (t) => {
    const { client, server, ended } = await meetRefusal(t);
    end(client);
    await ended;
    await client.submitKey("good");
    const next = await client.session.send(text("Another"));
    const turn = await server.turn();
    assert.equal(turn.body.message, "Another");
    turn.send(done("ok"));
    await next.ended;
  });
}

test("a key that the site brings is sent but never stored, and visitors are not asked for another", async (t) => {
  const server = await startScriptedServer(t, { key: "good" });
  const { client } = await openClient(t, { url: server.url, siteKey: "revoked" });
  await (await client.session.send(text("Hi"))).ended;
  assert.deepEqual(lastAnswer(client)?.failure?.code, "unauthorized");
  assert.equal(lastAnswer(client)?.failure?.detail, undefined, "the server's sentence is for the site's owner");
  assert.equal(client.key.prompt, undefined);
  assert.equal(Object.keys(localStorage).length, 0);
  client.setSiteKey("good");
  await client.session.send(text("Again"));
  assert.equal((await server.turn()).body.message, "Again");
});

test("where the site takes its key away again, visitors are asked for theirs", async (t) => {
  const server = await startScriptedServer(t, { key: "good" });
  const { client, until } = await openClient(t, { url: server.url, siteKey: "revoked" });
  client.setSiteKey(null);
  await client.session.send(text("Hi"));
  await until(({ session }) => session.status === "locked");
  await client.submitKey("good");
  assert.equal((await server.turn()).body.message, "Hi");
});

test("where storage is blocked the key lasts as long as the page", async (t) => {
  const server = await startScriptedServer(t, { key: "good" });
  const storage = Object.getOwnPropertyDescriptor(globalThis, "localStorage");
  Object.defineProperty(globalThis, "localStorage", {
    configurable: true,
    get() {
      throw new DOMException("denied", "SecurityError");
    },
  });
  t.after(() => Object.defineProperty(globalThis, "localStorage", storage ?? { value: new TestStorage() }));
  const { client } = await openClient(t, server);
  await client.submitKey("good");
  const later = await openClient(t, server);
  assert.equal(later.client.key.prompt, undefined);
});
