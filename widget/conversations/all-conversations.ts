/** Lists, renames and deletes the conversations that the browser keeps. Loaded if there are any. */

import { toJson } from "../../server/protocol/json.ts";
import type { ChatSession } from "./chat-session.ts";
import { conversationOf } from "./conversation.ts";
import { waitingCalls } from "./messages.ts";
import { type Appended, OpenConversation } from "./open-conversation.ts";
import { MAX_SIZE, soundSummary } from "./read-row.ts";
import { type StoredConversation, type Summary, UNREADABLE } from "./row.ts";
import type { ConversationStore } from "./store.ts";
import { clearSlot, nameOf, readSlot, type SlotContent } from "./tab-slot.ts";

/** Maximum number of conversations, within `MAX_SIZE`. The oldest are deleted first, those awaiting the user last. */
const MAX_CONVERSATIONS = 200;

/** Minimum time between deletions of old conversations because the browser has no room. */
const MAKE_ROOM_EVERY_MS = 30_000;

/** Time after which conversations of closed tabs are deleted. */
const DELETE_AFTER_MS = 24 * 60 * 60_000;

/** A conversation that changed this recently during an answer is shown by another tab. */
const IN_USE_FOR_MS = 5_000;

/** A message between the elements of all tabs about a conversation. */
export interface News {
  readonly id: string;
  readonly appended?: Appended;
  /** It was deleted; `unlessShown`: to make room, or for one tab, and a tab that shows it keeps it. */
  readonly isGone?: true | "unlessShown";
}

/** The conversations of one element: see `Library`. */
export interface LibraryHost {
  readonly sessions: readonly ChatSession[];
  readonly shownId: string | undefined;
  /** Drafts by the id of the conversation; that of a new one under an empty string. */
  drafts: SlotContent["drafts"];
  show(id: string): Promise<void>;
  /** A conversation was deleted. If it is open here, it is not stored again. */
  gone(id: string): void;
  post(news: News): void;
}

interface Options {
  readonly server: URL;
  readonly store: ConversationStore;
  readonly owner: () => { readonly agent: string; readonly user: string };
  readonly cancel: (run: string) => void;
}

export class AllConversations {
  /** How many old conversations were deleted to make room. */
  dropped = 0;
  /** Number of the user's conversations when they were last listed, including those with an agent of another name. */
  kept = 0;
  readonly #library: LibraryHost;
  readonly #options: Options;
  #makingRoom = Promise.resolve();
  #makesRoomAfter = 0;

  constructor(library: LibraryHost, options: Options) {
    this.#library = library;
    this.#options = options;
  }

  /** The conversations of all users, without those of single tabs. */
  async #all(): Promise<readonly Summary[]> {
    return (await this.#options.store.list()).filter(({ kept }) => kept !== "tab").map(soundSummary);
  }

  /** The conversations of the current user with this agent, newest first. */
  async list(): Promise<readonly Summary[]> {
    const { agent, user } = this.#options.owner();
    const mine = (await this.#all()).filter((it) => it.user === user);
    this.kept = mine.length;
    return mine.filter((it) => it.agent === agent).toSorted((a, b) => b.updatedAt - a.updatedAt);
  }

  /** A conversation with its messages. An open one comes from its session: not all of it may be stored yet. */
  async load(id: string): Promise<Pick<StoredConversation, "tree" | "head"> | typeof UNREADABLE | undefined> {
    const open = this.#openAs(id);
    if (open) return open.value;
    const found = await this.#options.store.load(id);
    return found === undefined || found === UNREADABLE ? found : found.conversation;
  }

  #openAs(id: string): OpenConversation | undefined {
    return this.#library.sessions.map((it) => it.conversation).find((it) => it.id === id && it.isStored);
  }

  /** Renames a conversation; an empty text restores the agent's title or first message. Rejects if the name stays. */
  async rename(id: string, text: string): Promise<void> {
    const { store } = this.#options;
    const name = text.trim() || undefined;
    const open = this.#openAs(id);
    if (open) {
      open.change({ type: "rename", name });
      await open.stored;
      return;
    }
    const found = await store.load(id);
    if (found === UNREADABLE) throw new Error(UNREADABLE);
    if (!found) return;
    const { agent, user = "", kept } = found.conversation;
    const conversation = new OpenConversation(
      {
        store: () => store,
        owner: () => ({ agent, user, kept }),
        makeRoom: async () => false,
        onAppend: (id, appended) => this.#library.post({ id, appended }),
      },
      id,
    );
    conversation.open(found);
    conversation.change({ type: "rename", name });
    await conversation.stored;
    if (conversation.isNotKept) throw new Error("it was not stored");
  }

  /** Deletes a conversation and ends its answer. Resolves with a function that restores it. Rejects if it stays. */
  async remove(id: string): Promise<() => Promise<void>> {
    const { store, cancel } = this.#options;
    const wasShown = this.#library.shownId === id;
    await this.#openAs(id)?.save();
    const found = await store.load(id).catch(() => undefined);
    const bringBack = await store.copy(id);
    await store.delete(id);
    const library = this.#library;
    const { [id]: written } = library.drafts;
    library.gone(id);
    const run = found && found !== UNREADABLE ? found.conversation.run : undefined;
    if (run) cancel(run.run);
    this.#library.post({ id, isGone: true });
    return async () => {
      await bringBack();
      if (written) {
        const { "": ofNew, ...others } = library.drafts;
        const hasMoved = toJson(ofNew) === toJson(written);
        library.drafts = { ...(hasMoved ? others : library.drafts), [id]: written };
      }
      if (wasShown) await library.show(id);
      this.#library.post({ id });
    };
  }

  /** Deletes all conversations of the user, including those with an agent of another name. */
  async clear(): Promise<void> {
    const { user } = this.#options.owner();
    for (const it of await this.#all()) if (it.user === user) await this.remove(it.id);
    this.dropped = 0;
  }

  /**
   * Deletes conversations of closed tabs; if `user` is named, tabs' conversations of all other users; and the library's
   * conversations of the user `leaving`, whose answers end.
   */
  async purge(user = "", leaving?: string): Promise<void> {
    const { server, store, cancel } = this.#options;
    if (user) forgetSlots(server, user);
    const before = Date.now() - DELETE_AFTER_MS;
    // Damaged conversations stay.
    for (const it of await store.list().catch(() => [])) {
      const isForeign = user !== "" && it.user && it.user !== user;
      const isOld = it.updatedAt > 0 && it.updatedAt < before;
      const isLeaving = it.user !== "" && it.user === leaving;
      if (!(it.kept === "tab" ? isForeign || isOld : isLeaving) || it.id === this.#library.shownId) continue;
      const found = isLeaving ? await store.load(it.id).catch(() => undefined) : undefined;
      await store.delete(it.id).catch(() => undefined);
      if (found && found !== UNREADABLE && found.conversation.run) cancel(found.conversation.run.run);
    }
  }

  /**
   * For a save that the browser has no room for: deletes the oldest conversations, about `chars` characters of them.
   * `false`: that was done a moment ago. Browsers may take a while to free the room.
   */
  async makeRoomFor(chars: number): Promise<boolean> {
    if (performance.now() < this.#makesRoomAfter) return false;
    this.#makesRoomAfter = performance.now() + MAKE_ROOM_EVERY_MS;
    await this.makeRoom(chars);
    return true;
  }

  /** Deletes the oldest conversations if there are too many, or about `chars` characters of them. */
  makeRoom(chars = 0): Promise<void> {
    this.#makingRoom = this.#makingRoom.then(() => this.#drop(chars)).catch(() => undefined);
    return this.#makingRoom;
  }

  async #drop(chars: number): Promise<void> {
    const list = await this.#all();
    let [count, size] = [list.length, list.reduce((sum, it) => sum + it.size, 0)];
    const most = Math.min(MAX_SIZE, size - chars);
    const hasRoom = () => count <= MAX_CONVERSATIONS && size <= (chars ? most : MAX_SIZE);
    const waiting: Summary[] = [];
    const drop = async ({ id, size: its }: Summary) => {
      await this.#options.store.delete(id).catch(() => undefined);
      [count, size] = [count - 1, size - its];
      this.dropped += 1;
      this.#library.post({ id, isGone: "unlessShown" });
    };
    const open = new Set(this.#library.sessions.map(({ conversation }) => conversation.id));
    for (const it of list.toSorted((a, b) => a.updatedAt - b.updatedAt)) {
      if (hasRoom()) return;
      if (open.has(it.id) || (it.isRunning && Date.now() - it.updatedAt < IN_USE_FOR_MS)) continue;
      if (await this.#isWaiting(it.id)) waiting.push(it);
      else await drop(it);
    }
    for (const it of waiting) if (!hasRoom()) await drop(it);
  }

  /** Whether a decision of the user is open in it, or a message is not sent. `true` also if it cannot be read. */
  async #isWaiting(id: string): Promise<boolean> {
    const found = await this.#options.store.load(id).catch((): typeof UNREADABLE => UNREADABLE);
    if (!found) return false;
    if (found === UNREADABLE) return true;
    const { queued, tree } = conversationOf(found.conversation);
    return queued.length > 0 || tree.some((it) => it.role === "assistant" && waitingCalls(it).length > 0);
  }
}

/** Clears the slots of all users but one, including those of elements of other pages. */
function forgetSlots(server: URL, user: string): void {
  for (const name of namesInTab()) {
    // A longer address is another server's.
    const isSlot = /^([@#]|$)/.test(name.split(nameOf(server))[1] ?? "/");
    const owner = isSlot && readSlot(name)?.user;
    if (owner && owner !== user) clearSlot(name);
  }
}

function namesInTab(): string[] {
  try {
    return Object.keys(window.sessionStorage);
  } catch {
    // Blocked: nothing was stored.
    return [];
  }
}
