/** What the scripts of a page are told by the element, and what they ask of it. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import type { AgentChatTokenEvent } from "../../widget/agent-chat.events.ts";
import { mount } from "./mount.ts";
import { done, startScriptedServer, token } from "./scripted-server.ts";

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});

test("each piece of an answer's text is told to the page as it came, and no thought", async (t) => {
  const server = await startScriptedServer(t);
  const { chat } = await mount(t, { server: server.url });
  const heard: string[] = [];
  const ids = new Set<string>();
  const listening = new AbortController();
  const { signal } = listening;
  t.after(() => listening.abort());
  const onToken = ({ text, messageId }: AgentChatTokenEvent) => {
    heard.push(text);
    ids.add(messageId);
  };
  document.addEventListener("agent-chat-token", onToken, { signal });
  chat.addEventListener("agent-chat-done", ({ text }) => heard.push(`done: ${text}`), { signal });
  for (const pieces of [["**One", "** and"], ["Two"]]) {
    const sent = chat.send("Go");
    const turn = await server.turn();
    turn.send({ type: "thinking", data: "hm" }, ...pieces.map(token), done(pieces.join("")));
    await sent;
  }
  assert.deepEqual(heard, ["**One", "** and", "done: **One** and", "Two", "done: Two"]);
  assert.equal(ids.size, 2, "an id for each answer");
});

test("stop in the same moment as send stops that answer, and nobody is asked", async (t) => {
  const server = await startScriptedServer(t);
  const { chat } = await mount(t, { server: server.url });
  const reasons: string[] = [];
  chat.addEventListener("agent-chat-done", ({ finishReason }) => reasons.push(finishReason));
  const sent = chat.send("Never mind");
  chat.stop();
  await sent;
  assert.deepEqual(reasons, ["stopped"]);
  const next = chat.send("Hello");
  const turn = await server.turn();
  assert.equal(turn.body.message, "Hello");
  turn.send(done("ok"));
  await next;
  assert.deepEqual(reasons, ["stopped", "stop"]);
});
