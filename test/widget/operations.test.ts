/**
 * Actions in tabs of one browser, in any order and with any failure: nothing accepted is lost, nothing is sent twice or
 * against the user's last decision, and all tabs end up with the same state. `RUNS=500 SEED=1` tries more and others.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { StoredState } from "../../widget/conversations/branch-states.ts";
import {
  alternativesOf,
  branchOf,
  type Conversation,
  type ConversationData,
  conversationOf,
  dataOf,
  EMPTY_DATA,
} from "../../widget/conversations/conversation.ts";
import { IndexedDbStore } from "../../widget/conversations/indexed-db.ts";
import {
  emptyAnswer,
  type Message,
  type ToolBlock,
  toolCalls,
  waitingCalls,
} from "../../widget/conversations/messages.ts";
import type { OpenConversation } from "../../widget/conversations/open-conversation.ts";
import { apply, fold, merged, type NumberedOperation, type Operation } from "../../widget/conversations/operations.ts";
import { fromRow } from "../../widget/conversations/read-row.ts";
import { rowOf, UNREADABLE } from "../../widget/conversations/row.ts";
import { sendQueued, takeOut } from "../../widget/conversations/send-queued.ts";
import type { ConversationStore } from "../../widget/conversations/store.ts";
import { Client } from "../../widget/session/client.ts";
import type { RunEvent } from "../../widget/transport/transport.ts";
import { randomFrom } from "../support/random.ts";
import { TestStorage } from "./browser-stubs.ts";
import { text, textsOf } from "./chat-client.ts";
import { type ChannelKind, Page, SimulatedBrowser } from "./simulated-browser.ts";
import { type Asked, AskedServer, questionsIn } from "./simulated-server.ts";

const { RUNS = "40", SEED = "1" } = process.env;

const PURE = { numRuns: 10 * Number(RUNS), seed: Number(SEED), includeErrorInReport: true };

interface Setup {
  readonly seed: number;
  readonly channel: ChannelKind;
  readonly keepsAll: boolean;
  readonly hasUsers: boolean;
}

/** Possible actions; repeated ones are more likely. */
const DEEDS = [
  ...[
    "send",
    "send",
    "send",
    "send",
    "take out",
    "send now",
    "send now",
    "stop",
    "stop",
    "switch",
    "switch",
    "edit",
    "edit",
  ],
  ...["retry", "retry", "continue", "continue", "mark", "mark", "mark", "mark", "rate", "rename", "note", "take back"],
  ...["reload", "reload", "discard", "discard", "crash", "show", "show", "close", "undo", "user", "cut", "down", "up"],
] as const;

/** What happens before the next step: a number of tasks, or all tasks due within some time. */
const PACES = [0, 1, 3, 8, 8, 20, 20, 60, 60, "quiet", "seconds"] as const;

interface Step {
  readonly what: (typeof DEEDS)[number];
  readonly tab: number;
  /** The index, if there are several candidates. */
  readonly at: number;
  readonly pace: (typeof PACES)[number];
}

/** The actions for a seed. */
function stepsOf(seed: number): [Setup, Step[]] {
  const random = randomFrom(seed);
  const pick = <Value>(values: readonly Value[]) => values[Math.floor(random() * values.length)] as Value;
  const setup: Setup = {
    seed,
    channel: pick(["prompt", "prompt", "late", "missing"]),
    keepsAll: pick([true, false]),
    hasUsers: pick([true, false, false]),
  };
  // A few kinds in many steps interact more often than all kinds.
  const some = <Value>(values: readonly Value[], count: number) => Array.from({ length: count }, () => pick(values));
  const [deeds, paces] = [[...some(DEEDS, 7), "send"] as const, some(PACES, 4)];
  const step = (): Step => ({ what: pick(deeds), tab: pick([0, 1]), at: pick([0, 1, 2, 3, 4, 5]), pace: pick(paces) });
  return [setup, some([step], 4 + Math.floor(random() * 30)).map((it) => it())];
}

/** A page's database: once the page has ended, nothing is written any more, and its promises never settle. */
class PageStore implements ConversationStore {
  readonly #store: IndexedDbStore;
  readonly #page: Page;
  constructor(url: URL, page: Page) {
    this.#store = new IndexedDbStore(url);
    this.#page = page;
  }
  list = () => this.#alive(this.#store.list());
  load = (id: string) => this.#alive(this.#store.load(id));
  delete = (id: string) => this.#alive(this.#store.delete(id));
  copy = (id: string) => this.#alive(this.#store.copy(id));
  keepFiles = async () => {};
  append = (...args: Parameters<ConversationStore["append"]>) => this.#alive(this.#store.append(...args));
  update: ConversationStore["update"] = (id, clock, change, makeRoom) =>
    this.#alive(this.#store.update(id, clock, (found) => (this.#page.isDead ? undefined : change(found)), makeRoom));
  async #alive<Value>(work: Promise<Value>): Promise<Value> {
    const value = await work;
    return this.#page.isDead ? new Promise<never>(() => {}) : value;
  }
}

/** A text that a user has written. */
interface Said {
  readonly text: string;
  author: string;
  /** The conversation that accepted it. */
  conversation?: string;
  /** Whether the composer was cleared after the text had been stored. */
  isKept?: boolean;
  /** Whether the user has removed it from the queue. */
  isTaken?: boolean;
  /** Why it must not be sent any more, by the user's last decision. */
  never?: string;
  /** Whether it must wait until the user sends it. */
  isHeld?: boolean;
  /** Number of times that the user asked for another answer. */
  retries: number;
}

interface Tab {
  readonly page: Page;
  readonly client: Client;
  /** Number of times that another conversation was opened. */
  opened: number;
  /** Callbacks for when the action is stored. */
  readonly unstored: Set<() => void>;
}

type Decision = ToolBlock["decision"];

class World {
  readonly browser: SimulatedBrowser;
  readonly server: AskedServer;
  readonly tabs: Tab[] = [];
  readonly said = new Map<string, Said>();
  readonly failures: Error[] = [];
  readonly log: string[] = [];
  /** Texts in the queue that the user is just sending with "send now". */
  readonly pressing: string[] = [];
  /** The user's last decision per call, and decisions that are about to be stored. */
  readonly decisions = new Map<string, Decision>();
  readonly deciding: [call: string, decision: Decision][] = [];
  /** All values that the user has set per target, and those that are stored for sure. */
  readonly words = new Map<string, { readonly all: readonly string[]; readonly stored: string[] }>();
  /** Runs that were stopped before they reached the server. */
  readonly stopped = new Set<string>();
  /** Conversations that may have been deleted. */
  readonly closed = new Set<string>();
  /** Messages added by the page, and their conversations. */
  readonly notes = new Map<string, string>();
  user = "ada";
  readonly #setup: Setup;
  readonly #url: URL;
  #count = 0;

  constructor(setup: Setup) {
    this.#setup = setup;
    this.#url = new URL(`http://run${runs++}.test/`);
    let server: AskedServer | undefined;
    this.browser = new SimulatedBrowser(setup.seed, setup.channel, (browser) => {
      server = new AskedServer(browser, (asked) => this.check(() => this.#asked(asked)));
      return server;
    });
    this.server = server as never;
  }

  /** Records a failure. */
  check(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.failures.push(error as Error);
    }
  }

  #newPage(from?: Page): Page {
    const name = `page${pages++}.test`;
    const storage = new TestStorage();
    for (const [key, value] of Object.entries({ ...from?.storage })) {
      storage.setItem(key.replace(from?.name ?? "", name), value as string);
    }
    return new Page(name, storage);
  }

  /** Opens a tab; `from`: a page whose tab storage it inherits. */
  open(from?: Page): Tab {
    const page = this.#newPage(from);
    this.browser.pages.add(page);
    const { keepsAll, hasUsers } = this.#setup;
    return this.browser.in(page, () => {
      const changed = () => this.browser.in(page, () => this.#changed(tab));
      const client: Client = new Client({
        server: new URL(`http://${page.name}/`),
        id: "",
        siteKey: "",
        ...(hasUsers && { userToken: () => this.user }),
        store: new PageStore(this.#url, page),
        keepsAll: () => keepsAll,
        onChange: () => isOpen && changed(),
        onReady: () => {},
        onDraft: () => {},
        onSwitch: () => {},
        onToken: () => {},
        onTool: () => {},
        onAnswerEnd: () => {},
      });
      const tab: Tab = { page, client, opened: 0, unstored: new Set() };
      const isOpen = true;
      client.open(true);
      return tab;
    });
  }

  #changed(tab: Tab): void {
    const { client } = tab;
    const { session } = client;
    if (!client.isHidden) {
      const shown = [...session.messages, ...session.queued].flatMap((it) => ("text" in it ? [it.text] : []));
      this.check(() => this.#mayKnow(client.user, shown, "sees"));
    }
    if (session.queued.length > 0) void this.sendQueued(tab);
  }

  #mayKnow(user: string, texts: readonly string[], how: string): void {
    for (const it of texts.flatMap((it) => it.split("\n\n"))) {
      const author = this.said.get(it)?.author;
      if (author) assert.equal(user, author, `${user || "nobody"} ${how} what ${author} has said: ${it}`);
    }
  }

  /** The server received a request. */
  #asked(asked: Asked): void {
    const { message, user, state, approvals, run } = asked;
    this.log.push(
      `  asked: ${[message || "to go on", run.slice(0, 4), ...(approvals ?? []).map(({ id, approved }) => `${id} ${approved}`)]}`,
    );
    const texts = message ? message.split("\n\n") : [];
    this.#mayKnow(user, [...texts, ...questionsIn(state)], "sends");
    assert.ok(!this.stopped.has(run), `a run was stopped and is sent: ${message}`);
    for (const it of texts) {
      const said = this.said.get(it);
      assert.ok(said, `nobody has said ${it}`);
      assert.equal(said.never, undefined, `${it} is sent`);
      assert.ok(!said.isHeld, `${it} is held, and sent`);
      // A run that the server has refused may be sent again.
      const of = this.server.asked.filter(({ message }) => message.split("\n\n").includes(it));
      const count = new Set(of.map(({ run }) => run)).size;
      assert.ok(count <= 1 + said.retries, `${it} is sent ${count} times`);
    }
    for (const { id, approved } of approvals ?? []) {
      const words = [this.decisions.get(id), ...this.deciding.flatMap(([call, it]) => (call === id ? [it] : []))];
      assert.ok(
        words.some((it) => it?.approved === approved),
        `${id} is decided against the last word: ${approved}`,
      );
    }
  }

  say(client: Client): Said {
    const said: Said = { text: `w${this.#count++}`, author: client.user, retries: 0 };
    this.said.set(said.text, said);
    return said;
  }

  /** Like the element before each message; returns why nothing can be sent now, if so. */
  async admit({ client, opened }: Tab): Promise<"busy" | "refused" | undefined> {
    const refusal = await client.admit();
    await client.library.restored;
    const isOver = !this.tabs.some((it) => it.client === client && it.opened === opened);
    return isOver ? "busy" : refusal && "refused";
  }

  async sendQueued(tab: Tab, asked?: readonly string[]): Promise<void> {
    const { client, opened } = tab;
    const { session } = client;
    await sendQueued(session, {
      asked,
      isReady: () => session === client.session && client.isReady,
      admit: () => this.admit({ ...tab, opened }),
      send: (message) => session.send(message),
    });
  }

  async send(tab: Tab, replaces?: string): Promise<void> {
    const { client } = tab;
    const { opened } = tab;
    if (!client.isReady) return;
    if (client.session.busy) {
      if (replaces !== undefined) return;
      if (client.session.status !== "stopping") {
        const { session } = client;
        const said = this.say(client);
        if (!session.queue(text(said.text))) return;
        said.conversation = session.conversation.id;
        const stored = () => {
          said.isKept = session.conversation.isStored && !said.isTaken;
        };
        return this.whenStored(tab, client.library.stored, stored);
      }
      await client.session.ended;
    }
    const said = this.say(client);
    if (await this.admit({ ...tab, opened })) return;
    // By now the page may have another user, who is then the author.
    said.author = client.user;
    const { conversation } = client.session;
    const { outcome } = await client.session.send(text(said.text), { replaces });
    this.log.push(`  ${said.text}: ${outcome}`);
    if (outcome !== "accepted") {
      said.never = `it was ${outcome}`;
      return;
    }
    said.conversation = conversation.id;
    await conversation.stored;
    said.isKept = conversation.isStored;
  }

  /** Records a value that the user sets. Returns a function to call once it is stored. */
  note(name: string, word: string): (conversation: OpenConversation) => void {
    const { all, stored } = this.words.get(name) ?? { all: [], stored: [] };
    this.words.set(name, { all: [...all, word], stored });
    return ({ isStored }) => {
      if (isStored) this.words.get(name)?.stored.push(word);
    };
  }

  async whenStored({ unstored }: Tab, stored: Promise<unknown>, call: () => void): Promise<void> {
    unstored.add(call);
    await stored;
    unstored.delete(call);
    call();
  }

  /** Marks the texts that are held now, except those that the user is about to send. */
  hold({ value }: OpenConversation): void {
    for (const { text, isHeld } of value.queued) {
      const said = this.said.get(text);
      if (said && isHeld && !this.pressing.includes(text)) said.isHeld = true;
    }
  }

  async do({ what, tab: number, at }: Step): Promise<void> {
    const tab = this.tabs[number] as Tab;
    const { client } = tab;
    const { session, library } = client;
    const { conversation } = session;
    const nth = <It>(list: readonly It[]) => list[at % Math.max(1, list.length)];
    switch (what) {
      case "send":
        return this.send(tab);
      case "take out": {
        const message = nth(session.queued);
        const said = this.said.get(message?.text ?? "");
        if (!message || !said) return;
        Object.assign(said, { isKept: false, isTaken: true });
        await takeOut(session, message.id, undefined);
        await conversation.stored;
        const isSent = conversation.value.tree.some((it) => it.role === "user" && it.queued?.includes(message.id));
        said.isKept = isSent;
        if (!isSent && conversation.isStored) said.never = "it was taken out";
        return;
      }
      case "send now": {
        const texts = session.queued.map(({ text }) => text);
        if (texts.length === 0 || !client.isReady) return;
        for (const it of texts) (this.said.get(it) as Said).isHeld = false;
        this.pressing.push(...texts);
        await this.sendQueued(
          tab,
          session.queued.map(({ id }) => id),
        );
        await conversation.stored;
        for (const it of texts) this.pressing.splice(this.pressing.indexOf(it), 1);
        return;
      }
      case "stop": {
        const { position } = session;
        session.stop();
        await conversation.stored;
        if (!position || !conversation.isStored) return;
        this.hold(conversation);
        // The other tab may be about to send it, and learns of the stop a moment later, or never.
        if (this.#setup.channel !== "prompt") return;
        await new Promise((resolve) => setTimeout(resolve, 1_000));
        if (!this.server.knows(position.run)) this.stopped.add(position.run);
        return;
      }
      case "switch": {
        const others = session.messages.flatMap((it) => alternativesOf(session.value, it).filter((id) => id !== it.id));
        const other = nth(others);
        if (other && (await session.switchTo(other))) this.hold(conversation);
        return;
      }
      case "edit": {
        const message = nth(session.messages.filter(({ role }) => role === "user"));
        if (message) await this.send(tab, message.id);
        return;
      }
      case "retry": {
        const { opened } = tab;
        if (!session.canRetry || (await this.admit({ ...tab, opened })) || !client.session.canRetry) return;
        for (const it of client.session.lastQuestion?.text.split("\n\n") ?? [])
          (this.said.get(it) as Said).retries += 1;
        await client.session.retry();
        return;
      }
      case "continue": {
        const { opened } = tab;
        if (!(await this.admit({ ...tab, opened }))) await client.session.continue();
        return;
      }
      case "mark":
        return this.#mark(tab, at);
      case "rate": {
        const answer = session.messages.findLast((it) => it.role === "assistant" && it.status === "done");
        if (answer?.role !== "assistant" || !answer.run) return;
        const rating = at % 2 ? "up" : "down";
        const noted = this.note(`the rating of ${answer.run}`, rating);
        session.rate({ ...answer, feedback: { rating } });
        return this.whenStored(tab, conversation.stored, () => noted(conversation));
      }
      case "rename": {
        if (!library.shownId || !conversation.isStored) return;
        const noted = this.note(`the name of ${conversation.id}`, `name ${at}`);
        await (await library.all())?.rename(conversation.id, `name ${at}`);
        return noted(conversation);
      }
      case "note": {
        const { opened } = tab;
        if (await this.admit({ ...tab, opened })) return;
        const { session } = client;
        const note = `n${this.#count++}`;
        const id = await session.addOfPage({ text: note }, () => session === client.session);
        await session.conversation.stored;
        if (id !== undefined && session.conversation.isStored) this.notes.set(note, session.conversation.id);
        return;
      }
      case "take back": {
        const { position } = session;
        const question = session.lastQuestion;
        if (!session.withdraw() || !position) return;
        const taken = question?.text.split("\n\n").flatMap((it) => this.said.get(it) ?? []) ?? [];
        for (const it of taken) it.isKept = false;
        await conversation.stored;
        for (const said of taken) {
          const isThere = conversation.value.tree.some((it) => it.id === question?.id);
          if (!this.server.knows(position.run) && !isThere) said.never = "it was taken back";
        }
        return;
      }
      case "reload":
        client.suspend();
        // A page that is left has stored everything.
        for (const stored of tab.unstored) stored();
        return this.#die(number);
      case "discard":
        return this.#die(number);
      case "crash":
        this.#die(0);
        return this.#die(1);
      case "show": {
        if (!this.#setup.keepsAll || !client.isReady) return;
        const list = (await (await library.all())?.list()) ?? [];
        tab.opened += 1;
        await library.show(nth([undefined, ...list.map(({ id }) => id)]));
        return;
      }
      case "close":
        if (this.#setup.keepsAll || session.messages.length === 0) return;
        tab.opened += 1;
        this.closed.add(conversation.id);
        return library.close();
      case "undo":
        if (!library.canUndo) return;
        tab.opened += 1;
        return library.undo();
      case "user":
        if (!this.#setup.hasUsers) return;
        this.user = this.user === "ada" ? "bob" : "ada";
        if (at % 2) client.setUserToken(() => this.user);
        return;
      case "cut":
        return this.browser.cut();
      case "down":
        this.server.isDown = true;
        return this.browser.cut();
      case "up":
        this.server.isDown = false;
        return;
    }
  }

  /** Decides about a call; the last decision sends all of them, like in the element. */
  async #mark(tab: Tab, at: number): Promise<void> {
    const { client, opened } = tab;
    const { session } = client;
    const calls = session.waitingCalls;
    const call = calls[at % Math.max(1, calls.length)];
    if (!call || !client.isReady) return;
    const decision = { approved: at % 3 !== 0 };
    const word: [string, Decision] = [call.callId, decision];
    this.deciding.push(word);
    session.mark(call.callId, decision);
    const { stored } = session.conversation;
    void stored.then(() => {
      this.deciding.splice(this.deciding.indexOf(word), 1);
      const calls = session.conversation.value.tree.flatMap((it) => (it.role === "assistant" ? waitingCalls(it) : []));
      const now = calls.find(({ callId }) => callId === call.callId);
      if (now && session.conversation.isStored) this.decisions.set(call.callId, now.decision);
      else if (!this.decisions.has(call.callId)) this.decisions.set(call.callId, decision);
    });
    if (!session.decisions || (await this.admit({ ...tab, opened }))) return;
    if (!session.decisions || session !== client.session) return;
    const { outcome } = await session.decide(session.decisions);
    this.log.push(`  decide: ${outcome}`);
  }

  /** Ends a page, and opens its tab again. */
  #die(number: number): void {
    const { page } = this.tabs[number] as Tab;
    page.isDead = true;
    this.browser.pages.delete(page);
    this.tabs[number] = this.open(page);
  }

  async kept(): Promise<Map<string, ConversationData>> {
    const store = new IndexedDbStore(this.#url);
    const kept = new Map<string, ConversationData>();
    for (const { id } of await store.list()) {
      const found = await store.load(id);
      assert.notEqual(found, UNREADABLE, "what is stored can be read");
      if (typeof found !== "object") continue;
      kept.set(id, dataOf(conversationOf(found.conversation)));
    }
    return kept;
  }

  async play(list: readonly Step[]): Promise<void> {
    const { browser } = this;
    this.tabs.push(this.open());
    await browser.settle(1_000);
    void browser.in(this.tabs[0]?.page, () => this.send(this.tabs[0] as Tab));
    await browser.settle(8_000);
    this.tabs.push(this.open(this.tabs[0]?.page));
    await browser.settle(1_000);
    for (const step of list) {
      this.log.push(`${step.what} in ${step.tab}, ${step.at}, then ${step.pace}`);
      const { page } = this.tabs[step.tab] as Tab;
      browser.in(page, () => void this.do(step).catch((error) => this.failures.push(error)));
      if (step.pace === "quiet") await browser.settle(1_000);
      else if (step.pace === "seconds") await browser.settle(12_000);
      else for (let count = 0; count < step.pace; count += 1) await browser.step();
      if (this.failures[0]) throw this.failures[0];
    }
    await this.#end();
  }

  async #end(): Promise<void> {
    const { browser } = this;
    this.log.push("end");
    this.server.isDown = false;
    await browser.settle(120_000);
    await this.#compare();
  }

  /** Asserts that both tabs show what is stored. */
  async #compare(): Promise<void> {
    const { browser } = this;
    // Without messages between tabs, a tab reads the store only when its user acts. A write that waited for the first
    // round reaches the other tab in the second.
    for (let looks = 0; looks < 2; looks += 1) {
      for (const { page, client } of this.tabs) {
        browser.in(page, () => {
          for (const { conversation } of client.library.sessions) void conversation.save();
        });
      }
      await browser.settle(20_000);
    }
    if (this.failures[0]) throw this.failures[0];
    let kept = new Map<string, ConversationData>();
    void this.kept().then(
      (it) => {
        kept = it;
      },
      (error) => this.failures.push(error),
    );
    await browser.settle(1_000);
    if (this.failures[0]) throw this.failures[0];
    for (const { client } of this.tabs) {
      const { session, library } = client;
      if (!session.conversation.isStored) continue;
      const stored = kept.get(session.conversation.id);
      assert.ok(stored, `what is shown is stored`);
      assert.deepEqual(plain(session.conversation.value), plain(stored), "a tab shows what is stored");
      assert.ok(!session.busy, `no run is left: ${session.status} ${JSON.stringify(session.conversation.value.run)}`);
      assert.ok(!library.isRestoring);
    }
    this.#checkKept(kept);
  }

  #checkKept(kept: ReadonlyMap<string, ConversationData>): void {
    const all = [...kept.values()];
    for (const { tree, head } of all) {
      const known = new Set<string | undefined>([undefined]);
      for (const { id, parent } of tree) {
        assert.ok(!known.has(id), "no id is given twice");
        assert.ok(known.has(parent), "each message stands behind its parent");
        known.add(id);
      }
      assert.ok(known.has(head), "what is in sight is there");
    }
    for (const said of this.said.values()) {
      const isGone = !this.#setup.keepsAll && (this.#setup.hasUsers || this.closed.has(said.conversation ?? ""));
      if (!said.isKept || said.never || isGone) continue;
      const has = (it: { readonly text?: string }) => it.text?.split("\n\n").includes(said.text);
      const inTree = all.flatMap(({ tree }) => tree.filter((it) => it.role === "user" && has(it)));
      const inQueue = all.flatMap(({ queued = [] }) => queued.filter(has));
      assert.equal(Math.min(1, inTree.length) + inQueue.length, 1, `${said.text} was accepted, and is there once`);
      const wasAsked = this.server.asked.some(({ message }) => message.split("\n\n").includes(said.text));
      assert.ok(inQueue.length === 0 || !wasAsked, `${said.text} was sent, and waits no longer`);
    }
    for (const [note, id] of this.notes) {
      // Without a user's message after it, it belongs to the tab and its user.
      if (this.#setup.hasUsers || this.closed.has(id)) continue;
      const list = all.flatMap(({ tree }) => tree.filter((it) => it.role === "page" && it.text === note));
      assert.equal(list.length, 1, `${note} was added, and is there once`);
    }
    for (const { message, state, run } of this.server.asked) {
      const questions = questionsIn(state);
      const last = message || questions.at(-1);
      const isQuestion = (it: Message) => it.role === "user" && it.text === last;
      // A continued run is identified by its answer, if that is complete.
      const isAnswer = (it: Message) => !message && it.role === "assistant" && it.run === run;
      const isKnown = all.some(({ tree }) => tree.some(isAnswer));
      const isAsked = isKnown ? isAnswer : isQuestion;
      const data = all.find(({ tree }) => tree.some(isAsked));
      const node = data?.tree.find(isAsked);
      if (!data || !node) continue;
      const path = branchOf(data.tree, message || isKnown ? node.parent : node.id);
      const asked = path.flatMap((it) => (it.role === "user" ? [it.text] : []));
      if (isKnown) assert.equal(last, asked.at(-1), "an answer goes on with the state of its own branch");
      const rest = [...asked];
      for (const it of questions) {
        const at = rest.indexOf(it);
        assert.ok(at >= 0, `${last} was sent with the state of its own branch: ${questions}, and not ${asked}`);
        rest.splice(0, at + 1);
      }
      const answered = path.flatMap((it, index) => {
        const question = path.slice(0, index).findLast(({ role }) => role === "user");
        return it.role === "assistant" && it.status === "done" && it.run && question?.role === "user"
          ? [question.text]
          : [];
      });
      if (message)
        for (const it of answered) assert.ok(questions.includes(it), `${last} was sent with ${it}, which was answered`);
    }
    const words = [...kept].flatMap(([id, { tree, name }]): [string, string | undefined][] => [
      [`the name of ${id}`, name],
      ...tree.flatMap((it): [string, string | undefined][] =>
        it.role === "assistant" && it.run ? [[`the rating of ${it.run}`, it.feedback?.rating]] : [],
      ),
    ]);
    for (const [name, word = "none"] of words) {
      const { all = [], stored = [] } = this.words.get(name) ?? {};
      const isGone = [...this.closed].some((id) => kept.has(id));
      assert.ok(isGone || stored.length === 0 || all.includes(word), `${name} is ${word}, of ${all}`);
    }
    for (const { approvals } of this.server.asked) {
      for (const { id, approved } of approvals ?? []) {
        const calls = all.flatMap(({ tree }) => tree.flatMap((it) => (it.role === "assistant" ? toolCalls(it) : [])));
        const call = calls.find(({ callId }) => callId === id);
        if (call?.decision) assert.equal(call.decision.approved, approved, "what was decided stands there");
      }
    }
  }
}

/** The comparable data, independent of the order of fields and of absent ones. */
const plain = ({ tree, head, states, queued, run, name, title, count }: ConversationData) =>
  JSON.parse(
    JSON.stringify({ texts: textsOf(tree), tree, head, states, queued: queued ?? [], run, name, title, count }),
  );

let runs = 0;
let pages = 0;

async function play(setup: Setup, list: readonly Step[], loadMs = 0): Promise<World> {
  const world = new World(setup);
  world.browser.loadMs = loadMs;
  const restore = world.browser.install();
  try {
    await world.play(list);
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${JSON.stringify(setup)}\n${world.log.join("\n")}`, { cause: error });
  } finally {
    for (const { page } of world.tabs) page.isDead = true;
    restore();
  }
  return world;
}

/** Loads all lazy code once, so that the runs do not wait for it. */
async function load(): Promise<void> {
  await Promise.all([
    ...[import("../../widget/conversations/all-conversations.ts"), import("../../widget/session/identity.ts")],
    ...[import("../../widget/session/site-diagnosis.ts"), import("../../widget/transport/http.ts")],
  ]);
  const setup: Setup = { seed: 1, channel: "prompt", keepsAll: true, hasUsers: true };
  const all = ["down", "send", "reload", "up", "send", "send", "reload", "show", "rename", "user", "discard"] as const;
  const list = all.map((what): Step => ({ what, tab: 0, at: 0, pace: "seconds" }));
  await play(setup, list, 25);
}

/** The shortest list of steps that fails in the same way. */
async function fewest(setup: Setup, list: readonly Step[], failure: Error): Promise<[readonly Step[], Error]> {
  const kindOf = ({ message }: Error) => message.split("\n")[0]?.replace(/[\d.]+/g, "");
  for (let size = Math.ceil(list.length / 2); size > 0; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < list.length; at += size) {
      const fewer = list.toSpliced(at, size);
      const again = await play(setup, fewer).then(
        () => undefined,
        (error: Error) => error,
      );
      if (again && kindOf(again) === kindOf(failure)) return fewest(setup, fewer, again);
    }
  }
  return [list, failure];
}

test("whatever people do in two tabs, nothing that was accepted is lost, sent twice or against their last word", async (t) => {
  // Ignores warnings for the page's owner.
  t.mock.method(console, "warn", () => {});
  await load();
  for (let seed = Number(SEED); seed < Number(SEED) + Number(RUNS); seed += 1) {
    const [setup, list] = stepsOf(seed);
    const failure = await play(setup, list).then(
      () => undefined,
      (error: Error) => error,
    );
    if (!failure) continue;
    const [few, why] = await fewest(setup, list, failure);
    throw new Error(`SEED=${seed} RUNS=1, of its ${list.length} steps ${few.length} are enough:\n${why.message}`, {
      cause: why,
    });
  }
});

/** Random operations: kinds, and numbers of their targets. */
const happenings = fc.array(fc.tuple(fc.nat(25), fc.nat(9), fc.nat(3)), { maxLength: 40 });
type Happenings = readonly (readonly [kind: number, which: number, variant: number])[];

/** Operations in any order, also about missing targets. Each run has its own id, and its events are in order. */
function operationsOf(list: Happenings, name = "", others = ""): Operation[] {
  const events = new Map<string, number>();
  let runs = 0;
  return list.map(([kind, which, variant], index): Operation => {
    const at = index + 1;
    const [id, callId, word] = [`m${which}`, `c${which % 3}`, `w${name}${index}`];
    const decision = variant > 0 ? { approved: variant > 1 } : undefined;
    const start = () => ({ run: `r${name}${++runs}`, at });
    const run =
      others && (runs === 0 || variant === 3) ? others : `r${name}${Math.max(1, runs - (variant === 3 ? 1 : 0))}`;
    const message = { text: word, files: [] };
    const happened = (event: RunEvent, state?: StoredState): Operation => {
      const number = (events.get(run) ?? 0) + 1;
      events.set(run, number);
      return { type: "event", event: { ...event, id: number }, run, reference: "r", at, ...(state && { state }) };
    };
    const call = { id: callId, tool: "pay", arguments: "{}" };
    const all: (() => Operation)[] = [
      () => ({ type: "ask", message: { ...message, ...(variant > 0 && { queued: [`q${which}`] }) }, ...start() }),
      () => ({ type: "ask", message, replaces: id, ...start() }),
      () => ({ type: "answer_again", ...(variant > 1 && { first: message }), ...start() }),
      () => ({
        type: "reopen",
        goesOn: variant > 1 ? { continue: true } : { approvals: [{ id: callId, approved: variant > 0 }] },
        ...start(),
      }),
      () => happened({ type: "token", data: word }),
      () => happened({ type: "token", data: word }),
      () => happened({ type: "thinking", data: word }),
      () => happened({ type: "tool_call", data: { ...call, status: "running" } }),
      () => happened({ type: "tool_approval", data: { ...call, text: "Pay?", expires_at: "2099-01-01T00:00:00Z" } }),
      () =>
        happened({
          type: "tool_result",
          data: { id: callId, tool: "pay", output: word, status: "completed", duration_ms: 1 },
        }),
      () => happened({ type: "done", data: word, state: {}, finish_reason: "stop" }, { rest: { signature: word } }),
      () =>
        happened(
          { type: "done", data: "", state: {}, finish_reason: variant > 1 ? "approval_required" : "length" },
          { rest: {} },
        ),
      () =>
        happened({
          type: "error",
          data: "",
          code: "internal",
          retryable: variant > 1,
          ...(variant === 3 && { continue: true }),
        }),
      () => ({ type: "add", message: { text: word }, at }),
      () => ({ type: variant > 1 ? "await" : "pause", run }),
      () => ({ type: "end", run, at, ...(variant > 1 && { failure: { code: "unreadable", retryable: true } }) }),
      () => ({ type: "close_again", run, answer: { ...emptyAnswer(id), status: "done" } }),
      () => ({ type: "stop", run }),
      () => ({ type: "withdraw", run }),
      () => ({ type: "rate", id, feedback: { rating: "up" }, ...(variant > 1 && { run }) }),
      () => ({ type: "mark", callId, decision }),
      () => ({ type: "switch", id }),
      () => ({ type: "rename", name: variant > 0 ? word : undefined }),
      () => ({ type: "queue", message: { id: `q${which}`, ...message } }),
      () => ({ type: "unqueue", ids: [`q${which}`] }),
      () => (variant > 1 ? { type: "hold" } : { type: "release", ids: [`q${which}`], lacking: [] }),
    ];
    return (all[kind] as () => Operation)();
  });
}

const writtenBy = (writer: string, list: readonly Operation[]) =>
  list.map((operation, index) => ({ operation, writer, number: index + 1, id: "", clock: 1 }));

test("whatever operations come in whichever order, what they make is whole, and is read as it was stored", () => {
  fc.assert(
    fc.property(happenings, (list) => {
      let conversation = conversationOf(EMPTY_DATA);
      for (const operation of operationsOf(list)) {
        const before = structuredClone(conversation);
        const next = apply(conversation, operation);
        assert.deepEqual(conversation, before, "what stood there is not changed");
        conversation = next;
        const { tree, head, messages, queued, run, count } = conversation;
        assert.deepEqual(messages, branchOf(tree, head));
        assert.ok(
          tree.every(({ id }) => Number(id.slice(1)) <= count) &&
            new Set(tree.map(({ id }) => id)).size === tree.length,
        );
        assert.equal(new Set(queued.map(({ id }) => id)).size, queued.length);
        assert.ok(
          queued.every(({ id }) => !tree.some((it) => it.role === "user" && it.queued?.includes(id))),
          "what was sent does not wait",
        );
        assert.ok(
          run?.answer === undefined || tree.some(({ id }) => id === run.answer),
          "the answer that comes is there",
        );
        assert.ok(
          tree.every((it) => it.role !== "assistant" || it.status !== "streaming" || it.id === run?.answer),
          "no other one comes",
        );
        const read = fromRow(structuredClone(rowOf("c", conversation, { agent: "", kept: "tab" }, 1)));
        assert.ok(read !== UNREADABLE);
        assert.deepEqual(plain(conversationOf(read)), plain(conversation));
      }
    }),
    PURE,
  );
});

const asks = (run: string): Operation => ({ type: "ask", message: { text: run, files: [] }, run, at: 1 });
const half: Operation = {
  type: "event",
  event: { type: "token", data: "Half", id: 1 },
  run: "r1",
  reference: "r",
  at: 1,
};
const note: Operation = { type: "add", message: { text: "A note" }, at: 1 };

for (const { where, list, texts } of [
  {
    where: "two tabs have asked at once",
    list: [asks("r1"), half, asks("r2")],
    texts: ["r1", "Half", "r2", ""],
  },
  {
    where: "one tab has asked while another one had the last message answered again",
    list: [asks("r1"), half, { type: "answer_again", run: "r2", at: 1 }],
    texts: ["r1", ""],
  },
  {
    where: "a message waits again, and the page has added something behind its answer",
    list: [asks("r1"), note, { type: "pause", run: "r1" }, { type: "await", run: "r1" }],
    texts: ["r1", "", "A note"],
  },
  {
    where: "a message is taken back, and the page has added something behind its answer",
    list: [asks("r1"), note, { type: "withdraw", run: "r1" }],
    texts: ["r1", "", "A note"],
  },
] satisfies { where: string; list: Operation[]; texts: string[] }[]) {
  test(`no answer comes but that of the run where ${where}`, () => {
    const { tree, messages, run } = (list as readonly Operation[]).reduce(apply, conversationOf(EMPTY_DATA));
    assert.deepEqual(textsOf(messages), texts);
    const coming = tree.filter((it) => it.role === "assistant" && it.status === "streaming");
    assert.deepEqual(
      coming.map(({ id }) => id),
      run ? [run.answer] : [],
    );
  });
}

test("operations in one order come to the same in each tab, in pieces, merged, or where some stand there twice", () => {
  fc.assert(
    fc.property(happenings, happenings, fc.nat(), (one, other, cut) => {
      const before = writtenBy("a", operationsOf(one, "a"));
      const empty = conversationOf(EMPTY_DATA);
      const base = fold(empty, before);
      const list = writtenBy("b", operationsOf(other, "b", base.run?.run));
      const whole = fold(empty, [...before, ...list]);
      assert.deepEqual(fold(base, list), whole);
      const at = cut % (list.length + 1);
      const twice = [...list.slice(0, at), ...before, ...list];
      assert.deepEqual(fold(base, twice), whole, "each counts once");
      // Operations without an effect are dropped by merging, and so are not in `seen`.
      const joined = { ...fold(base, merged(base, list)), seen: whole.seen };
      assert.deepEqual(joined, whole, "merged");
      assert.deepEqual(
        apply(base, { type: "rename", name: "x" }),
        apply(structuredClone(base), { type: "rename", name: "x" }),
      );
    }),
    PURE,
  );
});

test("a conversation knows what it has seen of the tabs that were the last to say something, and no more of them", () => {
  const by = (writer: string, number: number) => ({ writer, number, operation: note });
  const base = fold(conversationOf(EMPTY_DATA), [by("first", 1), by("gone", 7)]);
  const others = Array.from({ length: 80 }, (_, index) => [by(`w${index}`, 1), by("first", index + 2)]).flat();
  const { seen, tree } = fold(base, others);
  assert.equal(tree.length, 162);
  assert.deepEqual([Object.keys(seen).length, seen.first, seen.gone, seen.w79], [50, 81, undefined, 1]);
  assert.equal(fold(fold(base, others), [by("first", 81), by("w79", 1)]).tree.length, 162);
});

test("pieces of a text that two tabs have received count once, however each of them has joined them", () => {
  const pieces = fc.array(fc.tuple(fc.constantFrom("token", "thinking"), fc.boolean(), fc.boolean()), {
    maxLength: 12,
  });
  fc.assert(
    fc.property(pieces, fc.array(fc.boolean(), { maxLength: 24 }), (list, order) => {
      const base = apply(conversationOf(EMPTY_DATA), asks("r"));
      const events = list.map(([type], index): Operation => {
        const event = { type, data: `${index};`, id: index + 1 } as RunEvent;
        return { type: "event", event, run: "r", reference: "r", at: 1 };
      });
      const written = (writer: string, which: 1 | 2) => {
        const own = events.map((operation, index) => ({ writer, number: index + 1, operation }));
        const ends = list.flatMap((it, index) => (it[which] ? [index + 1] : []));
        return [0, ...ends].flatMap((from, index) => mergedFrom(base, own, from, ends[index]));
      };
      const tabs = [written("a", 1), written("b", 2)];
      const all = [...order, ...events.map(() => true), ...events.map(() => false)].flatMap(
        (isFirst) => tabs[isFirst ? 0 : 1]?.splice(0, 1) ?? [],
      );
      const whole = events.reduce(apply, base);
      assert.deepEqual({ ...fold(base, all), seen: {} }, whole);
    }),
    PURE,
  );
});

/** Some of a tab's operations, merged after all its earlier ones. */
function mergedFrom(base: Conversation, own: readonly NumberedOperation[], from: number, end?: number) {
  return merged(fold(base, own.slice(0, from)), own.slice(from, end));
}
