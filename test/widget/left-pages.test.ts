/**
 * Writes in progress while pages are left, return, end or find the store failing: each operation counts once, and all
 * tabs end up with the same state. `RUNS=500 SEED=1` tries more and other sequences.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Conversation, conversationOf, dataOf } from "../../widget/conversations/conversation.ts";
import { IndexedDbStore } from "../../widget/conversations/indexed-db.ts";
import { answerText } from "../../widget/conversations/messages.ts";
import { type Appended, OpenConversation } from "../../widget/conversations/open-conversation.ts";
import type { Operation } from "../../widget/conversations/operations.ts";
import { UNREADABLE } from "../../widget/conversations/row.ts";
import type { ConversationStore } from "../../widget/conversations/store.ts";
import type { RunEvent } from "../../widget/transport/transport.ts";
import { randomFrom } from "../support/random.ts";
import { type ChannelKind, Page, SimulatedBrowser } from "./simulated-browser.ts";

const { RUNS = "40", SEED = "1" } = process.env;

const ID = "c";

/** A page's database. Once the page has ended, nothing is started any more, and its promises never settle. */
class PageStore extends IndexedDbStore {
  /** `once`: the next transaction is aborted. `full`: all transactions fail while there is no room. */
  failure: "once" | "full" | undefined;
  readonly #page: Page;

  constructor(url: URL, page: Page) {
    super(url);
    this.#page = page;
  }

  override update(...[id, clock, change, makeRoom]: Parameters<ConversationStore["update"]>): Promise<void> {
    const disturbed: typeof change = (found) => {
      if (this.#page.isDead) return undefined;
      const made = change(found);
      const { failure } = this;
      if (failure === "once") this.failure = undefined;
      if (failure) throw failure === "full" ? full() : new Error("the browser has aborted it");
      return made;
    };
    return this.#alive(super.update(id, clock, disturbed, makeRoom));
  }

  override append(...given: Parameters<ConversationStore["append"]>): Promise<void> {
    return this.#alive(this.failure ? Promise.reject(full()) : super.append(...given));
  }

  override async keepFiles(): Promise<void> {}

  async #alive<Value>(work: Promise<Value>): Promise<Value> {
    const [settled] = await Promise.allSettled([work]);
    if (this.#page.isDead) await new Promise<never>(() => {});
    if (settled.status === "rejected") throw settled.reason;
    return settled.value;
  }
}

const full = () => new DOMException("full", "QuotaExceededError");

interface Tab {
  readonly page: Page;
  readonly store: PageStore;
  readonly conversation: OpenConversation;
  isLeft: boolean;
  /** The last event received from the run that the tab follows. */
  heard: { readonly run: string; readonly after: number };
  /** Operations since the page was last left, which exist nowhere else. */
  unsaved: string[];
}

const STEPS = [
  ...["note", "note", "commit", "token", "token", "token", "token", "token", "done", "ask", "rename"],
  ...["leave", "leave", "return", "return", "end", "save", "abort", "full", "room"],
] as const;

class World {
  readonly browser: SimulatedBrowser;
  readonly log: string[] = [];
  readonly #url: URL;
  readonly #random: () => number;
  readonly #channel: ChannelKind;
  readonly #tabs: Tab[] = [];
  /** Operations that must be stored exactly once, and operations that failed. */
  readonly #said = new Set<string>();
  readonly #refused = new Set<string>();
  /** The events of each run. */
  readonly #events = new Map<string, RunEvent[]>();
  #count = 0;
  #failure: unknown;

  constructor(seed: number) {
    this.#random = randomFrom(seed);
    this.#channel = this.#pick(["prompt", "prompt", "missing"]);
    this.#url = new URL(`http://left${worlds++}.test/`);
    const nobody = { isDown: true, info: () => ({}), receive: () => {}, cancel: () => false };
    this.browser = new SimulatedBrowser(seed, this.#channel, () => nobody);
  }

  #pick<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.#random() * values.length)] as Value;
  }

  #open(at = this.#tabs.length): void {
    const page = new Page(`left${worlds++}.test`);
    this.browser.pages.add(page);
    this.browser.in(page, () => {
      const store = new PageStore(this.#url, page);
      const conversation = new OpenConversation(
        {
          store: () => store,
          owner: () => ({ agent: "", kept: "browser" }),
          makeRoom: async () => false,
          onAppend: (_, appended) => this.#post(page, appended),
        },
        ID,
      );
      const tab: Tab = { page, store, conversation, isLeft: false, heard: { run: "", after: 0 }, unsaved: [] };
      this.#tabs[at] = tab;
      void this.#load(tab);
    });
  }

  async #load({ page, store, conversation }: Tab): Promise<void> {
    // Retries if the database does not answer in time.
    let loaded = await store.load(ID).catch(() => null);
    while (loaded === null) loaded = await store.load(ID).catch(() => null);
    if (page.isDead || !loaded) return;
    if (loaded === UNREADABLE) this.#failure ??= new Error("what is stored can be read");
    else conversation.open(loaded);
    void conversation.save();
  }

  #post(from: Page, appended: Appended): void {
    const sender = this.#tabs.find(({ page }) => page === from);
    if (this.#channel === "missing" || sender?.isLeft) return;
    for (const { page } of this.#tabs) {
      if (page === from) continue;
      const copy = structuredClone(appended);
      const deliver = () => {
        const tab = this.#tabs.find((it) => it.page === page);
        if (tab && !tab.isLeft) tab.conversation.receive(copy);
      };
      this.browser.later(`${from.name} to ${page.name}`, deliver, page);
    }
  }

  async play(): Promise<void> {
    const { browser } = this;
    this.#open();
    await browser.settle(1_000);
    this.#ask(this.#tabs[0] as Tab);
    if (this.#random() < 0.5) await browser.settle(1_000);
    this.#open();
    this.#open();
    const count = 5 + Math.floor(this.#random() * 40);
    for (let step = 0; step < count; step += 1) {
      const at = this.#pick([0, 0, 0, 1, 1, 2]);
      const what = this.#pick(STEPS);
      const pace = this.#pick([0, 0, 1, 1, 2, 3, 6, 12, "quiet"] as const);
      this.log.push(`${what} in ${at}, then ${pace}`);
      this.browser.in(this.#tabs[at]?.page, () => this.#do(what, at));
      if (pace === "quiet") await browser.settle(2_000);
      else for (let left = pace; left > 0; left -= 1) await browser.step();
      if (this.#failure) throw this.#failure;
    }
    await this.#end();
  }

  #do(what: (typeof STEPS)[number], at: number): void {
    const tab = this.#tabs[at] as Tab;
    const { conversation, store, isLeft } = tab;
    const { run } = conversation.value;
    if (isLeft && what !== "return" && what !== "end") return;
    switch (what) {
      case "note":
        if (conversation.value.tree.length > 0) this.#note(tab);
        return;
      case "commit":
        if (conversation.value.tree.length > 0) void this.#commit(tab);
        return;
      case "token":
      case "done":
        if (run) this.#hear(tab, run.run, run.after, what);
        return;
      case "ask":
        if (conversation.value.tree.length > 0) this.#ask(tab);
        return;
      case "rename":
        if (conversation.isStored) conversation.change({ type: "rename", name: `name ${this.#count++}` });
        return;
      case "leave":
        conversation.leave();
        tab.isLeft = true;
        if (store.failure) return;
        for (const it of tab.unsaved) this.#said.add(it);
        tab.unsaved = [];
        return;
      case "return":
        tab.isLeft = false;
        void conversation.save();
        return;
      case "end":
        tab.page.isDead = true;
        this.browser.pages.delete(tab.page);
        this.#open(at);
        return;
      case "save":
        return void conversation.save();
      case "abort":
        store.failure ??= "once";
        return;
      case "full":
        store.failure = "full";
        return;
      case "room":
        store.failure = undefined;
        return;
    }
  }

  #note({ conversation, unsaved }: Tab): void {
    const text = `n${this.#count++}`;
    conversation.change({ type: "add", message: { text }, at: 1 });
    unsaved.push(text);
  }

  async #commit({ page, conversation, unsaved }: Tab): Promise<void> {
    const text = `c${this.#count++}`;
    const made = await conversation.commit({ type: "add", message: { text }, at: 1 });
    if (page.isDead) return;
    if (made) unsaved.push(text);
    else this.#refused.add(text);
  }

  #ask({ conversation }: Tab): void {
    const run = `r${this.#count++}`;
    this.#events.set(run, []);
    const ask: Operation = { type: "ask", message: { text: run, files: [] }, run, at: 1 };
    if (conversation.isStored) void conversation.commit(ask);
    else conversation.change(ask);
  }

  /** The next event of the run arrives in a tab that follows it. */
  #hear(tab: Tab, run: string, after: number, what: "token" | "done"): void {
    if (tab.heard.run !== run) tab.heard = { run, after };
    const id = tab.heard.after + 1;
    const events = this.#events.get(run) as RunEvent[];
    const isOver = events.at(-1)?.type === "done";
    if (isOver && id > events.length) return;
    const said = events.map((it) => (it.type === "token" ? it.data : "")).join("");
    if (id > events.length) {
      events.push(
        what === "token"
          ? { type: "token", data: `${run}.${id};`, id }
          : { type: "done", data: said, state: {}, finish_reason: "stop", id },
      );
    }
    const event = events[id - 1] as RunEvent;
    tab.heard = { run, after: id };
    tab.conversation.change({ type: "event", event, run, reference: run, at: 1 });
  }

  async #end(): Promise<void> {
    const { browser } = this;
    this.log.push("end");
    for (const tab of this.#tabs) Object.assign(tab.store, { failure: undefined });
    for (let looks = 0; looks < 3; looks += 1) {
      for (const tab of this.#tabs) {
        tab.isLeft = false;
        browser.in(tab.page, () => void tab.conversation.save());
      }
      await browser.settle(5_000);
    }
    for (const { unsaved } of this.#tabs) for (const it of unsaved) this.#said.add(it);
    const store = new IndexedDbStore(this.#url);
    let kept: Conversation | undefined;
    void store.load(ID).then((loaded) => {
      if (typeof loaded === "object") kept = conversationOf(loaded.conversation);
    });
    await browser.settle(1_000);
    if (this.#failure) throw this.#failure;
    if (!kept) {
      assert.equal(this.#said.size, 0, "what was said is stored");
      return;
    }
    this.#check(kept);
    for (const { conversation } of this.#tabs) {
      if (conversation.isStored) assert.deepEqual(plain(conversation.value), plain(kept), "a tab shows what is stored");
    }
  }

  #check({ tree, run }: Conversation): void {
    const notes = tree.flatMap((it) => (it.role === "page" ? [it.text] : []));
    const asked = tree.flatMap((it) => (it.role === "user" ? [it.text] : []));
    for (const list of [notes, asked])
      assert.deepEqual(list.toSorted(), [...new Set(list)].toSorted(), "each is there once");
    for (const it of this.#said) assert.ok(notes.includes(it), `${it} is there`);
    for (const it of this.#refused) assert.ok(!notes.includes(it), `${it} was refused, and is not there`);
    for (const it of tree) {
      if (it.role !== "assistant") continue;
      const question = tree.find(({ id }) => id === it.parent);
      const id = question?.role === "user" ? question.text : "";
      const events = this.#events.get(it.run ?? id) ?? [];
      const heard = run?.answer === it.id ? events.slice(0, run.after) : events;
      const text = heard.map((event) => (event.type === "token" ? event.data : "")).join("");
      if (it.finishReason === "stop" || run?.answer === it.id)
        assert.equal(answerText(it), text, "each piece is there once");
      else assert.ok(text.startsWith(answerText(it)), `pieces stand in their order: ${answerText(it)}, of ${text}`);
    }
  }
}

let worlds = 0;

/** The comparable data, independent of the order of fields and of absent ones. */
function plain(conversation: Conversation) {
  const { tree, head, queued, run, name, count } = dataOf(conversation);
  return JSON.parse(JSON.stringify({ tree, head, queued, run, name, count }));
}

async function play(seed: number, loadMs = 0): Promise<void> {
  const world = new World(seed);
  world.browser.loadMs = loadMs;
  const restore = world.browser.install();
  try {
    await world.play();
  } catch (error) {
    throw new Error(`SEED=${seed} RUNS=1: ${(error as Error).message}\n${world.log.join("\n")}`, { cause: error });
  } finally {
    restore();
  }
}

test("whatever is being stored as pages are left, each operation counts once, and all tabs come to the same", async () => {
  // Loads all lazy code first, so that later runs do not wait for it.
  for (const seed of [1, 2]) await play(seed, 25);
  for (let seed = Number(SEED); seed < Number(SEED) + Number(RUNS); seed += 1) await play(seed);
});
