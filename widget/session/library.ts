/**
 * All conversations that the browser keeps, for elements that list them, which load this. Several tabs may show one:
 * each of them receives its answer, and one at a time goes on with it.
 */

import type { PendingChange } from "./conversation.ts";
import { isLeased, LEASE_MS, UNKNOWN, UNREADABLE } from "./lease.ts";
import { type AssistantMessage, type Message, markCall, waitingCalls } from "./messages.ts";
import { MAX_SIZE, soundSummary } from "./read-row.ts";
import type { StoredConversation, Summary } from "./row.ts";
import type { ConversationStore, Shown, Writer } from "./store.ts";

/** So many are kept, unless their messages are too many: the oldest go, those last that wait for the person. */
const MAX_CONVERSATIONS = 200;

/** How often old conversations are deleted because the browser has no room, at most. */
const MAKE_ROOM_EVERY_MS = 30_000;

/** How often it is tried while another element may go on. */
const CLAIM_EVERY_MS = 250;
const pause = () => new Promise((resolve) => setTimeout(resolve, CLAIM_EVERY_MS));

/** The element's keeper. */
export interface LibraryHost {
  /** Names the element in the store. */
  readonly writer: string;
  readonly shown: Shown;
  /** Present where nothing of it is shown: see `ConversationKeeper`. */
  readonly unread: typeof UNREADABLE | null | undefined;
  reload(): Promise<void>;
  readonly stored: Promise<void>;
  /** `isGone`: what was shown is not in the store any more. */
  show(id: string | undefined, isGone?: boolean): Promise<void>;
  changed(): void;
  save(): void;
  queue(change?: PendingChange): Promise<unknown>;
}

export interface LibraryOptions {
  readonly server: URL;
  readonly store: ConversationStore;
  /** Whose conversations they are, and the one that is shown. */
  readonly read: () => Pick<StoredConversation, "agent" | "user" | "run" | "tree">;
  /** Another text as soon as there is another message, or a run has begun or ended; empty without messages. */
  readonly progress: () => string;
  /** Ends a run at the server. */
  readonly cancel: (run: string) => void;
}

/** What elements of all tabs say to each other. */
interface News {
  readonly id: string;
  /** It was saved: see `LibraryOptions.progress`. */
  readonly revision?: number;
  readonly progress?: string;
  /** Nothing but its answer has grown: all that is listed of it is as it was. */
  readonly isGrowing?: boolean;
  /** The person calls it so. */
  readonly name?: string;
  /** It was deleted, `toMakeRoom` by nobody: whoever shows it keeps it. */
  readonly isGone?: boolean | "toMakeRoom";
  /** Something else is pending in it. */
  readonly isQueued?: boolean;
}

export class Library {
  /** How many old conversations were deleted to make room. */
  dropped = 0;
  /** How many of the user were there when they were listed last, also those with an agent of another name. */
  kept = 0;
  /** To be called when what is listed has changed. */
  readonly listeners = new Set<() => void>();
  readonly #keeper: LibraryHost;
  readonly #options: LibraryOptions;
  #channel: BroadcastChannel | undefined;
  #makingRoom = Promise.resolve();
  #makesRoomAfter = 0;
  /** What the person calls conversations that another element goes on with. */
  readonly #names = new Map<string, string>();

  constructor(keeper: LibraryHost, options: LibraryOptions) {
    this.#keeper = keeper;
    this.#options = options;
  }

  /** An open channel may keep the browser from showing a page again as it was left. */
  listen(isOn: boolean): void {
    if (isOn === (this.#channel !== undefined)) return;
    this.#channel?.close();
    this.#channel = undefined;
    if (!isOn) return;
    try {
      this.#channel = new BroadcastChannel(`agent-chat:${this.#options.server.href}`);
      this.#channel.onmessage = ({ data }) => this.#heard(data);
    } catch {
      // Firefox forbids it with storage: then no other tab has anything to say.
    }
  }

  tell(news: News): void {
    this.#channel?.postMessage({ ...news, writer: this.#keeper.writer });
    if (news.revision !== undefined && !news.isGrowing) void this.#makeRoom();
    this.#changed(news);
  }

  /**
   * For a save that the browser has no room for: deletes the oldest conversations, about as many characters as are to be
   * stored. `false`: that was done a moment ago. Browsers may take their time to have room again.
   */
  readonly makeRoomFor = async (chars: number): Promise<boolean> => {
    if (performance.now() < this.#makesRoomAfter) return false;
    this.#makesRoomAfter = performance.now() + MAKE_ROOM_EVERY_MS;
    await this.#makeRoom(chars);
    return true;
  };

  /**
   * Whether this element may go on with the conversation. Waits for another one that is about to; what that one has
   * said is shown then, and the answer is no.
   */
  async claim(): Promise<boolean> {
    const { store, progress } = this.#options;
    const { shown } = this.#keeper;
    if (shown.id === undefined || shown.savedAt === 0) return true;
    const before = progress();
    // A clock that is set back meanwhile would have it wait for long.
    for (const end = performance.now() + 2 * LEASE_MS; performance.now() < end; ) {
      if (await store.claim(shown.id, this.#writer).catch(() => true)) {
        this.#keeper.shown.followsUntil = 0;
        return true;
      }
      await this.#keeper.reload();
      // Another one has gone on with it: what was to be done was meant for what stood here before.
      if (before !== progress()) return false;
      await pause();
    }
    return false;
  }

  /** What another tab has stored, with what was done here since and is not stored. A message of the page is its last one. */
  withOwn(stored: StoredConversation): StoredConversation {
    const before = new Map(this.#keeper.shown.known?.tree.map((it) => [it.id, it]));
    const tree = new Map(stored.tree.map((it) => [it.id, it]));
    let { head, marks = 0 } = stored;
    let last = numberOf(stored.tree.at(-1));
    for (const own of this.#options.read().tree) {
      const [was, now] = [before.get(own.id), tree.get(own.id)];
      if (own === was || own.role === "user") continue;
      if (own.role === "page") {
        if (now?.role === "page" && now.at === own.at && now.text === own.text) continue;
        // The other tab may have given its id away.
        last = Math.max(last + 1, numberOf(own));
        const id = `m${last}`;
        tree.set(id, { ...own, id, parent: head });
        head = id;
      } else if (now?.role === "assistant") {
        const marked = withMarks(now, own, was?.role === "assistant" ? was : undefined);
        if (marked === now) continue;
        tree.set(own.id, marked);
        marks = (stored.marks ?? 0) + 1;
      }
    }
    const isSame = head === stored.head && marks === (stored.marks ?? 0);
    return isSame ? stored : { ...stored, tree: [...tree.values()], head, marks };
  }

  /** Whether something was done here that is not stored: another tab that has got as far may have done something else. */
  get #hasOwn(): boolean {
    const { known } = this.#keeper.shown;
    return known !== undefined && this.withOwn(known) !== known;
  }

  /** The conversations of all users, without those of tabs. */
  async #all(): Promise<readonly Summary[]> {
    return (await this.#options.store.list()).filter(({ kept }) => kept !== "tab").map(soundSummary);
  }

  /** The conversations of the user who is here, with this agent: the newest comes first. */
  async list(): Promise<readonly Summary[]> {
    const { agent, user = "" } = this.#options.read();
    const mine = (await this.#all()).filter((it) => it.user === user);
    this.kept = mine.length;
    return mine.filter((it) => it.agent === agent).toSorted((a, b) => b.updatedAt - a.updatedAt);
  }

  /** As the person calls it from now on; without a text by its first message again. Rejects where it keeps its name. */
  async rename(id: string, text: string): Promise<void> {
    const name = text.trim();
    this.#names.set(id, name);
    for (const end = performance.now() + 2 * LEASE_MS; performance.now() < end && this.#names.get(id) === name; ) {
      const outcome = await this.#name(id, name || undefined);
      // The tab that goes on with it stores the name with the rest, unless it has just gone.
      this.tell({ id, name, ...outcome });
      if (outcome) break;
      await pause();
    }
    if (this.#names.get(id) === name) this.#names.delete(id);
  }

  /** Resolves with the revision that has the name, if it was stored apart; with nothing if it could not be stored. */
  async #name(id: string, name: string | undefined): Promise<Pick<News, "revision"> | undefined> {
    const { shown, unread } = this.#keeper;
    if (shown.id === id && unread === undefined) {
      shown.name = name;
      this.#keeper.changed();
      this.#keeper.save();
      return {};
    }
    const row = await this.#options.store.load(id);
    if (row === UNREADABLE) throw new Error(UNREADABLE);
    if (!row || row.name === name) return {};
    return (await this.#put({ ...row, name }, row.revision)) ? { revision: row.revision + 1 } : undefined;
  }

  /** Deletes a conversation, ends its answer, and returns what brings it back. Rejects where it stays. */
  async remove(id: string): Promise<() => Promise<void>> {
    const { store, cancel } = this.#options;
    const wasShown = this.#keeper.shown.id === id;
    if (wasShown) await this.#keeper.show(undefined);
    await this.#keeper.stored;
    const row = await store.load(id).catch(() => undefined);
    const take = async () => {
      const bringBack = await store.copy(id);
      await store.delete(id);
      return bringBack;
    };
    const bringBack = await take().catch(async (error) => {
      if (wasShown) await this.#keeper.show(id);
      throw error;
    });
    if (row && row !== UNREADABLE && row.run) cancel(row.run.run);
    this.tell({ id, isGone: true });
    return async () => {
      await bringBack();
      if (wasShown) await this.#keeper.show(id);
      this.tell({ id });
    };
  }

  /** Deletes all that is kept of the user, also what an agent of another name has said here. */
  async clear(): Promise<void> {
    const { user = "" } = this.#options.read();
    for (const it of await this.#all()) if (it.user === user) await this.remove(it.id);
    this.dropped = 0;
  }

  get #writer(): Writer {
    return { writer: this.#keeper.writer, revision: this.#keeper.shown.revision };
  }

  #put(row: StoredConversation, revision: number): Promise<boolean> {
    return this.#options.store.save({ ...row, revision: row.revision + 1 }, { writer: this.#keeper.writer, revision });
  }

  /** One after the other: two saves may both find that there is no room, and each would delete the same one. */
  #makeRoom(needed = 0): Promise<void> {
    this.#makingRoom = this.#makingRoom.then(() => this.#deleteOldest(needed));
    return this.#makingRoom;
  }

  async #deleteOldest(needed: number): Promise<void> {
    const all = await this.#all().catch(() => []);
    let count = all.length;
    let chars = all.reduce((sum, { size }) => sum + size, 0);
    const maxChars = Math.min(MAX_SIZE, chars - needed);
    const hasRoom = () => count <= MAX_CONVERSATIONS && chars <= maxChars;
    const waiting: Summary[] = [];
    const drop = async ({ id, size }: Summary) => {
      count -= 1;
      chars -= size;
      await this.#options.store.delete(id).catch(() => undefined);
      this.dropped += 1;
      this.tell({ id, isGone: "toMakeRoom" });
    };
    for (const it of all.toSorted((a, b) => a.updatedAt - b.updatedAt)) {
      if (hasRoom()) return;
      if (it.id === this.#keeper.shown.id || isLeased(it)) continue;
      if (await this.#isWaiting(it.id)) waiting.push(it);
      else await drop(it);
    }
    for (const it of waiting) if (!hasRoom()) await drop(it);
  }

  /** Whether a decision of the person is open in it, or something that they wrote is not sent, as far as it can be read. */
  async #isWaiting(id: string): Promise<boolean> {
    const row = await this.#options.store.load(id).catch((): typeof UNREADABLE => UNREADABLE);
    if (row === UNREADABLE) return true;
    const { pending = [], tree = [] } = row ?? {};
    return pending.length > 0 || tree.some((it) => it.role === "assistant" && waitingCalls(it).length > 0);
  }

  #heard(news: News): void {
    const { id, revision, progress, name, isGone, isQueued } = news;
    const { shown } = this.#keeper;
    if (name !== undefined) this.#names.delete(id);
    if (id === shown.id) {
      if (isQueued) void this.#keeper.queue();
      if (name !== undefined) shown.name = name || undefined;
      if (isGone === "toMakeRoom") {
        // Nobody else writes what is gone.
        Object.assign(shown, UNKNOWN, { followsUntil: 0 });
        this.#keeper.save();
      } else if (isGone) void this.#keeper.show(undefined, true);
      else if (revision !== undefined) {
        shown.isWriter = false;
        shown.followsUntil = Date.now() + LEASE_MS;
        if (progress === this.#options.progress() && !this.#hasOwn) {
          shown.revision = revision;
          // Both have received the same answer: what this one has to say of it need not wait.
          if (!this.#options.read().run) shown.followsUntil = 0;
        } else void this.#keeper.reload();
      }
    }
    this.#changed(news);
  }

  #changed({ isGrowing, isQueued }: News): void {
    // Nothing of it is listed.
    if (isGrowing || isQueued) return;
    for (const listener of this.listeners) listener();
  }
}

const numberOf = (message: Message | undefined): number => Number(message?.id.slice(1) ?? 0);

/** An answer as another tab has it, with the rating and the decisions of this one that are new since `was`. */
function withMarks(now: AssistantMessage, own: AssistantMessage, was?: AssistantMessage): AssistantMessage {
  const { feedback } = own;
  let marked = feedback === was?.feedback ? now : { ...now, feedback };
  const decided = new Map(was && waitingCalls(was).map(({ callId, decision }) => [callId, decision]));
  const open = new Set(waitingCalls(now).map(({ callId }) => callId));
  for (const { callId, decision } of waitingCalls(own))
    if (open.has(callId) && decision !== decided.get(callId)) marked = markCall(marked, callId, decision);
  return marked;
}
