/** Conversations survive page loads: which one a chat gets, what it reports again, and what is deleted. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { beforeEach, type TestContext, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import type { ContentPart, ConversationState, HistoryMessage } from "../../server/protocol/chat.ts";
import type { StreamEvent } from "../../server/protocol/events.ts";
import { storedState } from "../../widget/conversations/branch-states.ts";
import type { ChatSession } from "../../widget/conversations/chat-session.ts";
import {
  type Conversation,
  conversationOf,
  knowsState,
  lastAnswerOf,
  type OutgoingMessage,
  stateAt,
  stateOf,
} from "../../widget/conversations/conversation.ts";
import { open, ROWS, settled } from "../../widget/conversations/idb.ts";
import { IndexedDbStore } from "../../widget/conversations/indexed-db.ts";
import type { Library } from "../../widget/conversations/library.ts";
import type { AssistantMessage, Message, UserMessage } from "../../widget/conversations/messages.ts";
import { OpenConversation } from "../../widget/conversations/open-conversation.ts";
import { fold, merged, type Operation } from "../../widget/conversations/operations.ts";
import { fromRow, migrated } from "../../widget/conversations/read-row.ts";
import {
  entryOf,
  type Row,
  rowOf,
  type StoredConversation,
  type Summary,
  summaryOf,
  UNREADABLE,
} from "../../widget/conversations/row.ts";
import { shrink } from "../../widget/conversations/shrink.ts";
import type { ConversationStore } from "../../widget/conversations/store.ts";
import { gate, turns, within } from "../support/deadline.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { TestStorage } from "./browser-stubs.ts";
import {
  type ClientSetup,
  keptAt,
  lastAnswer,
  openClient,
  queuedIds,
  sendQueuedOf,
  type TestClient,
  text,
  textsOf,
} from "./chat-client.ts";
import { done, type ScriptedServer, startScriptedServer, token } from "./scripted-server.ts";

beforeEach(() => {
  localStorage.clear();
  openTab(new TestStorage());
});

/** Makes this storage the current tab's. */
function openTab(storage: object): void {
  Object.assign(globalThis, { sessionStorage: storage });
}

/** A page's access to the browser's database, which a test can disturb. */
class TestStore extends IndexedDbStore {
  /** Simulates that the page ends before its writes complete. */
  isFrozen = false;
  /** Number of writes. */
  writes = 0;
  /** Writes made when the page was left. */
  readonly appended: Promise<void>[] = [];

  override async update(...[id, clock, change, makeRoom]: Parameters<ConversationStore["update"]>): Promise<void> {
    if (this.isFrozen) await new Promise<never>(() => {});
    const count = (found: Parameters<typeof change>[0]) => {
      const made = change(found);
      if (made && made !== "unread") this.writes += 1;
      return made;
    };
    await super.update(id, clock, count, makeRoom);
  }

  override async append(...given: Parameters<ConversationStore["append"]>): Promise<void> {
    if (this.isFrozen) await new Promise<never>(() => {});
    this.writes += 1;
    const appended = super.append(...given);
    this.appended.push(appended);
    await appended;
  }

  /** Delays all writes but the next `spared` ones. `asked` resolves when a write is delayed. */
  hold(spared = 0) {
    const [held, asked] = [gate(), gate()];
    let left = spared;
    this.update = async (...given) => {
      if (left-- <= 0) {
        asked.open();
        await held.opened;
      }
      return TestStore.prototype.update.call(this, ...given);
    };
    return { asked: within(asked.opened, "something to be written"), open: held.open };
  }

  /** Stores a row, as another page would have done. */
  async put(row: StoredConversation, summary: Partial<Summary> = {}): Promise<void> {
    const { id, clock, updatedAt } = row;
    const known = { ...summaryOf(id, conversationOf(row), ownerOf(row), clock), updatedAt, ...summary };
    await super.append({ row: { ...toRow(row), updatedAt }, summary: known });
  }
}

const ownerOf = ({ agent, user, kept }: StoredConversation) => ({ agent, kept, ...(user !== undefined && { user }) });

const toRow = (stored: StoredConversation): Row =>
  rowOf(stored.id, conversationOf(stored), ownerOf(stored), stored.clock);

/** The conversation that a page load reads from a row. */
function readBack(row: Row): StoredConversation {
  const read = fromRow(structuredClone(row));
  assert.ok(read !== UNREADABLE, "it can be read");
  return read;
}

type TestPage = TestClient & { readonly store: TestStore };

async function openPage(t: TestContext, url: string, more: Partial<ClientSetup> = {}): Promise<TestPage> {
  const store = new TestStore(new URL(url));
  return { store, ...(await openClient(t, { url, store, ...more })) };
}

async function chat(t: TestContext) {
  const server = await startScriptedServer(t);
  const open = (id = "") => openPage(t, server.url, { id });
  /** Leaves the page and loads it again. */
  const reload = (left: TestClient) => {
    left.client.suspend();
    return open();
  };
  const first = await open();
  const kept = () => keptAt(server.url);
  return { server, kept, open, reload, first, store: first.store };
}

async function ask({ client }: TestClient, server: ScriptedServer, message: string, answer = "ok"): Promise<void> {
  const { session } = client;
  const sent = session.send(text(message));
  (await server.turn()).send(done(answer, { previous_response_id: `after ${message}` }));
  await (await sent).ended;
  await session.conversation.stored;
}

/** The texts of the current branch of each stored conversation. */
const textsAt = async (url: string) => (await keptAt(url)).map((it) => textsOf(conversationOf(it).messages)).toSorted();

test("after a reload the conversation is there with its draft, and goes on", async (t) => {
  const { server, reload, first, kept } = await chat(t);
  await ask(first, server, "Hi", "Hello");
  first.client.library.saveDraft({ text: "Half a thou", files: ["dot.png"] });
  const second = await reload(first);
  assert.deepEqual(textsOf(second.client.session.messages), ["Hi", "Hello"]);
  assert.deepEqual(second.drafts, [{ text: "Half a thou", files: ["dot.png"] }]);
  const sent = second.client.session.send(text("More"));
  const turn = await server.turn();
  assert.deepEqual(turn.body.state, { previous_response_id: "after Hi" });
  turn.send(done("ok"));
  await (await sent).ended;
  assert.equal((await kept()).length, 1);
});

test("each conversation has its own draft, also a new one, and after a reload", async (t) => {
  const { server } = await chat(t);
  const here = await openPage(t, server.url, { keepsAll: true });
  const { library } = here.client;
  library.saveDraft({ text: "Of the new one", files: [] });
  library.saveDraft({ text: "", files: [] });
  await ask(here, server, "Hi");
  const id = library.shownId;
  library.saveDraft({ text: "Of the first", files: [] });
  await library.show(undefined);
  library.saveDraft({ text: "Of another", files: [] });
  await library.show(id);
  await library.show(undefined);
  here.client.suspend();
  const again = await openPage(t, server.url, { keepsAll: true });
  await again.client.library.show(id);
  const texts = [...here.drafts, ...again.drafts].map((draft) => draft.text);
  assert.deepEqual(texts, ["", "Of the first", "Of another", "Of another", "Of the first"]);
});

test("a tab whose draft is damaged shows its conversation, without the draft", async (t) => {
  const { server, open, first } = await chat(t);
  await ask(first, server, "Hi", "Hello");
  let last = first;
  const id = `${first.client.library.shownId}`;
  for (const draft of [undefined, null, 7, { text: "Half" }, { files: [], edit: {} }]) {
    for (const damage of [
      { drafts: { [id]: draft } },
      { drafts: draft },
      { drafts: undefined, draft },
      { edit: draft },
    ]) {
      last.client.suspend();
      const [name = ""] = Object.keys(sessionStorage);
      sessionStorage.setItem(name, JSON.stringify({ ...JSON.parse(sessionStorage.getItem(name) ?? ""), ...damage }));
      last = await open();
      assert.deepEqual(textsOf(last.client.session.messages), ["Hi", "Hello"], JSON.stringify(damage));
      const written = last.drafts.filter((it) => it.text !== "" || it.edit);
      assert.deepEqual(written, [], JSON.stringify(damage));
    }
  }
  const written = { text: "Half", files: [] };
  const damaged = { id, user: "", draft: { ...written, edit: {} } };
  last.client.suspend();
  sessionStorage.setItem(Object.keys(sessionStorage)[0] ?? "", JSON.stringify(damaged));
  assert.deepEqual((await open()).drafts, [written], "without the message that was being changed");
});

test("a draft that an earlier version of the chat has kept in the tab is there", async (t) => {
  const { server, open, first } = await chat(t);
  await ask(first, server, "Hi", "Hello");
  first.client.suspend();
  const [name = ""] = Object.keys(sessionStorage);
  const { drafts: _, ...slot } = JSON.parse(sessionStorage.getItem(name) ?? "");
  const draft = { text: "Half a thou", files: [] };
  sessionStorage.setItem(name, JSON.stringify({ ...slot, draft }));
  assert.deepEqual((await open()).drafts, [draft]);
});

test("a draft is kept without writing the conversation again", async (t) => {
  const { server, reload, first, store } = await chat(t);
  await ask(first, server, "Hi", "Hello");
  const { writes } = store;
  first.client.library.saveDraft({ text: "Half", files: [] });
  first.client.library.save();
  first.client.library.saveDraft({ text: "Half a thou", files: [] });
  const second = await reload(first);
  assert.deepEqual(second.drafts, [{ text: "Half a thou", files: [] }]);
  await first.client.library.stored;
  await second.client.library.stored;
  assert.deepEqual([store.writes, second.store.writes], [writes, 0]);
});

test("a chat that is removed from the page goes on with its conversation when it returns", async (t) => {
  const { server, first, kept } = await chat(t);
  await ask(first, server, "Hi");
  first.client.close();
  first.client.open(true);
  await first.client.library.restored;
  await ask(first, server, "More");
  assert.deepEqual(
    (await kept()).map(({ tree }) => textsOf(tree)),
    [["Hi", "ok", "More", "ok"]],
  );
});

test("a chat that comes before the one of an earlier view has left shows its conversation, and goes on with its answer", async (t) => {
  const { server, first, open } = await chat(t);
  await ask(first, server, "Hi");
  void first.client.session.send(text("More"));
  const turn = await server.turn();
  turn.send(token("Half "));
  await first.until((it) => lastAnswer(it)?.blocks.length === 1);
  await first.client.library.stored;
  // Reports are stored with the next change of the tab.
  first.client.library.save();
  const second = await open();
  await second.until((it) => lastAnswer(it)?.blocks.length === 1);
  assert.deepEqual(textsOf(second.client.session.messages), ["Hi", "ok", "More", "Half "]);
  first.client.close();
  await turn.gone;
  turn.send(token("of it"), done("Half of it"));
  await second.until(({ session }) => !session.busy);
  assert.deepEqual(textsOf(second.client.session.messages), ["Hi", "ok", "More", "Half of it"]);
  assert.deepEqual(second.reports, ["m4 of it", "m4 done"], "what the first has reported is not reported again");
  await second.client.library.stored;
  assert.deepEqual(await textsAt(server.url), [["Hi", "ok", "More", "Half of it"]]);
});

test("a chat that comes back before the one in its place has left shows what was said there", async (t) => {
  const { server, first, open } = await chat(t);
  await ask(first, server, "Hi");
  first.client.close();
  const second = await open();
  await ask(second, server, "More");
  first.client.open(true);
  await first.until(({ session }) => session.messages.length === 4);
  assert.deepEqual(textsOf(first.client.session.messages), ["Hi", "ok", "More", "ok"]);
  second.client.close();
  await ask(first, server, "And more");
  assert.deepEqual(await textsAt(server.url), [["Hi", "ok", "More", "ok", "And more", "ok"]]);
});

test("a draft with files is there when the chat returns, and none of them is called lost", async (t) => {
  const { first } = await chat(t);
  first.client.library.saveDraft({ text: "See", files: ["dot.png"] });
  first.drafts.length = 0;
  first.client.close();
  first.client.open(true);
  await first.client.library.restored;
  assert.deepEqual(first.drafts, []);
});

test("an answer that was stopped while the chat was out of the page is kept as stopped", async (t) => {
  const { server, first, kept } = await chat(t);
  void first.client.session.send(text("Hi"));
  const turn = await server.turn();
  turn.send(token("Half"));
  await first.until((it) => lastAnswer(it)?.blocks.length === 1);
  first.client.close();
  await turn.gone;
  first.client.session.stop();
  await first.until(({ session }) => !session.busy);
  first.client.open(true);
  await first.client.library.restored;
  await first.client.library.stored;
  assert.deepEqual(
    (await kept()).map(({ run, tree }) => [run, textsOf(tree)]),
    [[undefined, ["Hi", "Half"]]],
  );
});

test("a message is stored as soon as it is sent, and a page that is loaded after a crash shows it", async (t) => {
  const { first, kept, open } = await chat(t);
  await first.client.session.send(text("Hi"));
  await first.client.library.stored;
  const [row] = await kept();
  assert.deepEqual(textsOf(row?.tree ?? []).slice(0, 1), ["Hi"]);
  assert.equal(row?.run?.after, 0);
  assert.deepEqual(textsOf((await open()).client.session.messages).slice(0, 1), ["Hi"]);
});

test("what was written for a new conversation is its draft once that has begun, and none of the next one", async (t) => {
  const { server, first, reload } = await chat(t);
  first.client.library.saveDraft({ text: "Half a thou", files: [] });
  await first.client.session.addOfPage({ text: "A note" });
  const second = await reload(first);
  assert.deepEqual(second.drafts, [{ text: "Half a thou", files: [] }]);
  await ask(second, server, "Half a thought");
  second.client.library.saveDraft({ text: "", files: [] });
  await second.client.library.show(undefined);
  assert.deepEqual(second.drafts.at(-1), { text: "", files: [] });
  second.client.library.saveDraft({ text: "Another", files: [] });
  await ask(second, server, "Another");
  second.client.library.saveDraft({ text: "", files: [] });
  await second.client.library.show(undefined);
  assert.deepEqual(second.drafts.at(-1), { text: "", files: [] });
  const third = await reload(second);
  assert.deepEqual(
    third.drafts.filter((it) => it.text !== ""),
    [],
  );
});

test("a reload while an answer comes writes nothing that it already has, and leaves its conversation in its place of the list", async (t) => {
  const { server, first, reload, store } = await chat(t);
  void first.client.session.send(text("Hi"));
  const turn = await server.turn();
  turn.send(token("Half"));
  await first.until((it) => lastAnswer(it)?.blocks.length === 1);
  await first.client.library.stored;
  first.client.suspend();
  await first.client.library.stored;
  const before = await store.list();
  const { client } = await reload(first);
  assert.equal(await server.control(), "resume");
  await client.library.stored;
  assert.deepEqual(await store.list(), before);
});

test("an answer goes on after a reload, and events that the last page has reported are not reported again", async (t) => {
  const { server, store, reload, first } = await chat(t);
  const call: StreamEvent = {
    type: "tool_call",
    data: { id: "1", tool: "look", arguments: "{}", status: "running" },
  };
  await first.client.session.send(text("Hi"));
  const turn = await server.turn();
  await first.client.library.stored;
  // Simulates leaving the page before the browser has written the rest.
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

test("chats of one page with different ids keep and forget a conversation each", async (t) => {
  const { server, open, first } = await chat(t);
  const second = await open("two");
  await ask(first, server, "I am one");
  await ask(second, server, "I am two");
  first.client.suspend();
  second.client.suspend();
  // The second chat opens first this time.
  const again = await open("two");
  assert.deepEqual(textsOf(again.client.session.messages), ["I am two", "ok"]);
  const plain = await open();
  assert.deepEqual(textsOf(plain.client.session.messages), ["I am one", "ok"]);
  assert.deepEqual(await textsAt(server.url), [
    ["I am one", "ok"],
    ["I am two", "ok"],
  ]);
  await again.client.library.reset();
  assert.deepEqual(await textsAt(server.url), [["I am one", "ok"]]);
  assert.deepEqual(textsOf(plain.client.session.messages), ["I am one", "ok"]);
});

/** Simulates "Duplicate tab": the new tab starts with a copy of this tab's storage. */
function duplicateTab(): { original: object } {
  const original = sessionStorage;
  openTab(Object.assign(new TestStorage(), original));
  return { original };
}

test("a tab that was duplicated shows the same conversation, and what either of them says is seen in both", async (t) => {
  const { server, open, first } = await chat(t);
  await ask(first, server, "Both know this");
  const { original } = duplicateTab();
  const copy = await open();
  assert.deepEqual(textsOf(copy.client.session.messages), ["Both know this", "ok"]);
  await ask(copy, server, "By the copy");
  openTab(original);
  await first.until(({ session }) => session.messages.length === 4 && !session.busy);
  await ask(first, server, "By the first");
  await copy.until(({ session }) => session.messages.length === 6 && !session.busy);
  const all = ["Both know this", "ok", "By the copy", "ok", "By the first", "ok"];
  for (const { client } of [first, copy]) assert.deepEqual(textsOf(client.session.messages), all);
  assert.deepEqual(await textsAt(server.url), [all]);
});

test("a duplicated tab that begins a new conversation takes none away from the original", async (t) => {
  const { server, open, reload, first } = await chat(t);
  await ask(first, server, "Hi");
  const shown = await reload(first);
  const { original } = duplicateTab();
  const copy = await open();
  await copy.client.library.reset();
  await turns();
  assert.deepEqual(copy.client.session.messages, []);
  openTab(original);
  assert.deepEqual(textsOf(shown.client.session.messages), ["Hi", "ok"]);
  const again = await reload(shown);
  assert.deepEqual(textsOf(again.client.session.messages), ["Hi", "ok"]);
  assert.deepEqual(await textsAt(server.url), [["Hi", "ok"]]);
});

test("conversations are deleted after a day without a change, and no others", async (t) => {
  const { server, kept, store } = await chat(t);
  const day = 24 * 60 * 60_000;
  const row = { ...conversation(messages), agent: "", kept: "tab" } as const;
  await store.put({ ...row, id: "old", updatedAt: Date.now() - day - 1 });
  await store.put({ ...row, id: "young", updatedAt: Date.now() - day + 60_000 });
  const purging = new TestStore(new URL(server.url));
  const deleted = gate();
  purging.delete = async (id) => {
    await TestStore.prototype.delete.call(purging, id);
    deleted.open();
  };
  await openPage(t, server.url, { id: "two", store: purging });
  await within(deleted.opened, "the deletion");
  assert.deepEqual(
    (await kept()).map(({ id }) => id),
    ["young"],
  );
});

test("a tab in which nothing is said for long is not taken for one that was closed, as long as it is looked at", async (t) => {
  const { server, first, kept, store } = await chat(t);
  await ask(first, server, "Hi");
  const day = 24 * 60 * 60_000;
  const now = Date.now();
  for (const [looks, at] of [
    ["save", now + 0.9 * day],
    ["suspend", now + 1.8 * day],
  ] as const) {
    t.mock.method(Date, "now", () => at);
    first.client.library[looks]();
    await Promise.all([first.client.library.stored, ...store.appended]);
    t.mock.method(Date, "now", () => at + 0.2 * day);
    const other = await openPage(t, server.url, { id: looks });
    await other.client.library.purge("");
    assert.equal((await kept()).length, 1, looks);
  }
});

test("a new conversation, and a chat that is to keep nothing, leave nothing behind", async (t) => {
  const { server, first, kept } = await chat(t);
  await ask(first, server, "Hi");
  assert.equal((await kept()).length, 1);
  await first.client.library.reset();
  assert.equal((await kept()).length, 0);
  await ask(first, server, "Again");
  assert.equal((await kept()).length, 1);
  first.client.library.saveDraft({ text: "And more", files: [] });
  await first.client.library.erase();
  assert.equal((await kept()).length, 0);
  assert.deepEqual(Object.keys(sessionStorage), []);
  await ask(first, server, "Not kept");
  assert.equal((await kept()).length, 0);
});

test("a page that is shown again has what was said on another one meanwhile", async (t) => {
  const { server, open, first, reload } = await chat(t);
  await ask(first, server, "First");
  const second = await reload(first);
  await ask(second, server, "Second");
  second.client.suspend();
  first.client.library.resume();
  await first.client.library.restored;
  await first.client.library.stored;
  assert.deepEqual(textsOf(first.client.session.messages), ["First", "ok", "Second", "ok"]);
  first.client.suspend();
  const third = await open();
  await third.client.library.reset();
  third.client.suspend();
  first.client.library.resume();
  await first.client.library.restored;
  await first.client.library.stored;
  assert.equal(first.client.session.messages.length, 0);
  assert.deepEqual(await textsAt(server.url), []);
});

test("a conversation that is still being stored does not come back after it was deleted", async (t) => {
  const { server, store, first, kept } = await chat(t);
  const held = store.hold();
  const sent = first.client.session.send(text("Hi"));
  (await server.turn()).send(done("ok"));
  await (await sent).ended;
  const reset = first.client.library.reset();
  assert.equal(first.client.session.messages.length, 0);
  held.open();
  await reset;
  await turns();
  assert.equal((await kept()).length, 0);
});

test("a save that fails late leaves what a later one has stored", async (t) => {
  const { server, store, first, kept } = await chat(t);
  const held = gate();
  store.update = async () => {
    Reflect.deleteProperty(store, "update");
    await held.opened;
    throw new DOMException("full", "QuotaExceededError");
  };
  const sent = first.client.session.send(text("Hi"));
  (await server.turn()).send(done("ok"));
  await (await sent).ended;
  held.open();
  await first.client.library.stored;
  assert.deepEqual([(await kept()).length, first.client.library.isNotKept], [1, false]);
  assert.deepEqual(await textsAt(server.url), [["Hi", "ok"]]);
});

test("the conversation with another agent at the same address is not shown", async (t) => {
  const { server, store, reload, first, kept } = await chat(t);
  await ask(first, server, "Hi");
  first.client.suspend();
  for (const row of await kept()) await store.put({ ...row, agent: "Another" });
  const second = await reload(first);
  assert.equal(second.client.session.messages.length, 0);
});

test("where the store has no room the chat says so, and works", async (t) => {
  const { server, store, first } = await chat(t);
  let isFull = true;
  store.update = async (...given) => {
    if (isFull) throw new DOMException("full", "QuotaExceededError");
    return TestStore.prototype.update.call(store, ...given);
  };
  await ask(first, server, "Hi");
  await first.until(({ library }) => library.isNotKept);
  isFull = false;
  await ask(first, server, "Again");
  await first.until(({ library }) => !library.isNotKept);
  assert.deepEqual(await textsAt(server.url), [["Hi", "ok", "Again", "ok"]]);
});

for (const [where, store] of [
  ["nothing is kept", undefined],
  ["the store has no room", { update: () => Promise.reject(new DOMException("full", "QuotaExceededError")) }],
] as const) {
  test(`where ${where}, a long answer takes no more time for each of its pieces than a short one`, () => {
    const timeOf = (pieces: number) => {
      const open = new OpenConversation({
        store: () => store as unknown as ConversationStore,
        owner: () => ({ agent: "", kept: "tab" }),
        makeRoom: async () => false,
        onAppend: () => {},
      });
      const [run, at] = ["r", 1];
      open.change({ type: "ask", message: { text: "Hi", files: [] }, run, at });
      const from = performance.now();
      for (let id = 1; id <= pieces; id += 1) {
        open.change({ type: "event", event: { type: "token", data: "a ", id }, run, reference: run, at });
      }
      open.endStoring();
      return performance.now() - from;
    };
    const short = timeOf(2_000);
    const long = timeOf(20_000);
    assert.ok(long < 50 * short, `${long} ms for ten times as much as in ${short} ms`);
  });
}

/** A conversation with messages of one branch, in order, with the state after the last one. */
const conversation = (tree: readonly Message[], state: ConversationState = {}): StoredConversation => ({
  id: "c",
  agent: "Concierge",
  kept: "tab",
  updatedAt: 1,
  clock: 1,
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

/** The conversation that a page load makes of a stored one. */
function restored(stored: StoredConversation, maxChars = 10_000): Conversation {
  return conversationOf(readBack(toRow(shrink(stored, maxChars))));
}

test("a stored conversation keeps its newest messages, and of their files name, type and size", () => {
  const short = restored(conversation(messages), 400);
  assert.deepEqual([short.isCut, short.messages.map(({ id }) => id)], [true, ["m3", "m4"]]);
  const [seen] = short.messages;
  assert.deepEqual(seen?.role === "user" && seen.files, [{ name: "dot.png", mediaType: "image/png", size: 1 }]);
  assert.deepEqual(stateAt(short, "m3"), { conversation: "c2" });
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
    assert.deepEqual([stateOf(read), read.root], [left[index], left[index]]);
  }
});

test("where an earlier build could not store a state with files, the last answer says that the agent has forgotten it", () => {
  const stored = { ...conversation(messages), states: { m4: null } };
  // Messages added by the page after it have no state, either.
  const note: Message = { role: "page", id: "m5", parent: "m4", text: "Note", at: 0 };
  for (const row of [
    stored,
    { ...stored, root: null, states: {} },
    { ...stored, tree: [...stored.tree, note], head: "m5" },
  ]) {
    const read = restored(row);
    assert.deepEqual([stateOf(read), lastAnswerOf(read)?.id, lastAnswerOf(read)?.forgotten], [{}, "m4", true]);
  }
  assert.equal(knowsState(restored({ ...stored, root: null, states: {} }), messages[2] as UserMessage), false);
});

test("the size of a conversation is that of its messages and of its states together", () => {
  const state = { conversation_history: [{ role: "assistant", content: "z".repeat(5_000) }] } as ConversationState;
  const sizeOf = (stored: StoredConversation) => summaryOf("c", conversationOf(stored), ownerOf(stored), 1).size;
  const alone = sizeOf(conversation(messages));
  assert.ok(alone > 800 && alone < 2_000);
  assert.ok(sizeOf(conversation(messages, state)) > alone + 5_000);
  assert.ok(sizeOf({ ...conversation(messages), root: state }) > alone + 5_000);
});

/** An event of the answer in progress. */
const received = (event: object): Operation => ({
  type: "event",
  event: event as Extract<Operation, { type: "event" }>["event"],
  run: "r",
  reference: "r",
  at: 9,
});

test("while an answer comes it is stored without the rest of its conversation, in few pieces, and read with it", () => {
  const answer = { ...(messages[3] as AssistantMessage), status: "streaming" } as const;
  const stored = conversation([...messages.slice(0, 3), answer]);
  const written = conversationOf({ ...stored, run: { run: "r", after: 1, answer: "m4" } });
  const operations = [" it", " all", ", and", " more"].map((data, index) =>
    received({ type: "token", data, id: index + 2 }),
  );
  const own = operations.map((operation, index) => ({ writer: "here", number: index + 1, operation }));
  const now = fold(written, own);
  assert.deepEqual(textsOf(now.messages).at(-1), "Seen it all, and more");
  const entries = merged(written, own).map((it) => entryOf("c", 2, it));
  assert.equal(entries.length, 1);
  assert.ok(JSON.stringify(entries).length < 400);
  const read = (row: Conversation) => fold(row, structuredClone(entries));
  const rowOfAll = (it: Conversation) => ({ ...rowOf("c", it, ownerOf(stored), 1), updatedAt: 1 });
  assert.deepEqual(rowOfAll(read(conversationOf(readBack(rowOfAll(written))))), rowOfAll(now));
  assert.deepEqual(
    rowOfAll(read(conversationOf(readBack(rowOfAll(now))))),
    rowOfAll(now),
    "a row has all of it already",
  );
  assert.deepEqual(merged(now, own), [], "another tab has stored them");
});

test("what stands behind a row is read in the order in which it happened, however much it is", () => {
  const names = Array.from({ length: 120 }, (_, number) => `${number}`);
  const entries = names.map((name, number) =>
    entryOf("c", Math.floor(number / 11), { writer: "here", number, operation: { type: "rename", name } }),
  );
  const sorted = entries.toSorted((one, other) => (one.id < other.id ? -1 : 1));
  assert.deepEqual(sorted, entries);
});

/** A conversation stored by an older version, which stored the answer in progress and the queue in separate rows. */
const VERSION_5 = { ...toRow(conversation(messages)), version: 5, revision: 2, run: { run: "r", after: 1 } };
const read5 = (row: object, ...beside: [answer?: object, queue?: object]) => {
  const { clock: _, queued: __, count: ___, ...older } = { ...VERSION_5, ...row };
  const [answer, queue] = beside;
  return readBack(migrated(structuredClone(older) as unknown as Row, answer, queue));
};

test("an answer that an older version of the chat had received a part of goes on from there", () => {
  const longer = { ...VERSION_5.tree[3], blocks: [{ type: "text", text: "Seen it all" }] };
  const answer = { id: "c answer", revision: 3, run: { run: "r", after: 9 }, answer: longer };
  const read = read5({}, answer);
  assert.deepEqual(read.run, { run: "r", after: 9, answer: "m4" });
  assert.deepEqual(textsOf(read.tree).at(-1), "Seen it all");
  assert.deepEqual(textsOf(read.tree).slice(0, 3), textsOf(messages.slice(0, 3)));
  const later = read5({ revision: 3 }, answer);
  assert.deepEqual([later.run?.after, textsOf(later.tree).at(-1)], [1, "Seen"], "a later row has all of it");
  const damaged = read5({}, { ...answer, answer: { ...longer, blocks: 7 } });
  assert.deepEqual(damaged.run, { run: "r", after: 1, answer: "m4" });
  assert.equal(textsOf(damaged.tree).at(-1), "Seen", "what is damaged takes nothing with it");
  assert.equal(read5({ run: undefined }).run, undefined);
  const inAnotherBranch = { tree: [...VERSION_5.tree.slice(0, 2), { ...VERSION_5.tree[1], id: "m6" }], head: "m2" };
  assert.equal(read5({ ...inAnotherBranch, states: {} }).run?.answer, "m2");
  const rows = [{ tree: [null] }, { tree: 7 }, { tree: [{ ...VERSION_5.tree[0], pending: 7 }] }, { head: 7 }];
  for (const row of rows) {
    const older = { ...VERSION_5, ...row } as unknown as Row;
    assert.equal(fromRow(migrated(older, undefined, undefined)), UNREADABLE, JSON.stringify(row));
  }
});

test("what was queued in an older version of the chat still is, and what it had sent is not sent again", () => {
  const queued = [
    { id: "p1", text: "x", files: [] },
    { id: "p2", text: "Not sent", files: [], isHeld: true },
    { id: "p3", files: [] },
    null,
  ];
  // The page ended before it could remove the message from the queue.
  const tree = VERSION_5.tree.map((it) => (it.id === "m1" ? { ...it, pending: ["p1"] } : it));
  const read = read5({ tree }, undefined, { id: "c", pending: queued });
  assert.deepEqual(read.queued, [queued[1]]);
  const [question] = read.tree;
  assert.deepEqual(question?.role === "user" && question.queued, ["p1"]);
  assert.deepEqual(read5({}).queued, []);
});

test("a conversation that another tab deletes in the middle of its answer is not stored again", async (t) => {
  const { server, kept } = await chat(t);
  const open = () => openPage(t, server.url, { keepsAll: true });
  const here = await open();
  await here.client.session.send(text("Hi"));
  const turn = await server.turn();
  turn.send({ type: "token", data: "Half" });
  await here.until((it) => lastAnswer(it)?.blocks.length === 1);
  await here.client.library.stored;
  openTab(new TestStorage());
  const all = await (await open()).client.library.all();
  const [summary] = (await all?.list()) ?? [];
  const { conversation } = here.client.session;
  const bringBack = await all?.remove(summary?.id ?? "");
  await here.until(({ session }) => session.messages.length === 0);
  turn.send(done("Half and all"));
  await conversation.stored;
  await turns();
  assert.deepEqual(await kept(), []);
  await bringBack?.();
  assert.equal((await kept()).length, 1);
});

/** Opens a conversation of the library in two tabs. */
async function inTwoTabs({ server, first }: Awaited<ReturnType<typeof chat>>, t: TestContext) {
  first.client.close();
  const open = () => openPage(t, server.url, { keepsAll: true });
  const here = await open();
  await ask(here, server, "Hi");
  openTab(new TestStorage());
  const there = await open();
  const id = `${here.client.library.shownId}`;
  await there.client.library.show(id);
  return { here, there, id, open };
}

/** The stored conversation with this id. */
async function keptAs(url: string, id: string): Promise<StoredConversation> {
  const row = (await keptAt(url)).find((it) => it.id === id);
  assert.ok(row, `${id} is kept`);
  return row;
}

test("what was deleted to make room is kept by the tab that shows it, also if it closes at once", async (t) => {
  const parts = await chat(t);
  const { here, there, id } = await inTwoTabs(parts, t);
  await there.store.delete(id);
  const { library } = there.client;
  const isGone = new Promise<void>((resolve) => library.listeners.add(resolve));
  here.client.library.post({ id, isGone: "unlessShown" });
  await within(isGone, "the news");
  there.client.close();
  here.client.close();
  await there.client.library.stored;
  assert.deepEqual(await textsAt(parts.server.url), [["Hi", "ok"]]);
});

const ratingOf = ({ session }: TestClient["client"]) =>
  session.messages.flatMap((it) => (it.role === "assistant" && it.feedback ? [it.feedback.rating] : []));

function rate({ client: { session } }: TestClient, at: number, rating: "up" | "down"): void {
  const message = session.messages[at];
  assert.equal(message?.role, "assistant");
  session.rate({ ...message, feedback: { rating } });
}

test("a rating in one tab is seen in the other, also while an answer comes, and no later save of it takes the rating away", async (t) => {
  const parts = await chat(t);
  const { here, there, id } = await inTwoTabs(parts, t);
  rate(here, 1, "up");
  await there.until((it) => ratingOf(it).join() === "up");
  const sent = there.client.session.send(text("More"));
  const turn = await parts.server.turn();
  await here.until(({ session }) => session.messages.length === 4);
  rate(here, 1, "down");
  await there.until((it) => ratingOf(it).join() === "down");
  turn.send(done("ok"));
  await (await sent).ended;
  await here.until(({ session }) => !session.busy);
  rate(here, 3, "up");
  await there.until((it) => ratingOf(it).join() === "down,up");
  await here.client.library.stored;
  const { tree } = await keptAs(parts.server.url, id);
  assert.deepEqual(
    tree.flatMap((it) => (it.role === "assistant" ? [it.feedback?.rating] : [])),
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
  const sent = here.client.session.send(text("Pay both"));
  (await parts.server.turn()).send(asks("1"), asks("2"), {
    ...done(""),
    finish_reason: "approval_required",
  } as StreamEvent);
  await (await sent).ended;
  await there.until(({ session }) => session.waitingCalls.length === 2);
  // Delays the writes of this tab until the other one has written.
  const held = here.store.hold();
  rate(here, 1, "up");
  here.client.session.mark("1", { approved: true });
  const added = here.client.session.addOfPage({ text: "From here" });
  there.client.session.mark("2", { approved: false });
  await there.client.session.addOfPage({ text: "From there" });
  held.open();
  await added;
  for (const { until } of [here, there]) {
    await until((client) => {
      const { session } = client;
      const decided = session.waitingCalls.map(({ decision }) => decision?.approved);
      const seen = [...textsOf(session.messages).slice(4), ...ratingOf(client), ...decided];
      return isDeepStrictEqual(seen, ["From there", "From here", "up", true, false]);
    });
  }
  await here.client.library.stored;
  const { messages } = conversationOf(await keptAs(parts.server.url, id));
  assert.deepEqual(textsOf(messages).slice(4), ["From there", "From here"]);
});

test("a tab that is slower than the one that writes reports the calls and the end of the answer that it takes over", async (t) => {
  const { server } = await chat(t);
  const open = () => openPage(t, server.url, { keepsAll: true });
  const writes = await open();
  void writes.client.session.send(text("Hi"));
  const turn = await server.turn();
  turn.send(token("Half"));
  await writes.until(() => /Half/.test(JSON.stringify(lastAnswer(writes.client))));
  await writes.client.library.stored;
  openTab(new TestStorage());
  const slow = await open();
  await slow.client.library.show(writes.client.library.shownId);
  assert.equal(await server.control(), "resume");
  await slow.until(() => /Half/.test(JSON.stringify(lastAnswer(slow.client))));
  // From now on, the server sends only to the other tab.
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
  const { here, id } = await inTwoTabs(parts, t);
  const row = await keptAs(parts.server.url, id);
  await here.store.put({ ...row, id: "old", updatedAt: 1 });
  const { library } = here.client;
  await library.show("old");
  assert.deepEqual(textsOf(here.client.session.messages), ["Hi", "ok"]);
  const { conversation } = here.client.session;
  await library.show(undefined);
  await conversation.stored;
  const list = await (await library.all())?.list();
  assert.deepEqual(list?.map((it) => [it.id, it.updatedAt]).at(-1), ["old", 1]);
});

test("what another tab adds to a conversation takes no file from the tab that has sent it, and gives none to another one", async (t) => {
  const parts = await chat(t);
  const { here, there, id } = await inTwoTabs(parts, t);
  const { library } = here.client;
  await library.show(undefined);
  const file = { type: "image", name: "dot.png", mime_type: "image/png", data: "" } as const;
  const picture = new Blob(["dot"]);
  const shown = { name: "dot.png", mediaType: "image/png", size: 3, picture } as const;
  const sending = here.client.session.send({ text: "See", attachments: [file], files: [shown] });
  (await parts.server.turn()).send(done("A dot"));
  await (await sending).ended;
  await library.stored;
  const added = `${library.shownId}`;
  await there.client.library.show(added);
  rate(there, 1, "up");
  await here.until((it) => ratingOf(it).join() === "up");
  const sent = () => {
    const { session } = here.client;
    return session.lastQuestion && session.conversation.files.outgoing(session.lastQuestion);
  };
  assert.deepEqual(sent(), { text: "See", attachments: [file], files: [shown] });
  assert.equal(sent()?.files[0]?.picture, picture);
  there.client.close();
  await library.show(undefined);
  const row = await keptAs(parts.server.url, added);
  await here.store.put({ ...row, id: "same" });
  await library.show("same");
  assert.deepEqual([sent()?.text, sent()?.attachments], ["See", []]);
  await library.show(id);
  assert.deepEqual(sent()?.attachments, []);
});

test("a rating of an answer that another tab has just received is kept by a tab that is left at once", async (t) => {
  const parts = await chat(t);
  const { here, there, id } = await inTwoTabs(parts, t);
  const sent = there.client.session.send(text("More"));
  const turn = await parts.server.turn();
  await here.until(({ session }) => session.messages.length === 4);
  await there.client.library.stored;
  const held = there.store.hold();
  turn.send(done("ok"));
  await (await sent).ended;
  const isHeard = new Promise<void>((resolve) => here.client.library.listeners.add(resolve));
  held.open();
  await within(isHeard, "the news");
  rate(here, 3, "up");
  here.client.suspend();
  await here.client.library.stored;
  const stored = (await keptAs(parts.server.url, id)).tree[3];
  assert.equal(stored?.role === "assistant" && stored.feedback?.rating, "up");
});

test("a tab that is left at the end of an answer takes nothing away that another tab has stored, of which it has not heard", async (t) => {
  const parts = await chat(t);
  const { here, there, id } = await inTwoTabs(parts, t);
  const sent = here.client.session.send(text("More"));
  const turn = await parts.server.turn();
  await there.until(({ session }) => session.messages.length === 4);
  await here.client.library.stored;
  here.store.hold();
  turn.send(done("ok"));
  await (await sent).ended;
  rate(there, 1, "up");
  await there.client.library.stored;
  here.client.suspend();
  await Promise.all(here.store.appended);
  const { messages } = conversationOf(await keptAs(parts.server.url, id));
  assert.deepEqual(textsOf(messages), ["Hi", "ok", "More", "ok"]);
  const [, first] = messages;
  assert.equal(first?.role === "assistant" && first.feedback?.rating, "up");
});

test("a page that was left when it had not heard of the end of an answer in another tab has that when it is shown again", async (t) => {
  const parts = await chat(t);
  const { here, there, id } = await inTwoTabs(parts, t);
  const sent = there.client.session.send(text("More"));
  const turn = await parts.server.turn();
  await here.until(({ session }) => session.messages.length === 4);
  await there.client.library.stored;
  turn.send(done("It is said"));
  await (await sent).ended;
  await there.client.library.stored;
  rate(here, 1, "up");
  here.client.suspend();
  await Promise.all(here.store.appended);
  here.client.library.resume();
  await here.client.library.stored;
  assert.deepEqual(textsOf(here.client.session.messages), ["Hi", "ok", "More", "It is said"]);
  for (const { client } of [here, there]) {
    await client.library.stored;
    assert.deepEqual(
      [...textsOf(client.session.messages), ...ratingOf(client)],
      ["Hi", "ok", "More", "It is said", "up"],
    );
  }
  assert.deepEqual(textsOf((await keptAs(parts.server.url, id)).tree), ["Hi", "ok", "More", "It is said"]);
});

for (const isNew of [true, false]) {
  const what = isNew ? "a first message" : "a rating";
  test(`${what} in a conversation that is left for another one is stored also where the page is left at once`, async (t) => {
    const parts = await chat(t);
    const { here } = await inTwoTabs(parts, t);
    if (isNew) await here.client.library.show(undefined);
    here.store.hold();
    if (isNew) {
      const sent = here.client.session.send(text("Hello"));
      (await parts.server.turn()).send(done("ok"));
      await (await sent).ended;
    } else rate(here, 1, "up");
    const id = `${here.client.library.shownId}`;
    await here.client.library.show(undefined);
    here.client.suspend();
    await Promise.all(here.store.appended);
    const { tree } = await keptAs(parts.server.url, id);
    assert.deepEqual(textsOf(tree), [isNew ? "Hello" : "Hi", "ok"]);
    assert.deepEqual(
      tree.flatMap((it) => (it.role === "assistant" && it.feedback ? [it.feedback.rating] : [])),
      isNew ? [] : ["up"],
    );
  });
}

test("where the browser has no room two tabs send what waits under one name, so that the server answers it once", async (t) => {
  const parts = await chat(t);
  const { here, there } = await inTwoTabs(parts, t);
  const sent = here.client.session.send(text("More"));
  const turn = await parts.server.turn();
  await there.until(({ session }) => session.messages.length === 4);
  here.client.session.queue(text("Later"));
  await there.until(({ session }) => session.queued.length === 1);
  turn.send(done("ok"));
  await (await sent).ended;
  for (const { store } of [here, there]) {
    store.update = () => Promise.reject(new DOMException("full", "QuotaExceededError"));
  }
  (await parts.server.turn()).send(done("Answered once"));
  for (const { until } of [here, there]) {
    await until(({ session }) => textsOf(session.messages).slice(-2).join() === "Later,Answered once");
  }
});

test("what is done right before a page is left is there with the next one, although the page does not live to see the store", async (t) => {
  const { server, first, reload } = await chat(t);
  await ask(first, server, "Hi");
  const held = first.store.hold();
  rate(first, 1, "up");
  await held.asked;
  const second = await reload(first);
  assert.deepEqual(ratingOf(second.client), ["up"]);
});

test("what is being stored when a page is left is kept beside what the page writes then", async (t) => {
  const { server, first, reload, store } = await chat(t);
  await ask(first, server, "Hi");
  // After one more entry, the whole conversation is written again.
  for (let count = 0; count < 40; count += 1) rate(first, 1, count % 2 ? "up" : "down");
  await first.client.library.stored;
  const isLeft = gate();
  store.update = (id, clock, change, makeRoom) => {
    Reflect.deleteProperty(store, "update");
    const changeLate = (found: Parameters<typeof change>[0]) => {
      rate(first, 1, "down");
      first.client.suspend();
      isLeft.open();
      return change(found);
    };
    return store.update(id, clock, changeLate, makeRoom);
  };
  const added = first.client.session.addOfPage({ text: "A note" });
  await isLeft.opened;
  await added;
  await first.client.library.stored;
  const { client } = await reload(first);
  assert.deepEqual([textsOf(client.session.messages), ratingOf(client)], [["Hi", "ok", "A note"], ["down"]]);
});

/** Makes the page's next write fail, and leaves the page in the middle of it. */
function breakOff({ client, store }: TestPage): void {
  store.update = async (id, clock, change, makeRoom) => {
    Reflect.deleteProperty(store, "update");
    const changeInVain = (found: Parameters<typeof change>[0]) => {
      change(found);
      client.suspend();
      return undefined;
    };
    await store.update(id, clock, changeInVain, makeRoom);
    throw new Error("the browser has aborted it");
  };
}

test("what was about to be stored as a page was left, and could not be, is stored when it can, once", async (t) => {
  const { server, first, reload } = await chat(t);
  const { session, library } = first.client;
  breakOff(first);
  const sent = session.send(text("Hi"));
  const turn = await server.turn();
  await library.stored;
  await library.stored;
  assert.deepEqual(await textsAt(server.url), [["Hi", ""]]);
  turn.send(done("ok"));
  await (await sent).ended;
  await library.stored;
  breakOff(first);
  rate(first, 1, "up");
  await library.stored;
  await library.stored;
  const { client } = await reload(first);
  assert.deepEqual([textsOf(client.session.messages), ratingOf(client)], [["Hi", "ok"], ["up"]]);
});

test("what the browser had no room for as a page was left is stored when the page is shown again", async (t) => {
  const { server, first, reload } = await chat(t);
  await ask(first, server, "Hi");
  const { append, update } = first.store;
  const isFull = () => Promise.reject(new DOMException("full", "QuotaExceededError"));
  Object.assign(first.store, { append: isFull, update: isFull });
  rate(first, 1, "up");
  first.client.suspend();
  await first.client.library.stored;
  await first.client.library.stored;
  assert.equal(first.client.library.isNotKept, true);
  Object.assign(first.store, { append, update });
  first.client.library.resume();
  await first.client.library.stored;
  const { client } = await reload(first);
  assert.deepEqual([textsOf(client.session.messages), ratingOf(client)], [["Hi", "ok"], ["up"]]);
});

test("what a page has added before the person has said anything is written once, also where all conversations are kept", async (t) => {
  const server = await startScriptedServer(t);
  const { client, store } = await openPage(t, server.url, { keepsAll: true });
  await client.session.addOfPage({ text: "A note" });
  await client.library.stored;
  const changes: unknown[] = [];
  const { update } = store;
  store.update = (id, clock, change, makeRoom) =>
    update.call(
      store,
      id,
      clock,
      (found) => changes[changes.push(change(found)) - 1] as ReturnType<typeof change>,
      makeRoom,
    );
  await client.session.conversation.save();
  assert.deepEqual(changes, [undefined]);
});

test("a conversation that was closed is deleted as the page is left, although it does not live to see what it stores", async (t) => {
  const { server, first, reload, kept } = await chat(t);
  await ask(first, server, "Hi");
  const held = first.store.hold();
  rate(first, 1, "up");
  await held.asked;
  first.client.library.close();
  const { client } = await reload(first);
  await client.library.stored;
  assert.deepEqual([client.session.messages, await kept()], [[], []]);
});

test("a conversation that is left before the code is there that stores it is stored when that is there", async (t) => {
  const server = await startScriptedServer(t);
  const late = gate();
  const store = late.opened.then(() => new TestStore(new URL(server.url)));
  const here = await openClient(t, { url: server.url, store: store as unknown as TestStore, keepsAll: true });
  await ask(here, server, "Hi");
  const { conversation } = here.client.session;
  await here.client.library.show(undefined);
  assert.equal(conversation.isStored, false);
  late.open();
  await here.until(() => conversation.isStored);
  assert.deepEqual(await textsAt(server.url), [["Hi", "ok"]]);
});

test("what was pressed in one conversation goes into that, also where another one is opened while the store is asked", async (t) => {
  const parts = await chat(t);
  const { server } = parts;
  const { here, there, id } = await inTwoTabs(parts, t);
  there.client.close();
  const { session, library } = here.client;
  const held = here.store.hold();
  const sent = session.send(text("More"));
  await held.asked;
  const shows = library.show(undefined);
  held.open();
  const turn = await server.turn();
  assert.deepEqual([turn.body.message, turn.over], ["More", "socket"]);
  await shows;
  assert.deepEqual(here.client.session.messages, []);
  await library.show(id);
  assert.ok(here.client.session === session, "its answer goes on here");
  turn.send(done("ok"));
  await (await sent).ended;
  assert.deepEqual(textsOf(here.client.session.messages), ["Hi", "ok", "More", "ok"]);
});

/** A conversation in which a queued message is about to be sent and waits for the store. */
async function aboutToSend(parts: Awaited<ReturnType<typeof chat>>, t: TestContext, message: string, heldBefore = "") {
  const { server } = parts;
  const { here, there, id } = await inTwoTabs(parts, t);
  there.client.close();
  const { session } = here.client;
  const sent = session.send(text("More"));
  const turn = await server.turn();
  if (heldBefore) {
    session.queue(text(heldBefore));
    session.changeQueue({ type: "hold" });
  }
  session.queue(text(message));
  await here.client.library.stored;
  // Lets the write for the end of the answer pass; delays the one for the message.
  const held = here.store.hold(1);
  turn.send(done("ok"));
  await (await sent).ended;
  await held.asked;
  return { here, id, goOn: held.open };
}

/** A page without a client: only its writes in the store, and their effects on others. */
async function elsewhere(url: string, id: string, heard?: Library): Promise<OpenConversation> {
  const store = new TestStore(new URL(url));
  const loaded = await store.load(id);
  assert.ok(loaded && loaded !== UNREADABLE);
  const conversation = new OpenConversation(
    {
      store: () => store,
      owner: () => ownerOf(loaded.row),
      makeRoom: async () => false,
      onAppend: (id, appended) => heard?.post({ id, appended }),
    },
    id,
  );
  conversation.open(loaded);
  return conversation;
}

const asked = (message: string, run: string, replaces?: string): Operation => ({
  type: "ask",
  message: { text: message, files: [] },
  replaces,
  run,
  at: 9,
});

test("what is about to be sent when another conversation is opened goes into its own, once", async (t) => {
  const parts = await chat(t);
  const { server } = parts;
  const { here, id, goOn } = await aboutToSend(parts, t, "And this");
  const shows = here.client.library.show(undefined);
  goOn();
  await shows;
  const turn = await server.turn();
  assert.equal(turn.body.message, "And this");
  turn.send(done("ok"));
  await ask(here, server, "Elsewhere");
  assert.deepEqual(textsOf(here.client.session.messages), ["Elsewhere", "ok"]);
  await here.client.library.show(id);
  await here.until(({ session }) => !session.busy);
  assert.deepEqual(textsOf(here.client.session.messages), ["Hi", "ok", "More", "ok", "And this", "ok"]);
  assert.deepEqual(here.client.session.queued, []);
});

test("what is queued in a conversation that is left while its answer comes waits there, and is sent when it is shown again", async (t) => {
  const parts = await chat(t);
  const { server } = parts;
  const { here, there, id } = await inTwoTabs(parts, t);
  there.client.close();
  const { session, library } = here.client;
  const sent = session.send(text("More"));
  const turn = await server.turn();
  session.queue(text("And this"));
  await library.show(undefined);
  turn.send(done("ok"));
  await (await sent).ended;
  await ask(here, server, "Elsewhere");
  await library.show(id);
  const next = await server.turn();
  assert.equal(next.body.message, "And this");
  next.send(done("ok"));
  await here.until(({ session }) => session.messages.length === 6 && !session.busy);
});

test("what waits for the person's word still does after another message could not be sent at once", async (t) => {
  const parts = await chat(t);
  const { server } = parts;
  const { here, id, goOn } = await aboutToSend(parts, t, "And this", "Was it sent?");
  const other = await elsewhere(server.url, id);
  await other.commit(asked("Between", "r"));
  other.change({ ...received({ ...done("ok"), id: 1 }), state: { rest: {} } } as Operation);
  await other.stored;
  goOn();
  assert.equal((await server.turn()).body.message, "And this");
  await here.client.library.stored;
  assert.deepEqual(textsOf(here.client.session.messages).slice(4, 7), ["Between", "ok", "And this"]);
  const { queued } = await keptAs(server.url, id);
  assert.deepEqual(
    queued?.map((it) => [it.text, it.isHeld]),
    [["Was it sent?", true]],
  );
});

/** Messages that still wait after the end of the last answer, and the texts of the conversation. */
async function waitingIn({ client, until }: TestClient) {
  await until(({ session }) => !session.busy);
  await turns();
  await client.library.stored;
  const { queued, messages } = client.session;
  return { queued: queued.map((it) => [it.text, it.isHeld]), said: textsOf(messages) };
}

test("what is queued behind an answer that the person stops waits for their word, also when the next answer is whole", async (t) => {
  const { server, first } = await chat(t);
  const { session } = first.client;
  const sent = session.send(text("Hi"));
  const turn = await server.turn();
  turn.send(token("Half"));
  await first.until((it) => lastAnswer(it)?.blocks.length === 1);
  session.queue(text("And this"));
  session.stop();
  turn.send({ ...done("Half"), finish_reason: "stopped" } as StreamEvent);
  await (await sent).ended;
  await ask(first, server, "Something else");
  const { queued, said } = await waitingIn(first);
  assert.deepEqual([queued, said], [[["And this", true]], ["Hi", "Half", "Something else", "ok"]]);
});

test("what is queued behind an answer that was cut waits for the person's word when they show another branch, and is not sent into that", async (t) => {
  const { server, first } = await chat(t);
  const { session } = first.client;
  await ask(first, server, "Hi");
  const { id = "" } = session.lastQuestion ?? {};
  const sent = session.send(text("Hi, changed"), { replaces: id });
  const turn = await server.turn();
  session.queue(text("And this"));
  turn.send({ ...done("Half", { previous_response_id: "cut" }), finish_reason: "length" } as StreamEvent);
  await (await sent).ended;
  assert.equal(await session.switchTo(id), true);
  const { queued, said } = await waitingIn(first);
  assert.deepEqual([queued, said], [[["And this", true]], ["Hi", "ok"]]);
});

test("what is about to be sent when another branch is shown stays held, and is not sent into that", async (t) => {
  const parts = await chat(t);
  const { server } = parts;
  const { here, id, goOn } = await aboutToSend(parts, t, "And this");
  const { lastQuestion } = here.client.session;
  const other = await elsewhere(server.url, id);
  await other.commit(asked("More, changed", "r", lastQuestion?.id));
  other.change(received({ ...done("ok"), id: 1 }));
  await other.stored;
  goOn();
  await here.until(({ session }) => !session.busy && textsOf(session.messages)[2] === "More, changed");
  await turns();
  await here.client.library.stored;
  assert.deepEqual(
    here.client.session.queued.map((it) => [it.text, it.isHeld]),
    [["And this", true]],
  );
  assert.deepEqual(textsOf(here.client.session.messages), ["Hi", "ok", "More, changed", "ok"]);
  // It is sent when the user says so.
  const sent = sendQueuedOf(here.client, queuedIds(here.client));
  assert.equal((await server.turn()).body.message, "And this");
  await sent;
});

test("what is about to be sent when another tab holds or takes out what waits is not sent", async (t) => {
  for (const change of ["hold", "unqueue"] as const) {
    const parts = await chat(t);
    const { server } = parts;
    const { here, id, goOn } = await aboutToSend(parts, t, "And this");
    const other = await elsewhere(server.url, id);
    other.change(change === "hold" ? { type: "hold" } : { type: "unqueue", ids: queuedIds(here.client) });
    await other.stored;
    goOn();
    const { queued, said } = await waitingIn(here);
    assert.deepEqual([queued, said], [change === "hold" ? [["And this", true]] : [], ["Hi", "ok", "More", "ok"]]);
  }
});

test("what another tab queues while a message is about to be sent waits for the answer to that", async (t) => {
  const parts = await chat(t);
  const { server } = parts;
  const { here, there, id } = await inTwoTabs(parts, t);
  await there.client.library.show(undefined);
  const other = await elsewhere(server.url, id, there.client.library);
  other.change({ type: "rate", id: "m2", feedback: { rating: "up" } });
  await here.until((client) => ratingOf(client).join() === "up");
  const held = here.store.hold();
  const sent = here.client.session.send(text("More"));
  await held.asked;
  other.change({ type: "queue", message: { id: "q", text: "Later", files: [] } });
  await here.until(({ session }) => session.queued.length === 1);
  held.open();
  const turn = await server.turn();
  assert.equal(turn.body.message, "More");
  turn.send(done("ok"));
  await (await sent).ended;
  assert.equal((await server.turn()).body.message, "Later");
});

test("a press on what waits for a word is not lost while something else is about to be sent", async (t) => {
  const parts = await chat(t);
  const { server } = parts;
  const { here, goOn } = await aboutToSend(parts, t, "And this", "Was it sent?");
  const [held] = queuedIds(here.client);
  const pressed = sendQueuedOf(here.client, [`${held}`]);
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
  await session.send(text("Hi"));
  const turn = await server.turn();
  const file = { name: "dot.png", media_type: "image/png", data: "AAAA" };
  const shown = { name: "dot.png", mediaType: "image/png", size: 3 };
  session.queue({ text: "", attachments: [file], files: [shown] } as unknown as OutgoingMessage);
  session.queue({ text: "", attachments: [file], files: [shown] } as unknown as OutgoingMessage);
  assert.equal(session.queuedFiles.size, 2);
  const [lost, removed] = session.queued;
  session.changeQueue({ type: "unqueue", ids: [`${removed?.id}`] });
  assert.deepEqual([...session.queuedFiles.keys()], [lost?.id]);
  session.queuedFiles.clear();
  await sendQueuedOf(first.client, queuedIds(first.client));
  assert.equal(session.busy, true, "the answer is not stopped for nothing");
  turn.send(done("ok"));
  await session.ended;
  assert.equal(session.queued.length, 1);
});

test("what a page waits to add is not added to another conversation that its tab has when it is returned to", async (t) => {
  const { server, first } = await chat(t);
  first.client.close();
  const open = () => openPage(t, server.url, { keepsAll: true });
  const here = await open();
  await ask(here, server, "Hi");
  const { session } = here.client;
  await session.send(text("More"));
  const turn = await server.turn();
  const added = session.addOfPage({ text: "A note" }, () => session === here.client.session);
  here.client.suspend();
  const other = await open();
  await other.client.library.show(undefined);
  await ask(other, server, "Elsewhere");
  other.client.suspend();
  await here.client.returned();
  await here.client.library.restored;
  turn.send(done("ok"));
  assert.equal(await added, undefined);
  assert.deepEqual(textsOf(here.client.session.messages), ["Elsewhere", "ok"]);
});

test("messages that a page adds at once have an id each, kept or not", async (t) => {
  const { server, first } = await chat(t);
  const other = await openPage(t, server.url, { persist: false });
  for (const page of [first, other]) {
    await ask(page, server, "Hi");
    const { session } = page.client;
    const ids = await Promise.all(["One", "Two"].map((it) => session.addOfPage({ text: it })));
    const { messages } = session;
    assert.deepEqual(
      ids.map((id) => textsOf(messages.filter((it) => it.id === id))),
      [["One"], ["Two"]],
    );
  }
});

test("all that a user has said here is forgotten, also to an agent of another name, and nothing of another user", async (t) => {
  const parts = await chat(t);
  const { here, id } = await inTwoTabs(parts, t);
  const row = await keptAs(parts.server.url, id);
  await here.store.put({ ...row, id: "old", agent: "Another name" });
  await here.store.put({ ...row, id: "ann", user: "ann" });
  await here.store.put({ ...row, id: "tab", kept: "tab" });
  const all = await here.client.library.all();
  assert.deepEqual([(await all?.list())?.length, all?.kept], [1, 2]);
  await all?.clear();
  assert.deepEqual((await parts.kept()).map((it) => it.id).toSorted(), ["ann", "tab"]);
});

test("what is queued when the page is loaded again in the middle of an answer is sent as soon as that ends", async (t) => {
  const parts = await chat(t);
  const { server } = parts;
  const { here, there, open } = await inTwoTabs(parts, t);
  there.client.close();
  await here.client.session.send(text("More"));
  const turn = await server.turn();
  turn.send(token("Half"));
  await here.until((it) => lastAnswer(it)?.blocks.length === 1);
  here.client.session.queue(text("And this"));
  here.client.suspend();
  here.client.close();
  const next = await open();
  await next.until(({ session }) => session.messages.length === 4);
  turn.send(done("Half and all"));
  assert.equal((await server.turn()).body.message, "And this");
});

/** Resolves when the condition is true, which is checked after each change of the list. */
function whenListed({ client: { library } }: TestClient, condition: () => Promise<boolean>): Promise<void> {
  const met = new Promise<void>((resolve) => {
    library.listeners.add(async () => {
      if (await condition()) resolve();
    });
  });
  return within(met, String(condition));
}

test("room is made by the oldest conversations that no tab shows or goes on with, also when one has grown", async (t) => {
  const parts = await chat(t);
  const { server } = parts;
  const { here, there, id } = await inTwoTabs(parts, t);
  const { updatedAt: _, ...row } = await keptAs(server.url, id);
  for (let at = 1; at < 200; at += 1) await here.store.put({ ...row, id: `c${at}`, updatedAt: at });
  await here.store.put({ ...row, updatedAt: 0 });
  const ids = async () => new Set((await here.store.list()).map((it) => it.id));
  // The oldest conversation is shown and stored again, so another one has to be removed.
  const hasRoom = whenListed(here, async () => {
    const now = await ids();
    return now.size === 200 && now.has(id) && !now.has("c1");
  });
  await there.client.library.show(undefined);
  await ask(there, server, "One too many");
  await hasRoom;
  await here.store.put({ ...row, id: "c3", updatedAt: 3 }, { size: 60_000_000 });
  const hasRoomAgain = whenListed(here, async () => !(await ids()).has("c3"));
  await ask(there, server, "Too much");
  await hasRoomAgain;
  assert.deepEqual([(await ids()).has("c2"), (await ids()).has("c4")], [false, true]);
  assert.deepEqual(textsOf(here.client.session.messages), ["Hi", "ok"]);
  await here.store.put({ ...row, id: "c5", updatedAt: Date.now(), run: { run: "r", after: 1 } });
  await (await there.client.library.all())?.makeRoom(59_000_000);
  await whenListed(here, async () => (await ids()).has(id));
  assert.deepEqual(await ids(), new Set([id, `${there.client.library.shownId}`, "c5"]));
});

test("what waits for the person is the last to make room: an approval that is asked for, and messages that wait to be sent", async (t) => {
  const parts = await chat(t);
  const { server } = parts;
  const { here, there, id } = await inTwoTabs(parts, t);
  there.client.close();
  const row = await keptAs(server.url, id);
  const asking: AssistantMessage = {
    role: "assistant",
    id: "m2",
    parent: "m1",
    blocks: [{ type: "tool", callId: "c1", tool: "cancel", arguments: "{}", status: "waiting" }],
    status: "done",
  };
  const queued = [{ id: "p1", text: "And this", files: [] }];
  await here.store.put({ ...row, id: "c1", updatedAt: 1, tree: [row.tree[0] as Message, asking] });
  await here.store.put({ ...row, id: "c2", updatedAt: 2, queued });
  for (let at = 3; at < 200; at += 1) await here.store.put({ ...row, id: `c${at}`, updatedAt: at });
  const all = await here.client.library.all();
  const room = (dropped: number) => whenListed(here, async () => all?.dropped === dropped);
  const hasRoom = room(1);
  await here.client.library.show(undefined);
  await ask(here, server, "One too many");
  await hasRoom;
  const ids = async () => new Set((await here.store.list()).map((it) => it.id));
  const isKept = async (...them: string[]) => {
    const now = await ids();
    return them.map((it) => now.has(it));
  };
  assert.deepEqual(await isKept("c1", "c2", "c3"), [true, true, false]);
  await here.client.library.show(undefined);
  for (const it of await parts.kept()) await here.store.put({ ...it, queued });
  const hasRoomAgain = room(2);
  await ask(here, server, "Where all of them wait");
  await hasRoomAgain;
  assert.deepEqual(await isKept("c1", "c2"), [false, true]);
});

test("a conversation that no tab shows gets a name, and the last one counts", async (t) => {
  const parts = await chat(t);
  const { here, id } = await inTwoTabs(parts, t);
  const row = await keptAs(parts.server.url, id);
  // Simulates that the tab with its running answer has just ended.
  await here.store.put({ ...row, id: "left", run: { run: "r", after: 1 }, updatedAt: Date.now() });
  const all = await here.client.library.all();
  await Promise.all([all?.rename("left", "Apples"), all?.rename("left", " Bread ")]);
  const summary = (await here.store.list()).find((it) => it.id === "left");
  assert.deepEqual([(await keptAs(parts.server.url, "left")).name, summary?.title], ["Bread", "Bread"]);
});

test("a conversation that was renamed from another one's tab is known to the tab that shows it, which goes on at once", async (t) => {
  const parts = await chat(t);
  const { here, there, id } = await inTwoTabs(parts, t);
  await there.client.library.show(undefined);
  await (await there.client.library.all())?.rename(id, "Apples");
  await here.until(({ session }) => session.conversation.value.name === "Apples");
  rate(here, 1, "up");
  here.client.suspend();
  await here.client.library.stored;
  const row = await keptAs(parts.server.url, id);
  const stored = row.tree[1];
  assert.deepEqual([row.name, stored?.role === "assistant" && stored.feedback?.rating], ["Apples", "up"]);
});

/** Delays the page's reads until `open` is called. `read` resolves when something is read. */
function holdReading({ store }: TestPage) {
  const [held, read] = [gate(), gate()];
  store.load = async (id) => {
    const found = await TestStore.prototype.load.call(store, id);
    read.open();
    await held.opened;
    return found;
  };
  return { read: within(read.opened, "the conversation"), open: held.open };
}

test("what another tab says while a conversation is read is shown with it", async (t) => {
  const parts = await chat(t);
  const { server } = parts;
  const { here, there, id } = await inTwoTabs(parts, t);
  await there.client.library.show(undefined);
  const held = holdReading(there);
  const shows = there.client.library.show(id);
  await held.read;
  await ask(here, server, "More");
  held.open();
  await shows;
  await there.until(({ session }) => session.messages.length === 4);
  assert.deepEqual(textsOf(there.client.session.messages), ["Hi", "ok", "More", "ok"]);
  await ask(there, server, "And more");
  assert.deepEqual(await textsAt(server.url), [["Hi", "ok", "More", "ok", "And more", "ok"]]);
});

test("a conversation that another tab deletes while it is read is not shown", async (t) => {
  const parts = await chat(t);
  const { here, there, id } = await inTwoTabs(parts, t);
  await there.client.library.show(undefined);
  const held = holdReading(there);
  const shows = there.client.library.show(id);
  await held.read;
  const isGone = there.until(({ library }) => !library.isRestoring);
  await (await here.client.library.all())?.remove(id);
  await isGone;
  held.open();
  await shows;
  assert.deepEqual([there.client.session.messages, there.client.library.shownId], [[], undefined]);
  assert.deepEqual(await parts.kept(), []);
});

test("what is written while a conversation is read is its draft", async (t) => {
  const parts = await chat(t);
  const { there, id } = await inTwoTabs(parts, t);
  const { library } = there.client;
  await library.show(undefined);
  const held = holdReading(there);
  const shows = library.show(id);
  await held.read;
  library.saveDraft({ text: "Half a thou", files: [] });
  held.open();
  await shows;
  await library.show(undefined);
  assert.equal(there.drafts.at(-1)?.text, "");
  await library.show(id);
  assert.equal(there.drafts.at(-1)?.text, "Half a thou");
});

test("where the browser forbids storage and what goes with it, messages are sent and the chat says what it does not keep", async (t) => {
  const { BroadcastChannel } = globalThis;
  t.after(() => Object.assign(globalThis, { BroadcastChannel }));
  function forbidden(): never {
    throw new DOMException("The operation is insecure.", "SecurityError");
  }
  Object.assign(globalThis, { BroadcastChannel: forbidden });
  const server = await startScriptedServer(t);
  const reject = async () => forbidden();
  const store = {
    list: reject,
    load: reject,
    update: reject,
    append: reject,
    keepFiles: reject,
    delete: reject,
    copy: reject,
  };
  const here = await openClient(t, { url: server.url, store, keepsAll: true });
  await ask(here, server, "Hi");
  await here.until(({ library }) => library.isNotKept);
  await ask(here, server, "Again");
  assert.equal(here.client.library.isNotKept, true);
  assert.deepEqual(textsOf(here.client.session.messages), ["Hi", "ok", "Again", "ok"]);
});

test("a tab that was left and returned to before it was known who is there hears what other tabs do", async (t) => {
  let isDown = false;
  const server = await startScriptedServer(t, { isDown: () => isDown });
  const open = (more: Partial<ClientSetup> = {}) => openPage(t, server.url, { keepsAll: true, ...more });
  const first = await open();
  await ask(first, server, "Hi");
  const id = first.client.library.shownId;
  first.client.close();
  isDown = true;
  const { client, until } = await open({ userToken: "ann", until: ({ phase }) => phase === "unreachable" });
  client.suspend();
  await client.returned();
  isDown = false;
  client.reconnect.retryNow();
  await until(({ session, isKnown }) => isKnown && session.messages.length === 2);
  openTab(new TestStorage());
  const there = await open();
  await there.client.library.show(id);
  await ask(there, server, "More");
  await until(({ session }) => session.messages.length === 4);
});

test("what the browser has cleared is stored again as soon as it goes on", async (t) => {
  const { server, kept } = await chat(t);
  const here = await openPage(t, server.url, { keepsAll: true });
  await ask(here, server, "Hi");
  await here.store.delete(`${here.client.library.shownId}`);
  assert.deepEqual(await kept(), []);
  await ask(here, server, "Again");
  assert.deepEqual(await textsAt(server.url), [["Hi", "ok", "Again", "ok"]]);
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
  const { server, kept, first } = await chat(t);
  await ask(first, server, "Hi");
  const [stored] = await kept();
  assert.ok(stored);
  const [question, answer] = stored.tree as [UserMessage, AssistantMessage];
  const row = toRow(stored);
  const of = (question: object, answer: object) => ({ ...row, tree: [question, answer] }) as unknown as Row;
  assert.deepEqual(readBack(of(question, { ...answer, blocks: SOUND })).tree[1], { ...answer, blocks: SOUND });
  const damaged: object[] = [
    ...DAMAGED_BLOCKS.map((block) => of(question, { ...answer, blocks: [block] })),
    ...[
      { blocks: Array(1) },
      { suggestions: 7 },
      { at: "noon" },
      { status: "well" },
      { failure: {} },
      { parent: 7 },
    ].map((damage) => of(question, { ...answer, ...damage })),
    ...[null, 7, {}, { name: "a.png", mediaType: "toString" }].map((file) =>
      of({ ...question, files: [file] }, answer),
    ),
    ...[{ text: undefined }, { id: 1 }, { at: 1e30 }, { parent: question.id }, { queued: 7 }].map((it) =>
      of({ ...question, ...it }, answer),
    ),
    ...[undefined, {}, [null], Array(1)].map((tree) => ({ ...row, tree })),
    ...[1, { m14: 5 }, { m2: { rest: null } }, { m2: { rest: {}, added: [null] } }].map((states) => ({
      ...row,
      states,
    })),
    ...[
      ...[{ head: "m9" }, { root: 1 }, { run: { run: 1 } }, { run: { run: "r", after: 1, answer: 7 } }, { title: 7 }],
      ...[{ updatedAt: "x" }, { clock: "1" }, { clock: undefined }, { count: "7" }, { seen: 7 }, { seen: { a: "1" } }],
      ...[7, [null], [{ id: "p1" }], [{ id: 1, text: "x", files: [] }]].map((queued) => ({ queued })),
    ].map((damage) => ({ ...row, ...damage })),
  ];
  for (const row of damaged) assert.equal(fromRow(row as Row), UNREADABLE, JSON.stringify(row));
});

test("a block of a kind that is not known is left out alone, and stays stored until all of its conversation is written anew", async (t) => {
  const { server, store, first, kept, reload } = await chat(t);
  await ask(first, server, "Hi", "Hello");
  const [row] = await kept();
  assert.ok(row);
  const [question, answer] = row.tree as [UserMessage, AssistantMessage];
  const newer = { type: "hologram", shape: [1, 2] };
  const blocks = [newer, ...answer.blocks, newer] as AssistantMessage["blocks"];
  await store.put({ ...row, tree: [question, { ...answer, blocks, kept: 2 }] });
  const second = await reload(first);
  assert.deepEqual(second.client.session.messages, [question, { ...answer, kept: 1 }]);
  rate(second, 1, "up");
  await second.client.library.stored;
  const isStored = async () => JSON.stringify(await rowAt(server.url, row.id)).includes("hologram");
  assert.equal(await isStored(), true);
  const third = await reload(second);
  assert.deepEqual([textsOf(third.client.session.messages), ratingOf(third.client)], [["Hi", "Hello"], ["up"]]);
  await ask(third, server, "More");
  assert.equal(await isStored(), false);
  assert.deepEqual(await textsAt(server.url), [["Hi", "Hello", "More", "ok"]]);
});

/** A conversation's row in the database. */
async function rowAt(url: string, id: string): Promise<unknown> {
  const database = await open(`agent-chat-6:${url}`, () => {});
  const row = await settled(database.transaction(ROWS).objectStore(ROWS).get(id));
  database.close();
  return row;
}

test("what is damaged behind a row takes nothing else with it", async (t) => {
  const { server, store, first, kept, reload } = await chat(t);
  await ask(first, server, "Hi");
  const [row] = await kept();
  assert.ok(row);
  const { id } = row;
  const summary = summaryOf(id, conversationOf(row), ownerOf(row), row.clock);
  const entry = (number: number, operation: object) =>
    entryOf(id, row.clock + number, { writer: "gone", number, operation: operation as Operation });
  const rating = { type: "rate", id: "m2", feedback: { rating: "up" } };
  const entries = [
    { ...entry(1, {}), operation: null },
    { ...entry(7, { type: "unread" }), number: "7" },
    { ...entry(8, { type: "read" }), clock: Number.POSITIVE_INFINITY },
    entry(2, { type: "event" }),
    entry(3, { type: "mark", callId: 7 }),
    entry(4, { type: "from a newer version" }),
    entry(5, rating),
  ];
  await store.append({ summary, entries: entries as never });
  const second = await reload(first);
  assert.deepEqual(textsOf(second.client.session.messages), ["Hi", "ok"]);
  assert.deepEqual(ratingOf(second.client), ["up"]);
  // An entry that would make the conversation unreadable is ignored.
  const makes = entry(6, { type: "queue", message: { id: "p1", text: "x", files: 7 } });
  await store.append({ summary, entries: [makes] });
  const third = await reload(second);
  assert.deepEqual(textsOf(third.client.session.messages), ["Hi", "ok"]);
  await ask(third, server, "More");
  assert.deepEqual(textsOf((await reload(third)).client.session.messages), ["Hi", "ok", "More", "ok"]);
});

test("what is damaged of that which another tab appends while the conversation is shown takes nothing else with it", async (t) => {
  for (const isHeard of [true, false]) {
    openTab(new TestStorage());
    const parts = await chat(t);
    const { server } = parts;
    const { here, there, id } = await inTwoTabs(parts, t);
    await there.client.library.show(undefined);
    const other = await elsewhere(server.url, id, isHeard ? there.client.library : undefined);
    const damaged = [
      { type: "queue", message: { id: "p1", text: "x", files: 7 } },
      { type: "add", message: { text: 7 }, at: 1 },
      { type: "rename", name: 7 },
    ];
    for (const operation of [...damaged, { type: "rate", id: "m2", feedback: { rating: "up" } }]) {
      other.change(operation as never);
      await other.stored;
    }
    if (!isHeard) void here.client.session.conversation.save();
    await here.until((client) => ratingOf(client).join() === "up");
    const { queued, messages, conversation } = here.client.session;
    assert.deepEqual([queued, textsOf(messages), conversation.value.name], [[], ["Hi", "ok"], undefined]);
    await ask(here, server, "More");
    assert.deepEqual(await textsAt(server.url), [["Hi", "ok", "More", "ok"]]);
  }
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
  const { server, store, kept, reload, first } = await chat(t);
  await ask(first, server, "Hi");
  first.client.suspend();
  const [row] = await kept();
  assert.ok(row);
  const summary = summaryOf(row.id, conversationOf(row), ownerOf(row), row.clock);
  const damaged = { ...toRow(row), head: "m9" };
  await store.append({ summary, row: damaged });
  const second = await reload(first);
  assert.deepEqual([second.client.session.messages, second.client.library.absent?.why], [[], "unreadable"]);
  const third = await reload(second);
  assert.equal(third.client.library.absent?.why, "unreadable", "as long as nothing is said");
  await ask(third, server, "Again");
  assert.deepEqual(await textsAt(server.url), [["Again", "ok"]]);
  assert.deepEqual((await store.list()).length, 2);
  assert.equal(await store.load(row.id), UNREADABLE);
  assert.deepEqual([third.client.library.isNotKept, third.client.library.absent], [false, undefined]);
  // If the stored row is damaged while it is shown, the shown conversation replaces it.
  const [shown] = await kept();
  assert.ok(shown);
  const { clock } = shown;
  const another = summaryOf(shown.id, conversationOf(shown), ownerOf(shown), clock + 1);
  await store.append({ summary: another, row: { ...toRow({ ...shown, clock: clock + 1 }), head: "m9" } });
  await ask(third, server, "More");
  assert.deepEqual(await textsAt(server.url), [["Again", "ok", "More", "ok"]]);
  assert.equal((await store.list()).length, 2);
});

test("a conversation that cannot be read now is not deleted: the next page may read it", async (t) => {
  const { server, first } = await chat(t);
  await ask(first, server, "Hi");
  let last: TestClient = first;
  const reload = async (isReadable: boolean) => {
    const store = new TestStore(new URL(server.url));
    if (!isReadable) store.load = () => Promise.reject(new Error("IndexedDB does not answer"));
    last.client.suspend();
    last = await openClient(t, { url: server.url, store });
    return last;
  };
  const second = await reload(false);
  assert.deepEqual([second.client.session.messages, second.client.library.absent?.why], [[], "unavailable"]);
  const third = await reload(true);
  assert.deepEqual(textsOf(third.client.session.messages), ["Hi", "ok"]);
  const fourth = await reload(false);
  await ask(fourth, server, "Again");
  assert.equal(fourth.client.library.absent, undefined);
  assert.deepEqual(await textsAt(server.url), [
    ["Again", "ok"],
    ["Hi", "ok"],
  ]);
});

test("a row of another version is ignored", () => {
  const row = toRow(conversation(messages));
  assert.deepEqual(readBack(row).tree.length, 4);
  for (const version of [2, 7, "6", "constructor"]) {
    const other = { ...row, version } as Row;
    assert.equal(fromRow(migrated(other, undefined, undefined)), UNREADABLE);
  }
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
    const sent = first.client.session.send(text("Pay"));
    const approval = { id: "1", tool: "pay", arguments: "{}", text: "Pay?", expires_at: "2026-01-01T00:00:00Z" };
    (await server.turn()).send(
      { type: "tool_approval", data: approval } as unknown as StreamEvent,
      { ...done("", { previous_response_id: "open" }), finish_reason: end } as unknown as StreamEvent,
    );
    await (await sent).ended;
    await goOn(first.client.session);
    const turn = await server.turn();
    turn.forget();
    await first.client.library.stored;
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
  const clock = stopClock(t);
  let isClosed = false;
  const close = () => {
    isClosed = true;
  };
  const opening = { result: { close }, onsuccess: () => {} };
  const { indexedDB } = globalThis;
  Object.assign(globalThis, { indexedDB: { open: () => opening } });
  t.after(() => Object.assign(globalThis, { indexedDB }));
  const loading = new IndexedDbStore(new URL("https://chat.example/")).list();
  clock.tick(3_000);
  await assert.rejects(loading, /does not answer/);
  opening.onsuccess();
  await turns(1);
  assert.equal(isClosed, true);
});

test("a run that a tab has begun and did not live to send is taken over by another one after seconds, once", async (t) => {
  const parts = await chat(t);
  const { server } = parts;
  const { here, there, id, open } = await inTwoTabs(parts, t);
  openTab(new TestStorage());
  const other = await elsewhere(server.url, id, (await open()).client.library);
  const clock = stopClock(t);
  await other.commit(asked("More", "r"));
  for (const { until } of [here, there]) await until(({ session }) => session.messages.length === 4);
  clock.tick(4_900);
  await turns();
  assert.deepEqual(
    [here, there].map(({ client }) => client.session.position),
    [undefined, undefined],
  );
  clock.tick(200);
  // The client first asks the server about it.
  let isSent = false;
  const next = server.turn().finally(() => {
    isSent = true;
  });
  while (!isSent) {
    await turns();
    clock.tick(500);
  }
  const turn = await next;
  assert.deepEqual([turn.body.message, turn.body.run], ["More", "r"]);
  turn.send(done("ok"));
  for (const { until } of [here, there]) await until(({ session }) => !session.busy);
  for (const { client } of [here, there]) {
    assert.deepEqual(textsOf(client.session.messages), ["Hi", "ok", "More", "ok"]);
  }
});

test("a run that has begun to come in another tab is followed at once", async (t) => {
  const parts = await chat(t);
  const { server } = parts;
  const { here, there } = await inTwoTabs(parts, t);
  stopClock(t);
  void there.client.session.send(text("More"));
  const turn = await server.turn();
  turn.send(token("Half"));
  assert.equal(await server.control(), "resume");
  await here.until((it) => lastAnswer(it)?.blocks.length === 1);
  turn.send(done("Half and all"));
  for (const { until } of [here, there]) await until(({ session }) => !session.busy);
});

test("a run that a tab has stopped and did not live to send is sent by no other one", async (t) => {
  const parts = await chat(t);
  const { server } = parts;
  const { here, there, id, open } = await inTwoTabs(parts, t);
  openTab(new TestStorage());
  const other = await elsewhere(server.url, id, (await open()).client.library);
  const clock = stopClock(t);
  await other.commit(asked("More", "r"));
  other.change({ type: "stop", run: "r" });
  await other.stored;
  for (const { until } of [here, there]) await until(({ session }) => session.messages.length === 4);
  for (let seconds = 0; seconds < 20; seconds += 1) {
    await turns();
    clock.tick(1_000);
  }
  for (const { client, until } of [here, there]) {
    await until(({ session }) => !session.busy);
    assert.equal(lastAnswer(client)?.finishReason, "stopped");
  }
  t.mock.restoreAll();
  void here.client.session.send(text("And this"));
  assert.equal((await server.turn()).body.message, "And this");
});

test("a stop that a tab did not live to tell the server is told by another one that follows the answer", async (t) => {
  const parts = await chat(t);
  const { server } = parts;
  const { here, id, open } = await inTwoTabs(parts, t);
  void here.client.session.send(text("More"));
  const turn = await server.turn();
  turn.send(token("Half"));
  await here.until((it) => lastAnswer(it)?.blocks.length === 1);
  await here.client.library.stored;
  openTab(new TestStorage());
  const other = await elsewhere(server.url, id, (await open()).client.library);
  other.change({ type: "stop", run: `${here.client.session.position?.run}` });
  assert.deepEqual([await server.control(), await server.control()].toSorted(), ["resume", "stop"]);
});

for (const isDown of [false, true]) {
  test(`an answer that was stopped as the page was left is not gone on with by the next one, which finds the server ${isDown ? "down" : "there"}`, async (t) => {
    let isGone = false;
    const server = await startScriptedServer(t, { isDown: () => isGone });
    const first = await openPage(t, server.url);
    void first.client.session.send(text("Hi"));
    const turn = await server.turn();
    turn.send(token("Half"));
    await first.until((it) => lastAnswer(it)?.blocks.length === 1);
    const { conversation } = first.client.session;
    first.client.suspend();
    await conversation.stored;
    const left = await elsewhere(server.url, conversation.id);
    left.change({ type: "stop", run: `${left.value.run?.run}` });
    await left.stored;
    first.store.isFrozen = true;
    isGone = isDown;
    const until = ({ phase }: TestClient["client"]) => phase === (isDown ? "unreachable" : "ready");
    const second = await openPage(t, server.url, { until });
    await second.until(({ session }) => session.messages.length > 0 && !session.busy);
    assert.deepEqual(textsOf(second.client.session.messages), ["Hi", "Half"]);
    assert.equal(lastAnswer(second.client)?.finishReason, "stopped");
    if (!isDown) assert.equal(await server.control(), "cancel");
  });
}

test("decisions are not sent where another tab has changed one of them meanwhile, and the last word is when it is said again", async (t) => {
  const parts = await chat(t);
  const { server } = parts;
  const { here, there, id } = await inTwoTabs(parts, t);
  there.client.close();
  const { session } = here.client;
  const sent = session.send(text("Pay"));
  const data = { id: "1", tool: "pay", arguments: "{}", text: "Pay?", expires_at: "2099-01-01T00:00:00Z" };
  const end = { ...done(""), finish_reason: "approval_required" } as StreamEvent;
  (await server.turn()).send({ type: "tool_approval", data }, end);
  await (await sent).ended;
  session.mark("1", { approved: true });
  await here.client.library.stored;
  const approved = session.decisions ?? [];
  // This tab is not notified.
  const other = await elsewhere(server.url, id);
  other.change({ type: "mark", callId: "1", decision: { approved: false } });
  await other.stored;
  assert.equal((await session.decide(approved)).outcome, "elsewhere");
  assert.equal((await session.decide(session.decisions ?? [])).outcome, "accepted");
  assert.deepEqual((await server.turn()).body.approvals, [{ id: "1", approved: false }]);
});

test("a page that is left after another tab has deleted its conversation leaves nothing of it that stays, or that cannot be read", async (t) => {
  const parts = await chat(t);
  const { server } = parts;
  const { here, there, id } = await inTwoTabs(parts, t);
  here.store.hold();
  rate(here, 1, "up");
  // This tab is not notified.
  await there.store.delete(id);
  here.client.suspend();
  await turns();
  assert.equal(await there.store.load(id), undefined);
  assert.deepEqual([await there.store.list(), await textsAt(server.url)], [[], []]);
});

/** A page of a user whose library stores conversations. */
async function pageOfUser(t: TestContext, user: string) {
  const info = { user };
  const server = await startScriptedServer(t, { info });
  const page = await openPage(t, server.url, { keepsAll: true, userToken: () => info.user });
  /** Another user signs in at the site; the chat notices with their first message. */
  const follow = async (next: string) => {
    info.user = next;
    await page.client.admit();
    assert.equal(page.client.user, next);
  };
  return { server, page, follow };
}

test("what a user was about to send as another one came is not sent for that one", async (t) => {
  const { server, page, follow } = await pageOfUser(t, "ada");
  await ask(page, server, "Ada here");
  const { session } = page.client;
  const held = page.store.hold();
  const sent = session.send(text("Ada's secret"));
  await held.asked;
  await follow("bob");
  held.open();
  await sent;
  assert.equal(session.position, undefined);
  void page.client.session.send(text("Bob here"));
  assert.equal((await server.turn()).body.message, "Bob here");
});

test("what another tab has begun is not followed in a conversation of a user who has left, of which something is being stored", async (t) => {
  const { server, page, follow } = await pageOfUser(t, "ada");
  await ask(page, server, "Ada here");
  const { session } = page.client;
  // This tab is not notified.
  const other = await elsewhere(server.url, session.conversation.id);
  await other.commit(asked("More", "r"));
  other.change(received({ ...token("Half"), id: 1 }));
  await other.stored;
  const held = page.store.hold();
  rate(page, 1, "up");
  await held.asked;
  await follow("bob");
  held.open();
  await session.conversation.stored;
  assert.equal(session.position, undefined);
  void page.client.session.send(text("Bob here"));
  assert.equal((await server.turn()).body.message, "Bob here");
});

test("signing out ends all answers at once, also while what is kept of another conversation waits to be deleted", async (t) => {
  const { server, page } = await pageOfUser(t, "ada");
  void page.client.session.send(text("First"));
  (await server.turn()).send(token("Half"));
  await page.until((it) => lastAnswer(it)?.blocks.length === 1);
  await page.client.library.show(undefined);
  await ask(page, server, "Second");
  const held = page.store.hold();
  rate(page, 1, "up");
  await held.asked;
  const left = page.client.signOut();
  for (let heard = ""; !/stop|cancel/.test(heard); ) heard = await server.control();
  held.open();
  await left;
  assert.deepEqual(await textsAt(server.url), []);
});
