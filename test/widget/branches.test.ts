/** Properties of conversations: whatever people do in which tab, nothing is lost, nothing is sent twice, and each branch goes on with its own state. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import type { HistoryMessage } from "../../server/protocol/chat.ts";
import type { ChatSession } from "../../widget/session/chat-session.ts";
import type { PendingChange } from "../../widget/session/conversation.ts";
import { Conversation } from "../../widget/session/conversation.ts";
import { LEASE_MS } from "../../widget/session/lease.ts";
import type { Message } from "../../widget/session/messages.ts";
import { type StoredConversation, toRow } from "../../widget/session/row.ts";
import type { ConversationStore, Writer } from "../../widget/session/store.ts";
import { gate } from "../support/deadline.ts";
import { end, say, wait } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { TestStorage } from "./browser-stubs.ts";
import { lastAnswer, openClient, pendingIds, sendPendingOf, type TestClient, text, textsOf } from "./chat-client.ts";
import { MemoryStore, readBack } from "./memory-store.ts";

/** The thorough tests try more. */
const IS_MANY = process.env.TRIES === "many";

/** Repeats a run. */
const SEED = process.env.SEED ? { seed: Number(process.env.SEED) } : {};

const historyOf = (texts: readonly string[]): HistoryMessage[] =>
  texts.map((content, index) =>
    index % 2 === 0 ? { role: "user", content } : ({ role: "assistant", content } as HistoryMessage),
  );

const operation = fc.oneof(
  fc.constant({ do: "ask" as const }),
  fc.record({ do: fc.constant("edit" as const), at: fc.nat(20) }),
  fc.record({ do: fc.constant("again" as const), signed: fc.boolean() }),
  fc.record({ do: fc.constant("switch" as const), at: fc.nat(20), to: fc.nat(5) }),
  fc.constant({ do: "withdraw" as const }),
  fc.record({ do: fc.constant("add" as const), to: fc.constantFrom("an answer", "a failure") }),
  fc.constant({ do: "reload" as const }),
);

/** What the agent has been told: neither what the page has added, nor what was never answered. */
const known = (messages: readonly Message[]): string[] =>
  messages
    .filter(({ role }) => role !== "page")
    .flatMap((it, index, all) =>
      it.role === "user" && textsOf(all.slice(index + 1, index + 2))[0] ? [it, all[index + 1]] : [],
    )
    .flatMap((it) => textsOf(it ? [it] : []));

test("each branch goes on with its own state over random edits, repeats, switches, reloads and messages of the page, and none is lost", () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 30 }), (operations) => {
      let conversation = new Conversation();
      const given = new Set<string>();
      let count = 0;
      const next = (what: string) => `${what}${count++}`;
      /** As the server does, from nothing but what it was sent. */
      const answer = () => {
        const sent = conversation.start;
        assert.ok(sent);
        assert.deepEqual(sent.state.conversation_history ?? [], historyOf(known(conversation.messages)));
        conversation.expectAnswer();
        const said = next("answer");
        conversation.changeAnswer((it) => ({ ...it, status: "done", blocks: [{ type: "text", text: said }] }));
        const history = [...(sent.state.conversation_history ?? []), ...historyOf([sent.message, said])];
        conversation.state = structuredClone({ conversation_history: history, signature: said });
        given.add(said);
      };
      const ask = (replaces?: string) =>
        conversation.ask({ text: next("question"), attachments: [], files: [] }, replaces);
      for (const it of operations) {
        const { messages } = conversation;
        const questions = messages.filter(({ role }) => role === "user");
        if (it.do === "ask") ask();
        else if (it.do === "edit" && questions.length > 0) {
          // Also one that is out of sight: another tab may have shown another branch meanwhile.
          const all = conversation.data.tree.filter(({ role }) => role === "user");
          const changed = all[it.at % all.length];
          ask(changed?.id);
          assert.equal(conversation.lastQuestion?.parent, changed?.parent, "the new message stands beside the old one");
        } else if (it.do === "add") {
          if (it.to === "a failure") {
            ask();
            conversation.expectAnswer();
            conversation.changeAnswer((failed) => ({ ...failed, status: "failed" }));
          }
          const { state, lastQuestion, lastAnswer } = conversation;
          const said = next("note");
          const id = conversation.addOfPage({ text: said });
          given.add(said);
          assert.deepEqual([conversation.head, conversation.state], [id, state]);
          assert.deepEqual([conversation.lastQuestion, conversation.lastAnswer], [lastQuestion, lastAnswer]);
          continue;
        } else if (it.do === "again" && questions.length > 0) conversation.answerAgain(false);
        else if (it.do === "switch" && messages.length > 0) {
          const others = conversation.alternatives(messages[it.at % messages.length] as Message);
          conversation.switchTo(others[it.to % others.length] ?? "");
          continue;
        } else if (it.do === "withdraw") {
          ask();
          const question = conversation.lastQuestion;
          assert.ok(question && conversation.withdraw(question));
          assert.deepEqual(textsOf(conversation.messages), textsOf(messages));
          continue;
        } else if (it.do === "reload") {
          const stored = { ...conversation.data, id: "c", agent: "", kept: "tab", updatedAt: 1, revision: 1 } as const;
          const row = readBack(toRow(stored));
          conversation = new Conversation();
          conversation.restore(row);
          assert.deepEqual(textsOf(conversation.messages), textsOf(messages));
          continue;
        } else continue;
        answer();
      }
      const kept = conversation.data.tree.flatMap((it) => (it.role === "user" ? [] : textsOf([it])));
      assert.deepEqual(new Set(kept.filter((said) => said !== "")), given);
    }),
    { numRuns: 200 },
  );
});

/** A tab whose page, or whole browser, can end at any moment. */
class Tab implements ConversationStore {
  isDead = false;
  readonly #store: MemoryStore;
  constructor(store: MemoryStore) {
    this.#store = store;
  }
  list = () => this.#store.list();
  load = (id: string) => this.#store.load(id).then((row) => structuredClone(row));
  delete = (id: string) => this.#store.delete(id);
  copy = (id: string) => this.#store.copy(id);
  claim = (id: string, by: Writer) => this.#alive(() => this.#store.claim(id, by));
  queue = (id: string, change: PendingChange) => this.#alive(() => this.#store.queue(id, change));
  save = async (row: StoredConversation, by: Writer, isLeaving?: boolean) =>
    this.isDead || this.#store.save(row, by, isLeaving);
  /** A page that is gone goes on with nothing, also where the store had still heard it. */
  async #alive<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.isDead ? undefined : await work();
    return this.isDead ? new Promise<never>(() => {}) : (result as Result);
  }
}

/** Closes a page: what it was about to do does not go on in the test's process. */
function gone({ client, tab }: TestClient & { readonly tab: Tab }): void {
  client.close();
  tab.isDead = true;
}

const DEEDS = [
  "send",
  "both",
  "die",
  "reload",
  "edit",
  "add",
  "die answered",
  "leave",
  "talk elsewhere",
  "undo",
  "clock",
  "again",
  "again and send",
  "switch",
  "switch and send",
  "continue",
];

/** What the agent is told for an answer to go on. */
const GO_ON = "Your last answer was cut off. Go on exactly where it stopped, without repeating anything of it.";

/** An answer that has gone on has several, which the agent is told as one. */
const partsOf = (texts: readonly string[]): string[] => texts.flatMap((it) => it.split(/ ?(?=ok)/));

const ignore = () => {};

const isBegun = (client: TestClient["client"]) => (lastAnswer(client)?.blocks.length ?? 0) > 0;

const inTabs = fc.array(fc.record({ what: fc.constantFrom(...DEEDS), tab: fc.nat(1) }), { minLength: 3, maxLength: 7 });

test("of messages that two tabs send into one conversation none is lost or sent twice, whichever tab dies", async (t) => {
  const { now } = Date;
  let offset = 0;
  Date.now = () => now() + offset;
  t.after(() => {
    Date.now = now;
  });
  await fc.assert(
    fc.asyncProperty(inTabs, async (operations) => {
      let held: Promise<void> = Promise.resolve();
      let isCut = false;
      function* turn(_: unknown, index: number) {
        yield* [say("o"), wait(held), say(`k${index}`), end(isCut ? "length" : "stop")];
      }
      const { url, model } = await startServer(t, { turns: Array.from({ length: 40 }, turn) });
      const store = new MemoryStore();
      const storages = [new TestStorage(), new TestStorage()];
      const accepted: string[] = [];
      /** What was accepted, and what is answered once more or goes on. */
      const expected: string[] = [];
      const elsewhere: string[] = [];
      const added: string[] = [];
      const open = async (at: number) => {
        Object.assign(globalThis, { sessionStorage: storages[at] });
        Reflect.deleteProperty(globalThis, Symbol.for("agent-chat-slots"));
        const tab = new Tab(store);
        return { tab, ...(await openClient(t, { url: `${url}/`, store: tab, keepsAll: true })) };
      };
      const into = (at: number) => Object.assign(globalThis, { sessionStorage: storages[at] });
      const claimed = async ({ client }: TestClient, act: (session: ChatSession) => Promise<void>) => {
        if (await client.keeper.claim()) await act(client.session);
      };
      const send = (tab: TestClient, message: string, replaces?: string) =>
        claimed(tab, async (session) => {
          const { outcome, ended } = session.send(text(message), { replaces });
          if (outcome === "accepted") for (const list of [accepted, expected]) list.push(message);
          await ended;
        });
      const again = (tab: TestClient) =>
        claimed(tab, async (session) => {
          if (session.canRetry) expected.push(`${session.lastQuestion?.text}`);
          await session.retry();
        });
      const goOn = (tab: TestClient) =>
        claimed(tab, async (session) => {
          if (session.canContinue) expected.push(GO_ON);
          await session.continue().ended;
        });
      const change = ({ client: { session } }: TestClient, at: number) => {
        const others = session.messages.flatMap((it) => session.alternatives(it).filter((id) => id !== it.id));
        return others[at % others.length] ?? "";
      };
      const show = (tab: TestClient, id: string) => claimed(tab, async (session) => session.switchTo(id));
      const tabs = [await open(0)];
      await send(tabs[0] as TestClient, "first");
      tabs.push(await open(1));
      const [row] = store.rows.keys();
      await tabs[1]?.client.keeper.show(row);
      for (const [index, { what, tab }] of operations.entries()) {
        const [here, there] = [tabs[tab], tabs[1 - tab]];
        assert.ok(here && there);
        into(tab);
        if (what === "send") await send(here, `${index}`);
        else if (what === "add") {
          if (!(await here.client.keeper.claim())) continue;
          await here.client.session.addOfPage({ text: `note ${index}` });
          await here.client.keeper.stored;
          added.push(`note ${index}`);
        } else if (what === "again") await again(here);
        else if (what === "again and send") await Promise.all([again(here), send(there, `${index}`)]);
        else if (what === "switch") {
          await show(here, change(here, index));
          await here.client.keeper.stored;
          const shown = textsOf(here.client.session.messages);
          await there.until(({ session }) => isDeepStrictEqual(textsOf(session.messages), shown));
        } else if (what === "switch and send")
          await Promise.all([show(here, change(here, index)), send(there, `${index}`)]);
        else if (what === "continue") {
          isCut = true;
          await send(here, `${index}`);
          isCut = false;
          await Promise.all([goOn(there), goOn(here)]);
        } else if (what === "edit") await send(here, `${index}`, here.client.session.lastQuestion?.id);
        else if (what === "both") await Promise.all([send(here, `${index}`), send(there, `${index}, too`)]);
        else if (what === "die answered" || what === "leave" || what === "talk elsewhere") {
          const rest = gate();
          held = rest.opened;
          const before = accepted.length;
          const sent = send(here, `${index}`);
          await Promise.race([sent, here.until((it) => lastAnswer(it)?.status === "streaming" && isBegun(it))]);
          held = Promise.resolve();
          if (what === "die answered") {
            here.tab.isDead = true;
            gone(here);
            tabs[tab] = await open(tab);
            // The lease of the one that has died ends.
            offset += LEASE_MS + 1_000;
          } else {
            await here.client.keeper.show(undefined);
            if (what === "talk elsewhere") {
              const { ended } = here.client.session.send(text(`${index} elsewhere`));
              elsewhere.push(`${index} elsewhere`);
              await ended;
            }
            await here.client.keeper.show(row);
          }
          rest.open();
          const now = tabs[tab];
          await now?.until(({ session }) => !session.busy && session.messages.length > 0);
          await there.until(({ session }) => !session.busy);
          if (accepted.length > before)
            assert.match(textsOf(now?.client.session.messages ?? []).at(-1) ?? "", /^ok\d+$/);
        } else if (what === "undo") {
          const library = await here.client.keeper.library();
          const bringBack = await library?.remove(`${row}`);
          await there.until(({ session }) => session.messages.length === 0);
          await bringBack?.();
          await there.client.keeper.show(row);
        } else if (what === "clock") offset -= 3_600_000;
        else {
          if (what === "die") here.tab.isDead = true;
          else here.client.suspend();
          gone(here);
          here.tab.isDead = true;
          tabs[tab] = await open(tab);
        }
      }
      for (const it of tabs) gone(it);
      storages[0] = new TestStorage();
      const last = await open(0);
      await last.client.keeper.show(row);
      // A page that was gone too early to store the end of its answer leaves it to the next one.
      await last.until(({ session }) => !session.busy);
      const sent = model.asked.map(({ messages }) => String(messages.at(-1)?.content));
      assert.deepEqual(
        sent.filter((it) => !elsewhere.includes(it)),
        expected,
        "what was accepted was sent, once",
      );
      const { tree } = last.client.session.data;
      assert.deepEqual(textsOf(tree.filter(({ role }) => role === "user")), accepted, "what was accepted is kept");
      const notes = textsOf(tree.filter(({ role }) => role === "page"));
      assert.deepEqual(notes, added, "what the page has added is kept, once");
      const answers = model.asked.flatMap(({ messages: [first] }, index) =>
        elsewhere.includes(`${first?.content}`) ? [] : `ok${index}`,
      );
      const kept = partsOf(textsOf(tree.filter(({ role }) => role === "assistant")));
      assert.deepEqual(kept.toSorted(), answers.toSorted(), "each answer is kept, once");
      for (const { messages } of model.asked) {
        const texts = messages.map(({ content }) => String(content));
        if (elsewhere.includes(texts[0] ?? "")) continue;
        const said = partsOf(texts.filter((it) => it !== GO_ON));
        const goesOn = texts.at(-1) === GO_ON;
        const last = tree.find((it) =>
          goesOn ? partsOf(textsOf([it])).includes(`${said.at(-1)}`) : it.role === "user" && it.text === said.at(-1),
        );
        const path: string[] = [];
        for (let at = last; at; at = tree.find(({ id }) => id === at?.parent))
          if (at.role !== "page") path.unshift(...partsOf(textsOf([at])));
        // What goes on has become longer since.
        if (goesOn) path.splice(path.indexOf(`${said.at(-1)}`) + 1);
        assert.deepEqual(said, path, "each message was sent with its own branch");
      }
      gone(last);
    }),
    { numRuns: IS_MANY ? 30 : 12, endOnFailure: true, includeErrorInReport: true },
  );
});

const DEEDS_MEANWHILE = ["write", "write", "end", "reload", "die", "remove", "stop", "note", "cut", "continue"];

const whileAnswering = fc.array(fc.record({ what: fc.constantFrom(...DEEDS_MEANWHILE), tab: fc.nat(1) }), {
  minLength: 4,
  maxLength: 14,
});

/** A message of the page is added twice, and another tab reads the conversation between both saves, and goes on with it. */
const ADDED_DURING_READING = [
  ...["write 1", "remove 0", "reload 1", "cut 1", "write 0", "end 0", "remove 0", "end 0"],
  ...["note 0", "write 0", "die 1", "note 0", "continue 1"],
].map((it) => ({ what: it.slice(0, -2), tab: Number(it.at(-1)) }));

test("of messages that two tabs write during answers each is sent once, in its order, or still waits, whichever tab dies", async (t) => {
  await fc.assert(
    fc.asyncProperty(whileAnswering, async (operations) => {
      let isCut = false;
      const ends = Array.from({ length: 30 }, () => gate());
      function* turn({ opened }: (typeof ends)[number]) {
        yield* [say("ok"), wait(opened)];
        yield end(isCut ? "length" : "stop");
      }
      const { url, model } = await startServer(t, { turns: ends.map(turn) });
      const store = new MemoryStore();
      const storages = [new TestStorage(), new TestStorage()];
      const open = async (at: number) => {
        Object.assign(globalThis, { sessionStorage: storages[at] });
        Reflect.deleteProperty(globalThis, Symbol.for("agent-chat-slots"));
        const tab = new Tab(store);
        return { tab, ...(await openClient(t, { url: `${url}/`, store: tab, keepsAll: true })) };
      };
      const first = await open(0);
      const tabs = [first];
      first.client.session.send(text("first"));
      await first.until(({ session }) => session.messages.length === 2);
      await first.client.keeper.stored;
      tabs.push(await open(1));
      const [row = ""] = store.rows.keys();
      await tabs[1]?.client.keeper.show(row);
      const written: string[] = [];
      const removed: string[] = [];
      const added: string[] = [];
      /** What each tab is about to add. */
      const adding: Promise<void>[][] = [[], []];
      const sent = () =>
        model.asked
          .flatMap(({ messages }) => String(messages.at(-1)?.content).split("\n\n"))
          .filter((it) => it !== GO_ON);
      /** What neither was sent nor removed. A message whose answer is stopped at once stands in the conversation, and no model was asked. */
      const rest = () => {
        const said = tabs.flatMap(({ client }) => textsOf(client.session.messages)).flatMap((it) => it.split("\n\n"));
        return written.filter((it) => ![...said, ...sent(), ...removed].includes(it));
      };
      for (const [index, { what, tab }] of operations.entries()) {
        const here = tabs[tab];
        assert.ok(here);
        const { session, keeper } = here.client;
        Object.assign(globalThis, { sessionStorage: storages[tab] });
        if (what === "write" && session.busy && session.queue(text(`${index}`))) written.push(`${index}`);
        else if (what === "remove" && session.busy && session.pending[0]) {
          const { id, text } = session.pending[0];
          session.changePending((list) => list.filter((it) => it.id !== id));
          removed.push(text);
        } else if (what === "note") {
          // Without a text of its own, a failed `assert.ok` parses this file for minutes.
          const claim = async () => assert.ok(await keeper.claim(), "another tab goes on");
          const note = `note ${index}`;
          const add = async () => {
            const id = await session.addOfPage({ text: note }, claim);
            await keeper.stored;
            if (id && !here.tab.isDead) added.push(note);
          };
          adding[tab]?.push(claim().then(add).then(ignore, ignore));
        } else if (what === "continue") {
          if (await keeper.claim()) session.continue();
        } else if (what === "end" || what === "cut") {
          isCut = what === "cut";
          // The model is asked a moment after the message is there.
          await here.until(() => {
            for (const { open: end } of ends.slice(0, model.asked.length)) end();
            return !session.busy;
          });
          isCut = false;
        } else if (what === "stop") session.stop();
        await keeper.queued;
        if (what !== "die" && what !== "reload") continue;
        if (what === "die") here.tab.isDead = true;
        else here.client.suspend();
        gone(here);
        here.tab.isDead = true;
        adding[tab] = [];
        tabs[tab] = await open(tab);
      }
      for (const { open: end } of ends) end();
      await Promise.all(adding.flat());
      for (const { until } of tabs) {
        await until(({ session: { busy, pending } }) => {
          const waiting = rest();
          return !busy && waiting.length === pending.length && pending.every(({ text }) => waiting.includes(text));
        });
      }
      const all = sent().slice(1);
      assert.deepEqual(all, [...new Set(all)], "nothing was sent twice");
      // One that was removed in one tab may be on its way from the other.
      const expected = written.filter((it) => all.includes(it));
      assert.deepEqual(all, expected, "in the order in which they were written");
      const here = tabs[0];
      assert.ok(here);
      // What is held is sent when a person says so. Where another tab was quicker, they see that first.
      for (let presses = 0; presses < 4 && here.client.session.pending.length > 0; presses += 1) {
        await sendPendingOf(here.client, pendingIds(here.client));
        for (const { until } of tabs) await until(({ session }) => !session.busy);
      }
      assert.deepEqual([here.client.session.pending, rest()], [[], []], "nothing waits, and nothing was lost");
      // Both tabs show what each has added, once. One that died may not have said what it had stored: opened again, it is there.
      for (const { client, until } of tabs) {
        await client.keeper.show(row);
        await until(({ session }) => {
          const notes = textsOf(session.data.tree.filter(({ role }) => role === "page"));
          return new Set(notes).size === notes.length && added.every((it) => notes.includes(it));
        });
      }
      for (const it of tabs) gone(it);
    }),
    {
      numRuns: IS_MANY ? 10 : 5,
      examples: [[ADDED_DURING_READING]],
      endOnFailure: true,
      includeErrorInReport: true,
      ...SEED,
    },
  );
});
