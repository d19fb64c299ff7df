/** Conversations are kept over page loads: which one a chat gets, what it reports again, and what is deleted. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { beforeEach, type TestContext, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import type { ContentPart, ConversationState, HistoryMessage } from "../../server/protocol/chat.ts";
import type { StreamEvent } from "../../server/protocol/events.ts";
import { storedState } from "../../widget/session/branch-states.ts";
import type { ChatSession } from "../../widget/session/chat-session.ts";
import { Conversation, EMPTY_CONVERSATION, type OutgoingMessage } from "../../widget/session/conversation.ts";
import { LEASE_MS, UNREADABLE } from "../../widget/session/lease.ts";
import type { AssistantMessage, Message, UserMessage } from "../../widget/session/messages.ts";
import { fromRow, withAnswer } from "../../widget/session/read-row.ts";
import {
  answerRow,
  branchOf,
  type Row,
  type StoredConversation,
  type Summary,
  summaryOf,
  toRow,
} from "../../widget/session/row.ts";
import { shrink } from "../../widget/session/shrink.ts";
import { IndexedDbStore, mayWrite } from "../../widget/session/store.ts";
import { gate, within } from "../support/deadline.ts";
import { TestStorage } from "./browser-stubs.ts";
import {
  type ClientSetup,
  lastAnswer,
  openClient,
  pendingIds,
  sendPendingOf,
  type TestClient,
  text,
  textsOf,
} from "./chat-client.ts";
import { MemoryStore, readBack } from "./memory-store.ts";
import { done, type ScriptedServer, startScriptedServer, token } from "./scripted-server.ts";

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

test("a tab whose draft is damaged shows its conversation, without the draft", async (t) => {
  const { server, open, first } = await chat(t);
  await ask(first, server, "Hi", "Hello");
  let last = first;
  for (const draft of [undefined, null, 7, { text: "Half" }, { text: "Half", files: [], edit: {} }]) {
    last.client.suspend();
    const [name = ""] = Object.keys(sessionStorage);
    sessionStorage.setItem(name, JSON.stringify({ ...JSON.parse(sessionStorage.getItem(name) ?? ""), draft }));
    openTab(sessionStorage as unknown as TestStorage);
    last = await open();
    assert.deepEqual(textsOf(last.client.session.messages), ["Hi", "Hello"], JSON.stringify(draft));
  }
});

test("a draft is kept without writing the conversation again", async (t) => {
  const { server, reload, first, store } = await chat(t);
  await ask(first, server, "Hi", "Hello");
  await first.client.keeper.stored;
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
  assert.deepEqual(textsOf(row?.tree ?? []).slice(0, 1), ["Hi"]);
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
  const titles = [...store.rows.values()].map(({ tree }) => textsOf(tree)[0]);
  assert.deepEqual(titles.toSorted(), ["I am one", "I am two"]);
  await again.client.session.reset();
  assert.deepEqual(textsOf([...store.rows.values()][0]?.tree ?? []), ["I am one", "ok"]);
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
  const texts = [...store.rows.values()].map(({ tree }) => textsOf(tree).at(-2));
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
  const row = { ...EMPTY_CONVERSATION, agent: "", kept: "tab", revision: 1 } as const;
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
  const stored: Promise<boolean>[] = [];
  store.save = (...given) => {
    stored.push(held.opened.then(() => save(...given)));
    return stored[0] as Promise<boolean>;
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
  store.save = async (...given) => {
    if (isFull) throw new DOMException("full", "QuotaExceededError");
    return save(...given);
  };
  await ask(first, server, "Hi");
  await first.until(({ keeper }) => keeper.isNotKept);
  isFull = false;
  await ask(first, server, "Again");
  await first.until(({ keeper }) => !keeper.isNotKept);
});

/** Messages of one branch, each behind the one before, with the state after the last one. */
const conversation = (tree: readonly Message[], state: ConversationState = {}): StoredConversation => ({
  id: "c",
  agent: "Concierge",
  kept: "tab",
  updatedAt: 1,
  revision: 1,
  tree: tree.map((message, index) => ({ ...message, parent: tree[index - 1]?.id })),
  head: tree.at(-1)?.id,
  states: { m2: { rest: { conversation: "c2" } }, [tree.at(-1)?.id ?? ""]: storedState(state, undefined) },
  root: {},
  isCut: false,
});

const messages: Message[] = [
  { role: "user", id: "m1", text: "x".repeat(400), files: [] },
  { role: "assistant", id: "m2", blocks: [{ type: "text", text: "y".repeat(400) }], status: "done" },
  {
    role: "user",
    id: "m3",
    text: "See",
    files: [{ name: "dot.png", mediaType: "image/png", size: 1, picture: new Blob() }],
  },
  { role: "assistant", id: "m4", blocks: [{ type: "text", text: "Seen" }], status: "done" },
];

/** What a page load makes of a stored conversation. */
function restored(stored: StoredConversation, maxChars = 10_000): Conversation {
  const conversation = new Conversation();
  conversation.restore(readBack(toRow(shrink(stored, maxChars))));
  return conversation;
}

test("a stored conversation keeps its newest messages, and of their files name, type and size", () => {
  const short = restored(conversation(messages), 400);
  assert.deepEqual([short.isCut, short.messages.map(({ id }) => id)], [true, ["m3", "m4"]]);
  const [seen] = short.messages;
  assert.deepEqual(seen?.role === "user" && seen.files, [{ name: "dot.png", mediaType: "image/png", size: 1 }]);
  assert.deepEqual(short.stateFor("m3"), { conversation: "c2" });
  assert.equal(restored(conversation(messages)).isCut, false);
});

test("a conversation that has to shrink loses other branches first, the oldest ends of them, and never the one in sight", () => {
  const long = (id: string, parent: string | undefined): Message =>
    Number(id.slice(1)) % 2
      ? { role: "user", id, parent, text: id.repeat(50), files: [] }
      : { role: "assistant", id, parent, blocks: [{ type: "text", text: id.repeat(50) }], status: "done" };
  const stored = {
    ...conversation([]),
    tree: [
      long("m1", undefined),
      long("m2", "m1"),
      long("m4", "m1"),
      long("m5", "m4"),
      long("m6", "m5"),
      long("m8", "m1"),
    ],
    head: "m2",
    states: { m4: { rest: { previous_response_id: "four" } } },
  };
  const kept = (maxChars: number) =>
    readBack(toRow(shrink(stored, maxChars)))
      .tree.map(({ id }) => id)
      .join(" ");
  assert.equal(kept(1_300), "m1 m2 m4 m5 m6 m8");
  assert.equal(kept(770), "m1 m2 m4 m8");
  assert.equal(kept(570), "m1 m2 m8");
  assert.equal(kept(400), "m1 m2");
  assert.equal(kept(210), "m2");
});

const omitted = { sha256: "47DE", mime_type: "image/png", bytes: 3 } as const;
const whole = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" }, omitted } as const;
const withPart = (part: ContentPart): HistoryMessage[] => [
  { role: "user", content: [{ type: "text", text: "See" }, part] },
  { role: "assistant", content: "Seen" },
];

test("of a state all is stored but the data of its files, which is sent by its digest where it is gone", () => {
  const statesOf = (part: ContentPart): ConversationState[] => {
    const open = { messages: withPart(part), signature: "s" };
    return [
      { conversation_history: withPart(part), signature: "s" },
      { conversation_history: [], open },
      { previous_response_id: "one", open: { ...open, response: "two" } },
    ];
  };
  const left = statesOf({ type: "omitted", omitted });
  for (const [index, state] of statesOf(whole).entries()) {
    const stored = { ...conversation(messages, state), root: state };
    assert.doesNotMatch(JSON.stringify(toRow(stored)), /AAAA/);
    const read = restored(stored);
    assert.deepEqual([read.state, read.data.root], [left[index], left[index]]);
  }
});

test("where an earlier build could not store a state with files, the last answer says that the agent has forgotten it", () => {
  const stored = { ...conversation(messages), states: { m4: null } };
  // What the page has added behind it has no state, either.
  const note: Message = { role: "page", id: "m5", parent: "m4", text: "Note", at: 0 };
  for (const row of [
    stored,
    { ...stored, root: null, states: {} },
    { ...stored, tree: [...stored.tree, note], head: "m5" },
  ]) {
    const read = restored(row);
    assert.deepEqual([read.state, read.lastAnswer?.id, read.lastAnswer?.forgotten], [{}, "m4", true]);
  }
  assert.equal(restored({ ...stored, root: null, states: {} }).knowsState(messages[2] as UserMessage), false);
});

test("the size of a conversation is that of its messages and of its states together", () => {
  const state = { conversation_history: [{ role: "assistant", content: "z".repeat(5_000) }] } as ConversationState;
  const sizeOf = (stored: StoredConversation) => summaryOf(toRow(stored), "", 0).size;
  const alone = sizeOf(conversation(messages));
  assert.ok(alone > 800 && alone < 2_000);
  assert.ok(sizeOf(conversation(messages, state)) > alone + 5_000);
  assert.ok(sizeOf({ ...conversation(messages), root: state }) > alone + 5_000);
});

test("while an answer comes it is stored without the rest of its conversation, and read with it", () => {
  const [said, answer] = [messages.slice(0, 3), messages[3] as AssistantMessage];
  const written = { ...conversation([...said, answer]), run: { run: "r", after: 1 } };
  const longer: AssistantMessage = { ...answer, blocks: [{ type: "text", text: "Seen it all" }] };
  const now = {
    ...written,
    tree: written.tree.with(-1, { ...longer, parent: "m3" }),
    run: { run: "r", after: 9 },
    revision: 2,
  };
  const stored = answerRow(written, now);
  assert.ok(stored && JSON.stringify(stored).length < 300);
  const read = (row: Row) => readBack(withAnswer(row, structuredClone(stored)));
  assert.deepEqual(read(structuredClone(toRow(written))), readBack(toRow(now)));
  assert.equal(read({ ...toRow(written), revision: 3 }).run?.after, 1, "a later one has all of it");
  const others = [{ run: undefined }, { name: "New" }, { marks: 1 }, { states: {} }, { tree: [...now.tree].reverse() }];
  for (const other of others) assert.equal(answerRow(written, { ...now, ...other }), undefined);
  assert.equal(answerRow(undefined, now), undefined);
});

test("a conversation that another tab deletes in the middle of its answer is not stored again", async (t) => {
  const { server, store } = await chat(t);
  const open = () => openClient(t, { url: server.url, store, keepsAll: true });
  const here = await open();
  here.client.session.send(text("Hi"));
  const turn = await server.turn();
  turn.send({ type: "token", data: "Half" });
  await here.until(({ session }) => session.messages.length === 2 && store.summaries.size === 1);
  openTab(new TestStorage());
  const library = await (await open()).client.keeper.library();
  const [summary] = (await library?.list()) ?? [];
  const bringBack = await library?.remove(summary?.id ?? "");
  await here.until(({ session }) => session.messages.length === 0);
  await here.client.keeper.stored;
  assert.deepEqual([...store.rows.keys()], []);
  await bringBack?.();
  assert.equal(store.rows.size, 1);
});

/** A conversation of the library in two tabs. */
async function inTwoTabs({ server, store, first }: Awaited<ReturnType<typeof chat>>, t: TestContext) {
  first.client.close();
  const open = () => openClient(t, { url: server.url, store, keepsAll: true });
  const here = await open();
  await ask(here, server, "Hi");
  await here.client.keeper.stored;
  openTab(new TestStorage());
  const there = await open();
  const [id = ""] = store.rows.keys();
  await there.client.keeper.show(id);
  return { here, there, id, open };
}

test("what was deleted to make room is kept by the tab that shows it, also if it closes at once", async (t) => {
  const parts = await chat(t);
  const { here, there, id } = await inTwoTabs(parts, t);
  const [library, { shown }] = [await there.client.keeper.library(), there.client.keeper];
  const heard = (isSo: () => boolean) =>
    within(new Promise<void>((resolve) => library?.listeners.add(() => isSo() && resolve())), "the news");
  // The other tab has just saved what both show.
  const { revision } = shown;
  const isSaved = heard(() => shown.revision > revision && shown.revision === here.client.keeper.shown.revision);
  here.client.keeper.changed();
  here.client.keeper.save();
  await isSaved;
  await parts.store.delete(id);
  const isGone = heard(() => shown.revision === 0);
  (await here.client.keeper.library())?.tell({ id, isGone: "toMakeRoom" });
  await isGone;
  there.client.close();
  await there.client.keeper.stored;
  assert.deepEqual(textsOf(parts.store.rows.get(id)?.tree ?? []), ["Hi", "ok"]);
});

const ratingOf = ({ session }: TestClient["client"]) =>
  session.messages.flatMap((it) => (it.role === "assistant" && it.feedback ? [it.feedback.rating] : []));

test("a rating in one tab is seen in the other, also while an answer comes, and no later save of it takes the rating away", async (t) => {
  const parts = await chat(t);
  const { here, there, id } = await inTwoTabs(parts, t);
  const rate = (at: number, rating: "up" | "down") => {
    const message = here.client.session.messages[at];
    if (message?.role === "assistant") here.client.session.keep({ ...message, feedback: { rating } });
  };
  rate(1, "up");
  await there.until((it) => ratingOf(it).join() === "up");
  assert.equal(await there.client.keeper.claim(), true);
  void there.client.session.send(text("More"));
  const turn = await parts.server.turn();
  await here.until(({ session }) => session.messages.length === 4);
  rate(1, "down");
  await there.until((it) => ratingOf(it).join() === "down");
  turn.send(done("ok"));
  await there.until(({ session }) => !session.busy);
  await here.until(({ session }) => !session.busy);
  await there.client.keeper.stored;
  rate(3, "up");
  await there.until((it) => ratingOf(it).join() === "down,up");
  const kept = parts.store.rows.get(id)?.tree ?? [];
  assert.deepEqual(
    kept.flatMap((it) => (it.role === "assistant" ? [it.feedback?.rating] : [])),
    ["down", "up"],
  );
});

test("what one tab has done and not stored yet stays when another one has written meanwhile, and is stored then", async (t) => {
  const parts = await chat(t);
  const { here, there, id } = await inTwoTabs(parts, t);
  const asks = (call: string): StreamEvent => ({
    type: "tool_approval",
    data: { id: call, tool: "pay", arguments: "{}", text: `Pay ${call}?`, expires_at: "2099-01-01T00:00:00Z" },
  });
  await there.client.keeper.show(undefined);
  const { ended } = here.client.session.send(text("Pay both"));
  (await parts.server.turn()).send(asks("1"), asks("2"), {
    ...done(""),
    finish_reason: "approval_required",
  } as StreamEvent);
  await ended;
  await here.client.keeper.stored;
  await there.client.keeper.show(id);
  assert.ok(await there.client.keeper.claim(), "nobody else goes on");
  // What this one does waits for the other one.
  here.client.keeper.shown.followsUntil = Date.now() + LEASE_MS;
  const [, first] = here.client.session.messages;
  if (first?.role === "assistant") here.client.session.keep({ ...first, feedback: { rating: "up" } });
  here.client.session.mark("1", { approved: true });
  await here.client.session.addOfPage({ text: "From here" });
  there.client.session.mark("2", { approved: false });
  await there.client.session.addOfPage({ text: "From there" });
  for (const { until } of [here, there]) {
    await until((client) => {
      const { session } = client;
      const decided = session.waitingCalls.map(({ decision }) => decision?.approved);
      const seen = [...textsOf(session.messages).slice(4), ...ratingOf(client), ...decided];
      return isDeepStrictEqual(seen, ["From there", "From here", "up", true, false]);
    });
  }
  await here.client.keeper.stored;
  const { tree = [], head } = parts.store.rows.get(id) ?? {};
  assert.deepEqual(textsOf(branchOf(tree, head)).slice(4), ["From there", "From here"]);
});

test("a tab that is slower than the one that writes reports the calls and the end of the answer that it takes over", async (t) => {
  const { server, store } = await chat(t);
  const open = () => openClient(t, { url: server.url, store, keepsAll: true });
  const writes = await open();
  writes.client.session.send(text("Hi"));
  const turn = await server.turn();
  turn.send(token("Half"));
  await writes.until(() => /Half/.test(JSON.stringify(lastAnswer(writes.client))));
  openTab(new TestStorage());
  const slow = await open();
  await slow.client.keeper.show(writes.client.keeper.shown.id);
  assert.equal(await server.control(), "resume");
  await slow.until(() => /Half/.test(JSON.stringify(lastAnswer(slow.client))));
  // From now on the server sends to the other one only.
  writes.client.networkChanged();
  assert.equal(await server.control(), "resume");
  const call = { id: "c1", tool: "search", arguments: "{}" } as const;
  turn.send({ type: "tool_call", data: { ...call, status: "running" } });
  turn.send({ type: "tool_result", data: { ...call, output: "", status: "completed", duration_ms: 1 } });
  turn.send(done("Half and more."));
  await slow.until(({ session }) => !session.busy);
  const { id } = lastAnswer(slow.client) ?? {};
  assert.deepEqual(slow.reports.slice(-2), [`${id} c1 completed`, `${id} done`]);
  assert.equal(slow.reports.filter((it) => it.endsWith(" done")).length, 1);
  assert.match(textsOf(slow.client.session.messages).join(), /Half/);
});

test("a conversation that is only looked at keeps its place in the list, however old it is", async (t) => {
  const parts = await chat(t);
  const { store } = parts;
  const { here, id } = await inTwoTabs(parts, t);
  const [row, summary] = [store.rows.get(id) as StoredConversation, store.summaries.get(id) as Summary];
  store.rows.set("old", { ...row, id: "old", updatedAt: 1 });
  store.summaries.set("old", { ...summary, id: "old", writer: "gone", updatedAt: 1 });
  await here.client.keeper.show("old");
  await here.client.keeper.stored;
  await here.client.keeper.show(undefined);
  await here.client.keeper.stored;
  const list = await (await here.client.keeper.library())?.list();
  assert.deepEqual(list?.map((it) => [it.id, it.updatedAt]).at(-1), ["old", 1]);
});

test("what another tab adds to a conversation takes no file from the tab that has sent it, and gives none to another one", async (t) => {
  const parts = await chat(t);
  const { here, there, id } = await inTwoTabs(parts, t);
  const { session, keeper } = here.client;
  await keeper.show(undefined);
  const file = { type: "image", name: "dot.png", mime_type: "image/png", data: "" } as const;
  const picture = new Blob(["dot"]);
  const shown = { name: "dot.png", mediaType: "image/png", size: 3, picture } as const;
  const { ended } = session.send({ text: "See", attachments: [file], files: [shown] });
  (await parts.server.turn()).send(done("A dot"));
  await ended;
  await keeper.stored;
  const added = keeper.shown.id;
  await there.client.keeper.show(added);
  const [, answer] = there.client.session.messages;
  if (answer?.role === "assistant") there.client.session.keep({ ...answer, feedback: { rating: "up" } });
  await here.until((it) => ratingOf(it).join() === "up");
  const sent = () => session.lastQuestion && session.outgoing(session.lastQuestion);
  assert.deepEqual(sent(), { text: "See", attachments: [file], files: [shown] });
  assert.equal(sent()?.files[0]?.picture, picture);
  const row = parts.store.rows.get(`${added}`) as StoredConversation;
  parts.store.rows.set(id, { ...row, id });
  await keeper.show(id);
  assert.deepEqual(sent()?.attachments, []);
});

test("a rating of an answer that another tab has just received is kept by a tab that is left at once", async (t) => {
  const parts = await chat(t);
  const { here, there, id } = await inTwoTabs(parts, t);
  assert.equal(await there.client.keeper.claim(), true);
  there.client.session.send(text("More"));
  const turn = await parts.server.turn();
  await here.until(({ session }) => session.messages.length === 4);
  const save = parts.store.save.bind(parts.store);
  const isOver = gate();
  parts.store.save = (...given) => isOver.opened.then(() => save(...given));
  turn.send(done("ok"));
  await Promise.all([there.client.session.ended, here.client.session.ended]);
  const library = await here.client.keeper.library();
  const isHeard = new Promise<void>((resolve) => library?.listeners.add(resolve));
  isOver.open();
  await within(isHeard, "the news");
  const answer = here.client.session.messages[3];
  if (answer?.role === "assistant") here.client.session.keep({ ...answer, feedback: { rating: "up" } });
  here.client.suspend();
  await here.client.keeper.stored;
  const stored = parts.store.rows.get(id)?.tree[3];
  assert.equal(stored?.role === "assistant" && stored.feedback?.rating, "up");
});

test("what was pressed in one conversation does not go into another that is opened while the store is asked", async (t) => {
  const parts = await chat(t);
  const { here } = await inTwoTabs(parts, t);
  const claim = parts.store.claim.bind(parts.store);
  const held = gate();
  parts.store.claim = (...given) => held.opened.then(() => claim(...given));
  const mayGoOn = here.client.keeper.claim();
  await here.client.keeper.show(undefined);
  held.open();
  assert.equal(await mayGoOn, false);
});

/** A conversation in which a message is about to be sent by itself, and waits for the store. */
async function aboutToSend(parts: Awaited<ReturnType<typeof chat>>, t: TestContext, message: string) {
  const { server, store } = parts;
  const { here, there, id } = await inTwoTabs(parts, t);
  there.client.close();
  here.client.session.send(text("More"));
  const turn = await server.turn();
  here.client.session.queue(text(message));
  await here.client.keeper.queued;
  const queue = store.queue.bind(store);
  const held = gate();
  const isTaken = new Promise<void>((resolve) => {
    store.queue = (...given) => {
      resolve();
      return held.opened.then(() => queue(...given));
    };
  });
  turn.send(done("ok"));
  await within(isTaken, "the message to be taken");
  return { here, id, goOn: held.open };
}

test("what is about to be sent when another conversation is opened stays in its own, and is sent only with the person's word", async (t) => {
  const parts = await chat(t);
  const { server } = parts;
  const { here, id, goOn } = await aboutToSend(parts, t, "And this");
  await here.client.keeper.show(undefined);
  goOn();
  await ask(here, server, "Elsewhere");
  assert.deepEqual(textsOf(here.client.session.messages), ["Elsewhere", "ok"]);
  await here.client.keeper.show(id);
  await here.until(({ session }) => session.pending[0]?.isHeld === true);
  const sent = sendPendingOf(here.client, pendingIds(here.client));
  assert.equal((await server.turn()).body.message, "And this");
  await sent;
});

test("what waits for the person's word still does after another message could not be sent at once", async (t) => {
  const parts = await chat(t);
  const { server, store } = parts;
  const { here, id, goOn } = await aboutToSend(parts, t, "And this");
  store.queues.set(id, [{ id: "p0", text: "Was it sent?", files: [], isHeld: true }, ...(store.queues.get(id) ?? [])]);
  const { ended } = here.client.session.send(text("Between"));
  const turn = await server.turn();
  goOn();
  await here.until(({ session }) => session.pending.length === 2);
  await here.client.keeper.queued;
  turn.send(done("ok"));
  await ended;
  assert.equal((await server.turn()).body.message, "And this");
  await here.client.keeper.queued;
  assert.deepEqual(
    store.queues.get(id)?.map((it) => [it.text, it.isHeld]),
    [["Was it sent?", true]],
  );
});

test("what is about to be sent when another branch is shown stays held, and is not sent into that", async (t) => {
  const parts = await chat(t);
  const { server } = parts;
  const { here, goOn } = await aboutToSend(parts, t, "And this");
  const { lastQuestion, messages } = here.client.session;
  const { ended } = here.client.session.send(text("More, changed"), { replaces: lastQuestion?.id });
  const turn = await server.turn();
  goOn();
  await here.client.keeper.queued;
  turn.send(done("ok"));
  await ended;
  await here.client.keeper.queued;
  assert.deepEqual(
    here.client.session.pending.map((it) => [it.text, it.isHeld]),
    [["And this", true]],
  );
  assert.equal(messages.length, here.client.session.messages.length);
});

test("a press on what waits for a word is not lost while something else is about to be sent", async (t) => {
  const parts = await chat(t);
  const { server, store } = parts;
  const { here, id, goOn } = await aboutToSend(parts, t, "And this");
  store.queues.set(id, [{ id: "p0", text: "Was it sent?", files: [], isHeld: true }, ...(store.queues.get(id) ?? [])]);
  const pressed = sendPendingOf(here.client, ["p0"]);
  goOn();
  const turn = await server.turn();
  assert.equal(turn.body.message, "And this");
  await pressed;
  turn.send(done("ok"));
  assert.equal((await server.turn()).body.message, "Was it sent?");
});

test("the bytes of a message's files go with it, and one whose files are lost and that has no text is not sent", async (t) => {
  const { server, first } = await chat(t);
  const { session } = first.client;
  session.send(text("Hi"));
  const turn = await server.turn();
  const file = { name: "dot.png", media_type: "image/png", data: "AAAA" };
  const shown = { name: "dot.png", mediaType: "image/png", size: 3 };
  session.queue({ text: "", attachments: [file], files: [shown] } as unknown as OutgoingMessage);
  session.queue({ text: "", attachments: [file], files: [shown] } as unknown as OutgoingMessage);
  assert.equal(session.pendingFiles.size, 2);
  const [lost, removed] = session.pending;
  session.changePending((list) => list.filter((it) => it !== removed));
  assert.deepEqual([...session.pendingFiles.keys()], [lost?.id]);
  session.pendingFiles.clear();
  await sendPendingOf(first.client, pendingIds(first.client));
  assert.equal(session.busy, true, "the answer is not stopped for nothing");
  turn.send(done("ok"));
  await session.ended;
});

test("what a page waits to add is not added to another conversation that its tab has when it is returned to", async (t) => {
  const { server, store, first } = await chat(t);
  first.client.close();
  const open = () => openClient(t, { url: server.url, store, keepsAll: true });
  const here = await open();
  await ask(here, server, "Hi");
  here.client.session.send(text("More"));
  await server.turn();
  const added = here.client.session.addOfPage({ text: "A note" });
  here.client.suspend();
  openTab(sessionStorage as unknown as TestStorage);
  const other = await open();
  await other.client.keeper.show(undefined);
  await ask(other, server, "Elsewhere");
  other.client.suspend();
  await other.client.keeper.stored;
  await here.client.returned();
  assert.equal(await added, undefined);
  assert.deepEqual(textsOf(here.client.session.messages), ["Elsewhere", "ok"]);
});

test("what was sent by a tab that did not live to say so waits no longer", async (t) => {
  const parts = await chat(t);
  const { store } = parts;
  const { id, open } = await inTwoTabs(parts, t);
  const row = store.rows.get(id) as StoredConversation;
  const tree = row.tree.map((it) => (it.role === "user" ? { ...it, pending: ["p1"] } : it));
  store.rows.set(id, { ...row, tree, revision: row.revision + 1 });
  store.queues.set(id, [
    { id: "p1", text: "Hi", files: [] },
    { id: "p2", text: "Not sent", files: [], isHeld: true },
  ]);
  openTab(new TestStorage());
  const third = await open();
  await third.client.keeper.show(id);
  await third.client.keeper.queued;
  for (const list of [third.client.session.pending, store.queues.get(id)])
    assert.deepEqual(
      list?.map((it) => it.text),
      ["Not sent"],
    );
});

test("all that a user has said here is forgotten, also to an agent of another name, and nothing of another user", async (t) => {
  const parts = await chat(t);
  const { store } = parts;
  const { here, id } = await inTwoTabs(parts, t);
  const row = store.rows.get(id) as StoredConversation;
  store.rows.set("old", { ...row, id: "old", agent: "Another name" });
  store.rows.set("ann", { ...row, id: "ann", user: "ann" });
  store.rows.set("tab", { ...row, id: "tab", kept: "tab" });
  const library = await here.client.keeper.library();
  assert.deepEqual([(await library?.list())?.length, library?.kept], [1, 2]);
  await library?.clear();
  assert.deepEqual([...store.rows.keys()], ["ann", "tab"]);
});

test("what is pending when the page is loaded again in the middle of an answer is sent as soon as that ends", async (t) => {
  const parts = await chat(t);
  const { server, store } = parts;
  const { here, there, open } = await inTwoTabs(parts, t);
  there.client.close();
  here.client.session.send(text("More"));
  const turn = await server.turn();
  turn.send(token("Half"));
  await here.until((it) => lastAnswer(it)?.blocks.length === 1);
  here.client.session.queue(text("And this"));
  await here.client.keeper.queued;
  // All of it is stored: nothing but the lease is left to write.
  here.client.keeper.save();
  await here.client.keeper.stored;
  here.client.suspend();
  const [summary] = await store.list();
  assert.equal(summary?.until, 0, "nobody goes on with it");
  here.client.close();
  const next = await open();
  await next.until(({ session }) => session.messages.length === 4);
  turn.send(done("Half and all"));
  assert.equal((await server.turn()).body.message, "And this");
});

test("room is made by the oldest conversations that no tab shows or goes on with, also when one has grown", async (t) => {
  const parts = await chat(t);
  const { server, store } = parts;
  const { here, there, id } = await inTwoTabs(parts, t);
  const { updatedAt, ...row } = store.rows.get(id) as StoredConversation;
  store.summaries.delete(id);
  for (let at = 1; at < 200; at += 1) store.rows.set(`c${at}`, { ...row, id: `c${at}`, updatedAt: at });
  store.rows.set(id, { ...row, updatedAt: 0 });
  store.summaries.set("c1", summaryOf({ ...row, id: "c1", updatedAt: 1 }, "elsewhere", Date.now() + LEASE_MS));
  const library = await here.client.keeper.library();
  const isGone = (oldest: string) =>
    within(
      new Promise<void>((resolve) => {
        library?.listeners.add(() => store.rows.has(id) && !store.rows.has(oldest) && resolve());
      }),
      "room",
    );
  const hasRoom = isGone("c2");
  await there.client.keeper.show(undefined);
  await ask(there, server, "One too many");
  await hasRoom;
  assert.deepEqual([store.rows.size, store.rows.has("c1")], [200, true]);
  store.summaries.set("c3", { ...summaryOf({ ...row, id: "c3", updatedAt: 3 }, "", 0), size: 60_000_000 });
  const hasRoomAgain = isGone("c3");
  await ask(there, server, "Too much");
  await hasRoomAgain;
  assert.equal(store.rows.has("c4"), true);
  assert.deepEqual(textsOf(here.client.session.messages), ["Hi", "ok"]);
});

test("what waits for the person is the last to make room: an approval that is asked for, and messages that wait to be sent", async (t) => {
  const parts = await chat(t);
  const { server, store } = parts;
  const { here, there, id } = await inTwoTabs(parts, t);
  there.client.close();
  const row = store.rows.get(id) as StoredConversation;
  const asking: AssistantMessage = {
    role: "assistant",
    id: "m2",
    parent: "m1",
    blocks: [{ type: "tool", callId: "c1", tool: "cancel", arguments: "{}", status: "waiting" }],
    status: "done",
  };
  for (let at = 1; at < 200; at += 1) store.rows.set(`c${at}`, { ...row, id: `c${at}`, updatedAt: at });
  store.rows.set("c1", { ...row, id: "c1", updatedAt: 1, tree: [row.tree[0] as Message, asking] });
  store.queues.set("c2", [{ id: "p1", text: "And this", files: [] }]);
  const library = await here.client.keeper.library();
  const room = (dropped: number) =>
    within(
      new Promise<void>((resolve) => library?.listeners.add(() => library.dropped === dropped && resolve())),
      "room",
    );
  const hasRoom = room(1);
  await here.client.keeper.show(undefined);
  await ask(here, server, "One too many");
  await hasRoom;
  const isKept = (...ids: string[]) => ids.map((it) => store.rows.has(it));
  assert.deepEqual(isKept("c1", "c2", "c3"), [true, true, false]);
  for (const it of store.rows.keys()) store.queues.set(it, [{ id: "p1", text: "And this", files: [] }]);
  const hasRoomAgain = room(2);
  await here.client.keeper.show(undefined);
  await ask(here, server, "Where all of them wait");
  await hasRoomAgain;
  assert.deepEqual(isKept("c1", "c2"), [false, true]);
});

test("a name waits for the lease of a tab that has just gone, and the last one counts", async (t) => {
  const parts = await chat(t);
  const { store } = parts;
  const { here, id } = await inTwoTabs(parts, t);
  const row = { ...(store.rows.get(id) as StoredConversation), id: "left" };
  store.rows.set("left", row);
  store.summaries.set("left", summaryOf(row, "gone", Date.now() + 500));
  const library = await here.client.keeper.library();
  await Promise.all([library?.rename("left", "Apples"), library?.rename("left", " Bread ")]);
  assert.deepEqual([store.rows.get("left")?.name, store.summaries.get("left")?.title], ["Bread", "Bread"]);
});

test("a conversation that was renamed from another one's tab is known to the tab that shows it, which goes on at once", async (t) => {
  const parts = await chat(t);
  const { here, there, id } = await inTwoTabs(parts, t);
  await there.client.keeper.show(undefined);
  const library = await here.client.keeper.library();
  const isHeard = new Promise<void>((resolve) => library?.listeners.add(resolve));
  await (await there.client.keeper.library())?.rename(id, "Apples");
  await within(isHeard, "the name");
  await here.until(({ keeper }) => keeper.shown.revision === parts.store.rows.get(id)?.revision);
  assert.equal(here.client.keeper.shown.name, "Apples");
  const answer = here.client.session.messages[1];
  if (answer?.role === "assistant") here.client.session.keep({ ...answer, feedback: { rating: "up" } });
  here.client.suspend();
  await here.client.keeper.stored;
  const row = parts.store.rows.get(id);
  const stored = row?.tree[1];
  assert.deepEqual([row?.name, stored?.role === "assistant" && stored.feedback?.rating], ["Apples", "up"]);
});

test("what is read of a conversation while a newer state of it is stored does not take the place of that", async (t) => {
  const parts = await chat(t);
  const { store, server } = parts;
  const { here, there } = await inTwoTabs(parts, t);
  there.client.close();
  const load = store.load.bind(store);
  const held = gate();
  store.load = async (id) => {
    const row = structuredClone(await load(id));
    await held.opened;
    return row;
  };
  const loaded = here.client.keeper.reload();
  await ask(here, server, "More");
  await here.client.keeper.stored;
  held.open();
  await loaded;
  assert.deepEqual(textsOf(here.client.session.messages), ["Hi", "ok", "More", "ok"]);
});

test("where the browser forbids storage and what goes with it, messages are sent and the chat says what it does not keep", async (t) => {
  const { BroadcastChannel } = globalThis;
  t.after(() => Object.assign(globalThis, { BroadcastChannel }));
  function forbidden(): never {
    throw new DOMException("The operation is insecure.", "SecurityError");
  }
  Object.assign(globalThis, { BroadcastChannel: forbidden });
  const { server, first } = await chat(t);
  first.client.close();
  const reject = async () => forbidden();
  const store = {
    list: reject,
    load: reject,
    save: reject,
    claim: reject,
    queue: reject,
    delete: reject,
    copy: reject,
  };
  const here = await openClient(t, { url: server.url, store, keepsAll: true });
  assert.equal(await here.client.keeper.claim(), true);
  await ask(here, server, "Hi");
  await here.until(({ keeper }) => keeper.isNotKept);
  assert.equal(await here.client.keeper.claim(), true);
});

test("a tab that was left and returned to before it was known who is there hears what other tabs do", async (t) => {
  let isDown = false;
  const server = await startScriptedServer(t, { isDown: () => isDown });
  const store = new MemoryStore();
  const open = (more: Partial<ClientSetup> = {}) => openClient(t, { url: server.url, store, keepsAll: true, ...more });
  const first = await open();
  await ask(first, server, "Hi");
  first.client.close();
  isDown = true;
  openTab(sessionStorage as unknown as TestStorage);
  const { client, until } = await open({ userToken: "ann", until: ({ phase }) => phase === "unreachable" });
  client.suspend();
  await client.returned();
  isDown = false;
  client.reconnect.retryNow();
  await until(({ session, isKnown }) => isKnown && session.messages.length === 2);
  openTab(new TestStorage());
  const there = await open();
  const [id = ""] = store.rows.keys();
  await there.client.keeper.show(id);
  await ask(there, server, "More");
  await until(({ session }) => session.messages.length === 4);
});

test("what the browser has cleared is stored again as soon as it goes on", async (t) => {
  const { server, store } = await chat(t);
  const here = await openClient(t, { url: server.url, store, keepsAll: true });
  await ask(here, server, "Hi");
  await here.client.keeper.stored;
  store.rows.clear();
  store.summaries.clear();
  assert.equal(await here.client.keeper.claim(), true);
  await ask(here, server, "Again");
  await here.client.keeper.stored;
  assert.equal(store.rows.size, 1);
});

const SOUND = [
  { type: "text", text: "Hi", continues: true },
  { type: "thinking", text: "Hm", startedAt: 1, endedAt: 2 },
  { type: "tool", callId: "c", tool: "look", title: { en: "Look" }, arguments: "{}", status: "waiting" },
] as const;
const [TEXT, THINKING, TOOL] = SOUND;

const DAMAGED_BLOCKS = [
  null,
  { ...TEXT, text: undefined },
  { ...THINKING, text: undefined },
  { ...THINKING, startedAt: "1" },
  { type: "tool" },
  ...["callId", "tool", "title", "arguments", "status", "output", "startedAt", "approval", "decision", "refused"].map(
    (field) => ({ ...TOOL, [field]: 7e30 }),
  ),
];

test("what is damaged of a conversation is never shown, and its blocks, messages and states are read as they are", async (t) => {
  const { server, store, first } = await chat(t);
  await ask(first, server, "Hi");
  const [stored] = store.rows.values();
  assert.ok(stored);
  const [question, answer] = stored.tree as [UserMessage, AssistantMessage];
  const of = (question: object, answer: object, more = {}) =>
    toRow({ ...stored, tree: [question, answer], ...more } as unknown as StoredConversation);
  assert.deepEqual(readBack(of(question, { ...answer, blocks: SOUND })).tree[1], { ...answer, blocks: SOUND });
  const damaged = [
    ...DAMAGED_BLOCKS.map((block) => of(question, { ...answer, blocks: [block] })),
    ...[
      { blocks: Array(1) },
      { suggestions: 7 },
      { at: "noon" },
      { status: "well" },
      { failure: {} },
      { parent: 7 },
    ].map((damage) => of(question, { ...answer, ...damage })),
    ...[null, 7, {}, { name: "a.png", mediaType: "toString" }].map((file) => ({
      ...toRow(stored),
      tree: [{ ...question, files: [file] }, answer],
    })),
    ...[{ text: undefined }, { id: 1 }, { at: 1e30 }, { parent: question.id }].map((it) =>
      of({ ...question, ...it }, answer),
    ),
    ...[undefined, {}, [null], Array(1)].map((tree) => ({ ...toRow(stored), tree })),
    ...[1, { m14: 5 }, { m2: { rest: null } }, { m2: { rest: {}, added: [null] } }].map((states) => ({
      ...toRow(stored),
      states,
    })),
    ...[{ head: "m9" }, { root: 1 }, { run: { run: 1 } }, { title: 7 }, { updatedAt: "x" }, { revision: "1" }].map(
      (damage) => ({ ...toRow(stored), ...damage }),
    ),
  ];
  for (const row of damaged) assert.equal(fromRow(row as unknown as Row), UNREADABLE, JSON.stringify(row));
});

test("states of earlier builds are read as they are", () => {
  const lines = readFileSync(new URL("../fixtures/stored/states.jsonl", import.meta.url), "utf8")
    .trim()
    .split("\n");
  for (const line of lines) {
    const root: ConversationState = JSON.parse(line).state;
    const states = { m2: storedState(root, undefined) };
    assert.deepEqual(readBack({ ...toRow(conversation(messages)), root, states }).root, root);
  }
});

test("where a conversation cannot be read, what is said is kept beside it, and so is what stood there already", async (t) => {
  const { server, store, reload, first } = await chat(t);
  await ask(first, server, "Hi");
  const [id = ""] = store.rows.keys();
  const load = store.load.bind(store);
  store.load = async (asked) => (asked === id ? UNREADABLE : load(asked));
  const second = await reload(first);
  assert.deepEqual([second.client.session.messages, second.client.keeper.unread], [[], UNREADABLE]);
  const third = await reload(second);
  assert.equal(third.client.keeper.unread, UNREADABLE, "as long as nothing is said");
  const texts = () => [...store.rows.values()].map(({ tree }) => textsOf(tree));
  await ask(third, server, "Again");
  await third.client.keeper.stored;
  assert.deepEqual(texts(), [
    ["Hi", "ok"],
    ["Again", "ok"],
  ]);
  assert.deepEqual([third.client.keeper.isNotKept, third.client.keeper.unread], [false, undefined]);
  // It is damaged while it is shown.
  store.load = async () => UNREADABLE;
  await third.client.keeper.reload();
  await ask(third, server, "More");
  await third.client.keeper.stored;
  assert.deepEqual(texts().at(-1), ["Again", "ok", "More", "ok"]);
  assert.equal(store.rows.size, 3);
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
  store.load = () => Promise.reject(new Error("IndexedDB does not answer"));
  const fourth = await reload(third);
  store.load = load;
  await ask(fourth, server, "Again");
  await fourth.client.keeper.stored;
  assert.deepEqual(
    [...store.rows.values()].map(({ tree }) => textsOf(tree)),
    [
      ["Hi", "ok"],
      ["Again", "ok"],
    ],
  );
});

test("a row of another version is ignored", () => {
  const row = toRow(conversation(messages));
  assert.deepEqual(readBack(row).tree.length, 4);
  for (const version of [2, 6, "5", "constructor"]) assert.equal(fromRow({ ...row, version } as Row), UNREADABLE);
});

const lost = [
  {
    what: "decisions",
    end: "approval_required",
    goOn: (session: ChatSession) => session.decide([{ id: "1", approved: true }]),
    body: { approvals: [{ id: "1", approved: true }] },
  },
  {
    what: "a wish to go on",
    end: "length",
    goOn: (session: ChatSession) => session.continue(),
    body: { continue: true },
  },
] as const;

for (const { what, end, goOn, body } of lost) {
  test(`${what} that a page could not send before it was left is sent by the next one, under the same name`, async (t) => {
    const { server, store, reload, first } = await chat(t);
    const { ended } = first.client.session.send(text("Pay"));
    const approval = { id: "1", tool: "pay", arguments: "{}", text: "Pay?", expires_at: "2026-01-01T00:00:00Z" };
    (await server.turn()).send(
      { type: "tool_approval", data: approval } as unknown as StreamEvent,
      { ...done("", { previous_response_id: "open" }), finish_reason: end } as unknown as StreamEvent,
    );
    await ended;
    goOn(first.client.session);
    const turn = await server.turn();
    turn.forget();
    store.isFrozen = true;
    const second = await reload(first);
    const again = await server.turn();
    assert.deepEqual(again.body, turn.body);
    assert.deepEqual({ ...again.body, ...body, message: "", state: { previous_response_id: "open" } }, again.body);
    again.send(token("Paid."), done("Paid."));
    await second.until(({ session }) => !session.busy);
    assert.deepEqual(textsOf(second.client.session.messages), ["Pay", "tool Paid."]);
  });
}

test("a database that opens too late is closed: nobody would use it", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let isClosed = false;
  const close = () => {
    isClosed = true;
  };
  const opening = { result: { close }, onsuccess: () => {} };
  Object.assign(globalThis, { indexedDB: { open: () => opening } });
  t.after(() => Reflect.deleteProperty(globalThis, "indexedDB"));
  const loading = new IndexedDbStore(new URL("https://chat.example/")).list();
  t.mock.timers.tick(3_000);
  await assert.rejects(loading, /does not answer/);
  opening.onsuccess();
  await new Promise(setImmediate);
  assert.equal(isClosed, true);
});

test("a tab that has gone keeps a conversation for seconds at most, also after the clock was set back", () => {
  const of = (until: number) => {
    const stored = {
      id: "c",
      agent: "",
      kept: "browser",
      updatedAt: 0,
      revision: 1,
      title: "",
      isRunning: true,
      size: 0,
    } as const;
    return mayWrite({ ...stored, writer: "gone", until: Date.now() + until }, { writer: "here", revision: 1 });
  };
  assert.deepEqual([-1, LEASE_MS / 2, LEASE_MS + 60_000].map(of), [true, false, true]);
});
