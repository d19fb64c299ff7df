/** Conversations are kept over page loads: which one a chat gets, what it reports again, and what is deleted. */

import assert from "node:assert/strict";
import { beforeEach, type TestContext, test } from "node:test";
import type { ConversationState } from "../../server/protocol/chat.ts";
import type { StreamEvent } from "../../server/protocol/events.ts";
import type { Message } from "../../widget/session/messages.ts";
import {
  type ConversationStore,
  fromRow,
  IndexedDbStore,
  type StoredConversation,
  toRow,
} from "../../widget/session/store.ts";
import { gate } from "../support/deadline.ts";
import { TestStorage } from "./browser-stubs.ts";
import { lastAnswer, openClient, type TestClient, text, textsOf } from "./chat-client.ts";
import { done, type ScriptedServer, startScriptedServer, token } from "./scripted-server.ts";

/** A store of a page's own, as one may bring to keep conversations on its server. */
class MemoryStore implements ConversationStore {
  readonly rows = new Map<string, StoredConversation>();
  isFrozen = false;
  saves = 0;

  async list() {
    return [...this.rows.values()];
  }

  async load(id: string) {
    return this.rows.get(id);
  }

  async save(conversation: StoredConversation) {
    this.saves += 1;
    if (!this.isFrozen) this.rows.set(conversation.id, structuredClone(conversation));
  }

  async delete(id: string) {
    this.rows.delete(id);
  }
}

beforeEach(() => {
  localStorage.clear();
  openTab(new TestStorage());
});

/** A new document knows nothing of the slots that another one has taken. */
function openTab(storage: TestStorage): void {
  Object.assign(globalThis, { sessionStorage: storage });
  Reflect.deleteProperty(globalThis, Symbol.for("agent-chat-slots"));
}

async function chat(t: TestContext) {
  const server = await startScriptedServer(t);
  const store = new MemoryStore();
  const open = (id = "") => openClient(t, { url: server.url, store, id });
  /** Leaves the page, and loads it again. */
  const reload = (left: TestClient) => {
    left.client.suspend();
    openTab(sessionStorage as unknown as TestStorage);
    return open();
  };
  return { server, store, open, reload, first: await open() };
}

async function ask({ client }: TestClient, server: ScriptedServer, message: string, answer = "ok"): Promise<void> {
  const { ended } = client.session.send(text(message));
  (await server.turn()).send(done(answer, { previous_response_id: `after ${message}` }));
  await ended;
}

test("after a reload the conversation is there with its draft, and goes on", async (t) => {
  const { server, reload, first, store } = await chat(t);
  await ask(first, server, "Hi", "Hello");
  first.client.keeper.saveDraft({ text: "Half a thou", files: ["dot.png"] });
  const second = await reload(first);
  assert.deepEqual(textsOf(second.client.session.messages), ["Hi", "Hello"]);
  assert.deepEqual(second.drafts, [{ text: "Half a thou", files: ["dot.png"] }]);
  const { ended } = second.client.session.send(text("More"));
  const turn = await server.turn();
  assert.deepEqual(turn.body.state, { previous_response_id: "after Hi" });
  turn.send(done("ok"));
  await ended;
  assert.equal(store.rows.size, 1);
});

test("a draft is kept without writing the conversation again", async (t) => {
  const { server, reload, first, store } = await chat(t);
  await ask(first, server, "Hi", "Hello");
  const { saves } = store;
  first.client.keeper.saveDraft({ text: "Half", files: [] });
  first.client.keeper.save();
  first.client.keeper.saveDraft({ text: "Half a thou", files: [] });
  const second = await reload(first);
  assert.deepEqual(second.drafts, [{ text: "Half a thou", files: [] }]);
  assert.equal(store.saves, saves);
});

test("a chat that is removed from the page goes on with its conversation when it returns", async (t) => {
  const { server, first, store } = await chat(t);
  await ask(first, server, "Hi");
  first.client.close();
  first.client.open(true);
  await first.client.keeper.restored;
  await ask(first, server, "More");
  assert.equal(store.rows.size, 1);
});

test("a chat that comes before the one of an earlier view has left goes on with its answer, and one conversation is kept", async (t) => {
  const { server, first, store, open } = await chat(t);
  await ask(first, server, "Hi");
  const { ended } = first.client.session.send(text("More"));
  void ended;
  const turn = await server.turn();
  turn.send(token("Half "));
  await first.until((it) => lastAnswer(it)?.blocks.length === 1);
  const second = await open();
  assert.deepEqual(second.client.session.messages, []);
  first.client.close();
  await turn.gone;
  await second.until(({ session }) => session.messages.length === 4);
  turn.send(token("of it"), done("Half of it"));
  await second.until(({ session }) => !session.busy);
  assert.deepEqual(textsOf(second.client.session.messages), ["Hi", "ok", "More", "Half of it"]);
  assert.deepEqual(second.reports, ["m4 of it", "m4 done"], "what the first has reported is not reported again");
  await new Promise(setImmediate);
  assert.equal(store.rows.size, 1);
});

test("a chat that comes back before the one in its place has left shows what was said there", async (t) => {
  const { server, first, store, open } = await chat(t);
  await ask(first, server, "Hi");
  first.client.close();
  const second = await open();
  await ask(second, server, "More");
  first.client.open(true);
  await first.client.keeper.restored;
  second.client.close();
  await first.until(({ session }) => session.messages.length === 4);
  assert.deepEqual(textsOf(first.client.session.messages), ["Hi", "ok", "More", "ok"]);
  await new Promise(setImmediate);
  assert.equal(store.rows.size, 1);
});

test("a draft with files is there when the chat returns, and none of them is called lost", async (t) => {
  const { first } = await chat(t);
  first.client.keeper.saveDraft({ text: "See", files: ["dot.png"] });
  first.drafts.length = 0;
  first.client.close();
  first.client.open(true);
  await first.client.keeper.restored;
  assert.deepEqual(first.drafts, []);
});

test("an answer that was stopped while the chat was out of the page is kept as stopped", async (t) => {
  const { server, first, store } = await chat(t);
  void first.client.session.send(text("Hi"));
  const turn = await server.turn();
  turn.send(token("Half"));
  await first.until((it) => lastAnswer(it)?.blocks.length === 1);
  first.client.close();
  await turn.gone;
  first.client.session.stop();
  await first.until(({ session }) => !session.busy);
  first.client.open(true);
  await first.client.keeper.restored;
  await new Promise(setImmediate);
  assert.deepEqual(
    [...store.rows.values()].map(({ run }) => run),
    [undefined],
  );
});

test("a message is stored as soon as it is sent", async (t) => {
  const { first, store } = await chat(t);
  first.client.session.send(text("Hi"));
  const [row] = store.rows.values();
  assert.deepEqual(textsOf(row?.messages ?? []).slice(0, 1), ["Hi"]);
  assert.equal(row?.run?.after, 0);
});

test("an answer goes on after a reload, and events that the last page has reported are not reported again", async (t) => {
  const { server, store, reload, first } = await chat(t);
  const call: StreamEvent = {
    type: "tool_call",
    data: { id: "1", tool: "look", arguments: "{}", status: "running" },
  };
  first.client.session.send(text("Hi"));
  const turn = await server.turn();
  // As where the page is left before the browser has written the rest.
  store.isFrozen = true;
  turn.send(token("a"), call, token("b"));
  await first.until((it) => lastAnswer(it)?.blocks.length === 3);
  const reports = first.reports.splice(0);
  assert.deepEqual(reports, ["m2 a", "m2 1 running", "m2 b"]);
  const second = await reload(first);
  await second.until((it) => lastAnswer(it)?.blocks.length === 3);
  assert.deepEqual(second.reports, []);
  turn.send(
    { type: "tool_result", data: { id: "1", tool: "look", output: "", status: "completed", duration_ms: 1 } },
    token("c"),
    done("bc"),
  );
  await second.until(({ session }) => session.status === "idle");
  assert.deepEqual(second.reports, ["m2 1 completed", "m2 c", "m2 done"]);
  assert.deepEqual(textsOf(second.client.session.messages), ["Hi", "a tool bc"]);
});

test("several chats of one page keep and forget a conversation each, and another page shows that of the first", async (t) => {
  const { server, store, open, first } = await chat(t);
  const second = await open("two");
  await ask(first, server, "I am one");
  await ask(second, server, "I am two");
  first.client.suspend();
  second.client.suspend();
  openTab(sessionStorage as unknown as TestStorage);
  // The second comes first this time.
  const again = await open("two");
  assert.deepEqual(textsOf(again.client.session.messages), ["I am two", "ok"]);
  const plain = await open();
  assert.deepEqual(textsOf(plain.client.session.messages), ["I am one", "ok"]);
  const titles = [...store.rows.values()].map(({ messages }) => textsOf(messages)[0]);
  assert.deepEqual(titles.toSorted(), ["I am one", "I am two"]);
  await again.client.session.reset();
  assert.deepEqual(textsOf([...store.rows.values()][0]?.messages ?? []), ["I am one", "ok"]);
  assert.equal(store.rows.size, 1);
});

/** "Duplicate tab": the other tab begins with what this one has in its storage. */
function duplicateTab(): { original: TestStorage } {
  const original = sessionStorage as unknown as TestStorage;
  openTab(Object.assign(new TestStorage(), original));
  return { original };
}

test("a tab that was duplicated goes on with a copy, and neither takes the other's conversation", async (t) => {
  const { server, store, open, first } = await chat(t);
  await ask(first, server, "Both know this");
  const { original } = duplicateTab();
  const copy = await open();
  assert.deepEqual(textsOf(copy.client.session.messages), ["Both know this", "ok"]);
  await ask(copy, server, "Only the copy");
  openTab(original);
  await ask(first, server, "Only the first");
  const texts = [...store.rows.values()].map(({ messages }) => textsOf(messages).at(-2));
  assert.deepEqual(texts.toSorted(), ["Only the copy", "Only the first"]);
});

test("a duplicated tab that begins a new conversation deletes its copy, not the original", async (t) => {
  const { server, store, open, reload, first } = await chat(t);
  await ask(first, server, "Hi");
  const shown = await reload(first);
  const { original } = duplicateTab();
  const copy = await open();
  await copy.client.session.reset();
  await new Promise(setImmediate);
  openTab(original);
  const again = await reload(shown);
  assert.deepEqual(textsOf(again.client.session.messages), ["Hi", "ok"]);
  assert.equal(store.rows.size, 1);
});

test("conversations are deleted after a day without a change, and no others", async (t) => {
  const { store, open } = await chat(t);
  const day = 24 * 60 * 60_000;
  const row = { agent: "", messages: [], state: {}, isCut: false };
  store.rows.set("old", { ...row, id: "old", updatedAt: Date.now() - day - 1 });
  store.rows.set("young", { ...row, id: "young", updatedAt: Date.now() - day + 60_000 });
  const deleted = new Promise<void>((resolve) => {
    store.delete = async (id) => {
      store.rows.delete(id);
      resolve();
    };
  });
  await open("two");
  await deleted;
  assert.deepEqual([...store.rows.keys()], ["young"]);
});

test("a new conversation, and a chat that is to keep nothing, leave nothing behind", async (t) => {
  const { server, store, first } = await chat(t);
  await ask(first, server, "Hi");
  assert.equal(store.rows.size, 1);
  await first.client.session.reset();
  assert.equal(store.rows.size, 0);
  await ask(first, server, "Again");
  first.client.keeper.saveDraft({ text: "And more", files: [] });
  first.client.keeper.erase();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(store.rows.size, 0);
  assert.deepEqual(Object.keys(sessionStorage), []);
  await ask(first, server, "Not kept");
  assert.equal(store.rows.size, 0);
});

test("a page that is shown again has what was said on another one meanwhile", async (t) => {
  const { server, open, first, reload } = await chat(t);
  await ask(first, server, "First");
  const second = await reload(first);
  await ask(second, server, "Second");
  second.client.suspend();
  first.client.keeper.resume();
  await first.client.keeper.restored;
  assert.deepEqual(textsOf(first.client.session.messages), ["First", "ok", "Second", "ok"]);
  first.client.suspend();
  openTab(sessionStorage as unknown as TestStorage);
  const third = await open();
  await third.client.session.reset();
  third.client.suspend();
  first.client.keeper.resume();
  await first.client.keeper.restored;
  assert.equal(first.client.session.messages.length, 0);
});

test("a conversation that is still being stored does not come back after it was deleted", async (t) => {
  const { server, store, first } = await chat(t);
  const save = store.save.bind(store);
  const held = gate();
  const stored: Promise<void>[] = [];
  store.save = (conversation) => {
    stored.push(held.opened.then(() => save(conversation)));
    return stored[0] as Promise<void>;
  };
  await ask(first, server, "Hi");
  await first.client.session.reset();
  held.open();
  await Promise.all(stored);
  await new Promise(setImmediate);
  assert.equal(store.rows.size, 0);
});

test("a save that fails late leaves what a later one has stored", async (t) => {
  const { server, store, first } = await chat(t);
  const save = store.save.bind(store);
  const held = gate();
  store.save = async () => {
    await held.opened;
    throw new DOMException("full", "QuotaExceededError");
  };
  first.client.session.send(text("Hi"));
  store.save = save;
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() + 1 });
  (await server.turn()).send(done("ok"));
  await first.until(({ session }) => !session.busy);
  held.open();
  await new Promise(setImmediate);
  assert.deepEqual([store.rows.size, first.client.keeper.isNotKept], [1, false]);
});

test("the conversation with another agent at the same address is not shown", async (t) => {
  const { server, store, reload, first } = await chat(t);
  await ask(first, server, "Hi");
  first.client.suspend();
  for (const [id, row] of store.rows) store.rows.set(id, { ...row, agent: "Another" });
  store.isFrozen = true;
  const second = await reload(first);
  await second.until(({ session }) => session.messages.length === 0);
});

test("where the store has no room the chat says so, and works", async (t) => {
  const { server, store, first } = await chat(t);
  let isFull = true;
  const save = store.save.bind(store);
  store.save = async (conversation) => {
    if (isFull) throw new DOMException("full", "QuotaExceededError");
    await save(conversation);
  };
  await ask(first, server, "Hi");
  await first.until(({ keeper }) => keeper.isNotKept);
  isFull = false;
  await ask(first, server, "Again");
  await first.until(({ keeper }) => !keeper.isNotKept);
});

const conversation = (messages: Message[], state: ConversationState = {}): StoredConversation => ({
  id: "c",
  agent: "Concierge",
  updatedAt: 1,
  messages,
  state,
  isCut: false,
});

const messages: Message[] = [
  { role: "user", id: "m1", text: "x".repeat(400), files: [], stateBefore: {} },
  { role: "assistant", id: "m2", blocks: [{ type: "text", text: "y".repeat(400) }], status: "done" },
  {
    role: "user",
    id: "m3",
    text: "See",
    files: [{ name: "dot.png", mediaType: "image/png", size: 1, picture: new Blob() }],
  },
  { role: "assistant", id: "m4", blocks: [{ type: "text", text: "Seen" }], status: "done" },
];

test("a stored conversation keeps its newest messages, and of their files name, type and size", () => {
  const restored = fromRow(structuredClone(toRow(conversation(messages), 400)));
  assert.deepEqual([restored?.isCut, restored?.messages.map(({ id }) => id)], [true, ["m3", "m4"]]);
  const [seen] = restored?.messages ?? [];
  assert.deepEqual(seen?.role === "user" && seen.files, [{ name: "dot.png", mediaType: "image/png", size: 1 }]);
  assert.equal(fromRow(toRow(conversation(messages), 10_000))?.isCut, false);
});

const withFile: ConversationState = {
  conversation_history: [
    {
      role: "user",
      content: [
        { type: "text", text: "See" },
        { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
      ],
    },
    { role: "assistant", content: "Seen" },
  ],
};

test("the bytes of files are not stored, and the agent is told of it", () => {
  const restored = fromRow(structuredClone(toRow(conversation(messages, withFile), 10_000)));
  const [first] = restored?.state.conversation_history ?? [];
  assert.match(JSON.stringify(first), /an image was attached here earlier and is no longer included/);
  assert.doesNotMatch(JSON.stringify(restored), /AAAA/);
});

test("a signed state with files cannot be stored, and the last answer says that the agent has forgotten it", () => {
  const row = structuredClone(toRow(conversation(messages, { ...withFile, signature: "s" }), 10_000));
  assert.doesNotMatch(JSON.stringify(row), /AAAA/);
  const restored = fromRow(row);
  assert.deepEqual(restored?.state, {});
  assert.ok(restored.messages.every((message) => message.role === "assistant" || !message.stateBefore));
  const last = restored?.messages.at(-1);
  assert.equal(last?.role === "assistant" && last.forgotten, true);
});

test("a damaged row is ignored, and the chat goes on keeping", async (t) => {
  const { server, store, reload, first } = await chat(t);
  await ask(first, server, "Hi");
  const [sound] = [...store.rows.values()].map((row) => toRow(row, 10_000));
  const damaged = [
    { messages: undefined },
    { messages: {} },
    { messages: [null] },
    { messages: [{ role: "user", id: "m1" }] },
    { messages: [{ role: "user", id: 1, text: "Hi", files: [] }] },
    { messages: [{ role: "assistant", id: "m2", status: "done" }] },
    { state: 1 },
    { run: { run: 1 } },
  ].map((damage) => ({ ...sound, ...damage }) as typeof sound);
  assert.deepEqual(
    damaged.map(fromRow),
    damaged.map(() => undefined),
  );
  store.load = async () => fromRow(damaged[0]);
  const second = await reload(first);
  assert.deepEqual(second.client.session.messages, []);
  await ask(second, server, "Again");
  assert.deepEqual([second.client.keeper.isNotKept, store.rows.size], [false, 1]);
});

test("a conversation that cannot be read now is not deleted: the next page may read it", async (t) => {
  const { server, store, reload, first } = await chat(t);
  await ask(first, server, "Hi");
  const load = store.load.bind(store);
  store.load = () => Promise.reject(new Error("IndexedDB does not answer"));
  const second = await reload(first);
  assert.deepEqual(second.client.session.messages, []);
  store.load = load;
  const third = await reload(second);
  assert.deepEqual(textsOf(third.client.session.messages), ["Hi", "ok"]);
});

test("a row of another version is ignored", () => {
  const row = toRow(conversation(messages), 10_000);
  assert.deepEqual(fromRow(row)?.messages.length, 4);
  assert.equal(fromRow({ ...row, version: 2 }), undefined);
});

test("decisions that a page could not send before it was left are not sent as a message", async (t) => {
  const { server, store, reload, first } = await chat(t);
  const { ended } = first.client.session.send(text("Pay"));
  const approval = { id: "1", tool: "pay", arguments: "{}", text: "Pay?", expires_at: "2026-01-01T00:00:00Z" };
  (await server.turn()).send(
    { type: "tool_approval", data: approval } as unknown as StreamEvent,
    { ...done(""), finish_reason: "approval_required" } as unknown as StreamEvent,
  );
  await ended;
  first.client.session.decide([{ id: "1", approved: true }]);
  const turn = await server.turn();
  turn.forget();
  store.isFrozen = true;
  const second = await reload(first);
  await second.until(({ session }) => !session.busy);
  const answer = lastAnswer(second.client);
  assert.deepEqual([answer?.status, answer?.failure?.code], ["failed", "run_not_found"]);
});

test("a database that opens too late is closed: it would keep a newer version of the chat from its own", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let isClosed = false;
  const close = () => {
    isClosed = true;
  };
  const opening = { result: { close }, onsuccess: () => {} };
  Object.assign(globalThis, { indexedDB: { open: () => opening } });
  t.after(() => Reflect.deleteProperty(globalThis, "indexedDB"));
  const loading = new IndexedDbStore(new URL("https://chat.example/")).load("c1");
  t.mock.timers.tick(3_000);
  await assert.rejects(loading, /does not answer/);
  opening.onsuccess();
  assert.equal(isClosed, true);
});
