/**
 * The conversations of one element: the one that is shown, and those whose answers are still running. All are stored in
 * the browser; which one a tab shows, and the drafts, are stored in the tab's `sessionStorage`.
 */

import { toJson } from "../../server/protocol/json.ts";
import { lazy } from "../loading/lazy.ts";
import type { AllConversations, LibraryHost, News } from "./all-conversations.ts";
import type { ChatSession } from "./chat-session.ts";
import { databaseNames } from "./database-names.ts";
import { OpenConversation } from "./open-conversation.ts";
import type { Summary, UNREADABLE } from "./row.ts";
import type { ConversationStore } from "./store.ts";
import {
  clearSlot,
  type Draft,
  isEmpty,
  NOTHING_WRITTEN,
  type Place,
  readSlot,
  type SlotContent,
  slotOf,
  type Written,
  writeSlot,
} from "./tab-slot.ts";

/** Delay before the scroll position and drafts are stored. */
const SAVE_AFTER_MS = 1_000;

/** How long the user can undo closing a conversation, where there is no list of conversations. */
const UNDO_FOR_MS = 10_000;

/** Loaded for elements that keep all conversations, and when something is deleted. */
const all = lazy(() => import("./all-conversations.ts"), "AllConversations");

export interface LibraryOptions {
  readonly server: URL;
  /** Id of the element, or an empty string: it distinguishes several chats of one server in one tab. */
  readonly id: string;
  /** Loads the store of the conversations. Rejects if its code cannot be loaded. */
  readonly store: () => Promise<ConversationStore>;
  readonly sessionOf: (conversation: OpenConversation) => ChatSession;
  /** The owner of the conversations: the name of the agent, and the user as `/api/info` names them. */
  readonly owner: () => { readonly agent: string; readonly user: string };
  /** Whether the browser keeps all conversations, and lists them. */
  readonly keepsAll: () => boolean;
  /** Whether data stored for this user, or (empty) without one, may be shown: none until the current user is known. */
  readonly mayShow: (user: string) => boolean;
  /** Whether the result of `mayShow` may change soon, because the current user is not known yet. */
  readonly isAsking: () => boolean;
  /** Whether a stored conversation was with another agent at this address. The current agent does not know it. */
  readonly isOtherAgent: (agent: string) => boolean;
  /** Called when data that another user has left here was deleted without being shown. */
  readonly onErased: () => void;
  /** Called when another conversation is shown, or about to be. */
  readonly onShow: () => void;
  /** Called when a conversation has been read: its running answer may continue. */
  readonly onRestored: () => void;
  /** Called with the draft of an earlier page load or another page of this tab: by `open`, and when the page is shown again. */
  readonly onDraft: (draft: Draft) => void;
  /** Called when another conversation is shown, with its draft. */
  readonly onSwitch: (written: Written) => void;
  /** The reader's scroll position; absent at the end. */
  readonly place?: (() => Place | undefined) | undefined;
  readonly onChange: () => void;
  /** Ends a run at the server. */
  readonly cancel: (run: string) => void;
}

/**
 * A stored conversation that cannot be shown, or not yet: it is still being read, another version of the chat has
 * written it, it is damaged, or the browser's storage cannot be read now. It stays stored.
 */
export interface AbsentConversation {
  readonly id: string;
  readonly why: "reading" | typeof UNREADABLE | "unavailable";
}

export class Library implements LibraryHost {
  shown: ChatSession;
  /** The stored conversation that belongs here but is not loaded (yet). A message that is sent here starts a new one. */
  absent: AbsentConversation | undefined;
  /** The name of the agent of the conversation that was read last. */
  agent = "";
  /** The scroll position of an earlier page load; absent at the end. */
  restoredPlace: Place | undefined;
  /** Resolves when the earlier conversation, if any, is loaded. A message sent before that would replace it. */
  restored: Promise<void> = Promise.resolve();
  /** Resolves when the stored data of its files is loaded, too. */
  filled: Promise<unknown> = Promise.resolve();
  /** Drafts by the id of the conversation; that of a new one under an empty string. */
  drafts: SlotContent["drafts"] = {};
  /** Called when the list of conversations has changed. */
  readonly listeners = new Set<() => void>();
  readonly #options: LibraryOptions;
  /** Sessions that are not shown but still needed: their answer is running, or closing them can be undone. */
  readonly #open = new Set<ChatSession>();
  /** Conversations that are no longer open and still being stored. */
  readonly #storing = new Set<OpenConversation>();
  /** The name of the tab's slot (see `tab-slot.ts`); absent while nothing is stored. */
  #slot: string | undefined;
  /** Id of the conversation in the slot, as this element last read or wrote it. */
  #slotId: string | undefined;
  /** Present once it is loaded. */
  #store: ConversationStore | undefined;
  #edit: Draft["edit"];
  /** Whether the shown conversation is still empty. */
  #isNew = true;
  /** Whether stored data must stay untouched until its user is known. */
  #isHeld = false;
  /** Whether the browser has no room for the tab's own storage. */
  #isSlotFull = false;
  #channel: BroadcastChannel | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed: { readonly session: ChatSession; readonly timer: ReturnType<typeof setTimeout> } | undefined;
  #all: AllConversations | undefined;
  #hasKept = false;

  constructor(options: LibraryOptions) {
    this.#options = options;
    this.shown = this.#new();
  }

  /** Whether an earlier conversation is about to be shown. */
  get isRestoring(): boolean {
    return this.absent?.why === "reading";
  }

  /** Id of the conversation that is shown, once there is something in it. */
  get shownId(): string | undefined {
    const { conversation, messages } = this.shown;
    if (this.absent) return this.absent.id;
    return conversation.isStored || messages.length > 0 ? conversation.id : undefined;
  }

  /** Whether a reload will find nothing although the conversation should be kept. */
  get isNotKept(): boolean {
    return this.#slot !== undefined && (this.shown.conversation.isNotKept || this.#isSlotFull);
  }

  /** Resolves when all changes so far are stored, or storing them has failed. */
  get stored(): Promise<unknown> {
    return this.shown.conversation.stored;
  }

  /** All sessions of this element, the one that is shown included. */
  get sessions(): readonly ChatSession[] {
    return [this.shown, ...this.#open];
  }

  /** The conversations of all sessions, and those still being stored. */
  get #conversations(): readonly OpenConversation[] {
    return [...this.sessions.map(({ conversation }) => conversation), ...this.#storing];
  }

  /** Begins to use the tab's slot and shows its conversation. One that this element shows already stays. */
  open(): void {
    if (this.#slot) return;
    const { server, id } = this.#options;
    this.#slot = slotOf(server, id);
    this.#listen(true);
    this.#isHeld = true;
    this.userChanged();
  }

  /** To be called when the current user is known, or cannot be found out. */
  userChanged(): void {
    if (!this.#slot || !this.#isHeld) return;
    const { owner, onDraft, mayShow, isAsking, onErased, keepsAll } = this.#options;
    let content = readSlot(this.#slot);
    if (content && !mayShow(content.user)) {
      const { id } = content;
      this.absent = isAsking() && id !== undefined ? { id, why: "reading" } : undefined;
      if (isAsking() || !owner().user) return;
      if (id && !keepsAll()) void this.#delete(id);
      clearSlot(this.#slot);
      content = undefined;
      onErased();
    }
    this.#isHeld = false;
    this.#slotId = content?.id;
    // An element that was put back into the page still has its draft, with the bytes of the files.
    const isDraftNew = this.#takeDrafts(content);
    const isHere = content?.id === this.shown.conversation.id || this.shown.messages.length > 0;
    if (isHere) void this.shown.conversation.save();
    else if (content) {
      this.restoredPlace = content.place;
      if (isDraftNew) onDraft(this.#draftOf(content.id));
      if (content.id !== undefined) this.restored = this.#read(content.id, content.reported);
    }
    this.#saveSlot();
    void this.restored.then(() => this.purge(owner().user)).then(() => this.look());
  }

  /** Reads a conversation and shows it, in place of what is shown. */
  async #read(id: string, reported?: SlotContent["reported"]): Promise<void> {
    const { isOtherAgent, onRestored, onChange } = this.#options;
    const reading: AbsentConversation = { id, why: "reading" };
    this.absent = reading;
    const found = await this.#stores()
      .then((store) => store.load(id))
      .catch(() => "unavailable" as const);
    // Another conversation is shown by now, or about to be.
    if (this.absent !== reading || !this.#slot) return;
    const isHere = typeof found === "object";
    this.absent = isHere || !found ? undefined : { id, why: found };
    if (isHere && !isOtherAgent(found.conversation.agent)) {
      const session = this.#new(id);
      const { conversation } = session;
      this.shown = session;
      this.#isNew = false;
      this.agent = found.conversation.agent;
      conversation.open(found);
      session.restore(reported?.run === conversation.value.run?.run ? reported?.after : 0);
      onRestored();
      // Another tab may have continued it since it was read, which this tab would have missed.
      void conversation.save();
      const fill = found.withFiles?.();
      if (fill) this.filled = fill.then((it) => conversation.fill(it)).catch(() => undefined);
    }
    this.#saveSlot();
    onChange();
  }

  #new(id?: string): ChatSession {
    const { owner, keepsAll, sessionOf } = this.#options;
    const conversation = new OpenConversation(
      {
        store: () => this.#storeToSave(),
        owner: () => ({ ...owner(), kept: keepsAll() ? "browser" : "tab" }),
        makeRoom: async (chars) => (await this.all())?.makeRoomFor(chars) ?? false,
        onAppend: (id, appended) => this.#appended({ id, appended }),
      },
      id,
    );
    return sessionOf(conversation);
  }

  /** To be called after every change of a session. */
  changed(session: ChatSession): void {
    if (session !== this.shown) {
      if (session.goesOn || session === this.#closed?.session) return;
      if (this.#open.delete(session)) void this.#finish(session);
      return;
    }
    const { id, value } = session.conversation;
    if (value.isUnread) session.conversation.change({ type: "read" });
    if (!this.#isNew || value.tree.length === 0) {
      this.#saveSoon();
      return;
    }
    this.#isNew = false;
    this.absent = undefined;
    this.#moveDraft("", id);
    // Closing can no longer be undone, and the server forgets the closed conversation before it answers in this one.
    void this.forgetClosed();
    // At once, in case the browser crashes: the message that was sent is found by the id of its conversation.
    this.#saveSlot();
  }

  #saveSoon(): void {
    this.#timer ??= setTimeout(() => this.#saveSlot(), SAVE_AFTER_MS);
  }

  /** Whether the library has, or had, a conversation. Otherwise the code of the list is not loaded. */
  get hasKept(): boolean {
    return this.#hasKept && this.#options.keepsAll();
  }

  /** Checks whether the library has anything to list. */
  async look(): Promise<void> {
    const { keepsAll, onChange } = this.#options;
    if (!keepsAll() || this.#hasKept) return;
    const summaries = await this.#list().catch(() => []);
    if (this.#hasKept || !summaries.some(({ kept }) => kept !== "tab")) return;
    this.#hasKept = true;
    await this.all();
    onChange();
  }

  /** Lists and deletes conversations; absent if its code cannot be loaded. */
  async all(): Promise<AllConversations | undefined> {
    const [module, store] = await Promise.all([all.load(), this.#stores()]).catch(() => []);
    if (module && store) this.#all ??= new module.AllConversations(this, { ...this.#options, store });
    return this.#all;
  }

  /** Shows another conversation, or a new one. The previous one stays stored, and its answer continues. */
  async show(id: string | undefined): Promise<void> {
    if (!this.#slot || this.#isHeld || id === this.shownId) return;
    const known = [...this.#open].find(({ conversation }) => conversation.id === id);
    this.#leaveShown();
    this.#present(known ?? this.#new());
    if (!known && id !== undefined) this.restored = this.#read(id);
    this.#options.onSwitch(this.#draftOf(id));
    await this.restored;
    void this.look();
    this.#options.onChange();
  }

  #leaveShown(): void {
    if (this.shown.goesOn) this.#open.add(this.shown);
    else void this.#finish(this.shown);
    this.restoredPlace = undefined;
    this.absent = undefined;
  }

  async #finish({ conversation, transport }: ChatSession): Promise<void> {
    transport.close();
    this.#storing.add(conversation);
    // The code of the store may still be loading.
    if (this.#slot) await this.#stores().catch(() => undefined);
    await conversation.save();
    this.#storing.delete(conversation);
  }

  #present(session: ChatSession): void {
    this.#open.delete(session);
    this.shown = session;
    this.#isNew = session.messages.length === 0;
    this.#saveSlot();
    this.#options.onShow();
    this.#options.onChange();
  }

  /**
   * Shows a new conversation in place of this one. For `UNDO_FOR_MS`, `undo` brings the old one back as it was; its
   * answer continues in the meantime.
   */
  close(): void {
    if (this.shown.messages.length === 0) return;
    void this.forgetClosed();
    const session = this.shown;
    this.#leaveShown();
    this.#moveDraft(session.conversation.id, "");
    this.#open.add(session);
    this.#closed = { session, timer: setTimeout(() => void this.forgetClosed(), UNDO_FOR_MS) };
    this.#present(this.#new());
  }

  get canUndo(): boolean {
    return this.#closed !== undefined && this.shown.messages.length === 0;
  }

  /** Brings back the conversation that was closed. */
  undo(): void {
    const closed = this.#closed;
    if (!closed) return;
    clearTimeout(closed.timer);
    this.#closed = undefined;
    this.#leaveShown();
    this.#moveDraft("", closed.session.conversation.id);
    this.#present(closed.session);
  }

  /** Deletes the conversation that was closed, which can no longer be brought back. */
  async forgetClosed(): Promise<void> {
    const closed = this.#closed;
    if (!closed) return;
    clearTimeout(closed.timer);
    this.#closed = undefined;
    await this.#remove(closed.session);
  }

  /** Deletes what is shown, and ends its answer. Resolves when nothing is left. */
  async reset(): Promise<void> {
    this.close();
    this.absent = undefined;
    this.#saveSlot();
    await this.forgetClosed();
  }

  /** Ends the answer and deletes the conversation. Unless `isForAll`, a duplicate of this tab keeps it. */
  async #remove(session: ChatSession, isForAll = this.#options.keepsAll()): Promise<void> {
    const { conversation } = session;
    const isStored = conversation.isStored || this.#slot !== undefined;
    this.#open.delete(session);
    conversation.endStoring();
    session.close(true);
    this.drafts = without(this.drafts, conversation.id);
    if (!isStored) return;
    // At the same time: if the page is left now, the deletion is already queued behind the pending writes.
    await Promise.all([conversation.stored, this.#delete(conversation.id)]);
    this.post({ id: conversation.id, isGone: isForAll || "unlessShown" });
  }

  /**
   * For `AllConversations`: a conversation was deleted. If it is open here, it is not stored again. If it is shown, its
   * draft moves to a new conversation, unless that has a draft of its own.
   */
  gone(id: string): void {
    const ofNew = this.drafts[""];
    const isShown = id === this.shownId;
    for (const session of this.sessions) {
      if (session.conversation.id !== id) continue;
      session.conversation.endStoring();
      session.close();
      this.#open.delete(session);
    }
    if (isShown && !ofNew) this.#moveDraft(id, "");
    else this.drafts = without(this.drafts, id);
    if (isShown) {
      this.#leaveShown();
      this.#present(this.#new());
      if (ofNew) this.#options.onSwitch(ofNew);
    }
    this.#saveSoon();
  }

  /** Removes everything of a user who has left. `keepsRows`: their conversations stay stored in the library. */
  async forget(keepsRows = false): Promise<void> {
    void this.forgetClosed();
    const { sessions } = this;
    const conversations = this.#conversations;
    this.#leaveShown();
    this.#open.clear();
    this.#takeDrafts();
    this.#present(this.#new());
    if (this.#slot) clearSlot(this.#slot);
    const removed = sessions.map((session) => (keepsRows ? session.close() : this.#remove(session, true)));
    for (const conversation of conversations) {
      if (keepsRows) conversation.leave();
      // A pending write would otherwise be stored as the next user's.
      conversation.endStoring();
    }
    await Promise.all(removed);
    if (this.#isHeld) this.userChanged();
  }

  #draftOf(id = ""): Draft {
    return { ...(this.drafts[id] ?? NOTHING_WRITTEN), ...(this.#edit && { edit: this.#edit }) };
  }

  /** Takes over the drafts of the slot. Returns whether they differ from those here, which still have their files. */
  #takeDrafts({ drafts = {}, edit }: Partial<SlotContent> = {}): boolean {
    const isNew = toJson([drafts, edit]) !== toJson([this.drafts, this.#edit]);
    if (isNew) [this.drafts, this.#edit] = [drafts, edit];
    return isNew;
  }

  /** Saves the draft of the conversation that is shown. */
  saveDraft(draft: Draft): void {
    const { edit, ...written } = draft;
    const key = this.shownId ?? "";
    const before = this.#draftOf(this.shownId);
    this.drafts = isEmpty(written) ? without(this.drafts, key) : { ...this.drafts, [key]: written };
    this.#edit = edit;
    if (toJson(before) === toJson(draft)) return;
    // A text that was sent is stored as a message. It must not come back as a draft, too, if the browser crashes now.
    const isSent = (before.text && !draft.text) || (before.edit && !draft.edit);
    if (isSent) this.#saveSlot();
    else this.#saveSoon();
  }

  /**
   * To be called on `visibilitychange`: a phone may grant no later moment. A page that was left before has saved everything
   * and does not read the store: WebKit freezes the page, and the transactions of other pages would wait for its own.
   */
  save(): void {
    this.#saveSlot();
    for (const { conversation } of this.sessions) if (!conversation.isSaved) void conversation.save();
  }

  /** To be called when the page is left; the browser may show it again as it was. */
  suspend(): void {
    void this.forgetClosed();
    this.#saveSlot();
    for (const conversation of this.#conversations) conversation.leave();
    this.#listen(false);
  }

  /** To be called on `pageshow` if the page was left before: another page may have continued its conversations. */
  resume(): void {
    if (!this.#slot) return;
    this.#listen(true);
    if (this.#isHeld) return;
    const content = readSlot(this.#slot);
    const isDraftNew = this.#takeDrafts(content);
    const id = content?.id;
    this.#slotId = id;
    // Another page of this tab may have begun a new conversation, or chosen one from the list.
    const isOther = id !== this.shownId && !this.#isSlotFull;
    if (isDraftNew && !isOther) this.#options.onDraft(this.#draftOf(id));
    if (isOther) this.restored = this.show(id);
    else for (const { conversation } of this.sessions) void conversation.save();
  }

  /** Saves, and stores nothing from now on. */
  leave(): void {
    this.suspend();
    this.#slot = undefined;
    this.absent = undefined;
  }

  /** Deletes the slot and the stored copy of the shown conversation, which stays in view. */
  async erase(): Promise<void> {
    const slot = this.#slot;
    if (!slot) return;
    // Includes a conversation that is still being read.
    const { shownId: id } = this;
    this.leave();
    clearSlot(slot);
    await this.stored;
    if (id !== undefined) await this.#delete(id);
  }

  /** Loads the store, in time for a first message. */
  prepare(): void {
    if (this.#slot && !this.#store) void this.#stores().catch(() => undefined);
  }

  /** Absent while nothing is to be stored, and until the code is loaded: the next change asks again. */
  #storeToSave(): ConversationStore | undefined {
    this.prepare();
    return this.#slot && !this.#isHeld ? this.#store : undefined;
  }

  async #stores(): Promise<ConversationStore> {
    if (this.#store) return this.#store;
    this.#store = await this.#options.store();
    // Stores what was said while the store was loading.
    for (const { conversation } of this.sessions) void conversation.save();
    return this.#store;
  }

  async #list(): Promise<readonly Summary[]> {
    // Without any database, the code that reads them is not loaded.
    const names = this.#store ? undefined : await databaseNames();
    return names?.length === 0 ? [] : (await this.#stores()).list();
  }

  #delete(id: string): Promise<void> {
    return this.#stores()
      .then((store) => store.delete(id))
      .catch(() => undefined);
  }

  /** Moves a draft to another conversation id. Its text stays in the composer. */
  #moveDraft(from: string, to: string): void {
    const draft = this.drafts[from];
    if (draft) this.drafts = { ...without(this.drafts, from), [to]: draft };
  }

  #saveSlot(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (!this.#slot || this.#isHeld || this.isRestoring) return;
    const { owner, place } = this.#options;
    // Also the id of an absent conversation: the next page may be able to read it, unless a message has replaced it.
    const id = this.shownId;
    const [drafts, edit] = [this.drafts, this.#edit];
    const found = id === undefined ? readSlot(this.#slot) : undefined;
    // Another element with the same slot has begun a conversation: this one is about to hear of it, and to show it.
    if (found?.id !== undefined && found.id !== this.#slotId) {
      const all = { ...without(found.drafts, ""), ...drafts };
      if (this.#options.mayShow(found.user)) writeSlot(this.#slot, { ...found, drafts: all });
      return;
    }
    if (id === undefined && Object.keys(drafts).length === 0 && !edit) {
      clearSlot(this.#slot);
      this.#slotId = undefined;
      return;
    }
    const content = { id, user: owner().user, drafts, edit, reported: this.shown.position, place: place?.() };
    this.#isSlotFull = !writeSlot(this.#slot, content);
    if (!this.#isSlotFull) this.#slotId = id;
  }

  /** Opens or closes the channel to other tabs. An open one may keep the browser from restoring a left page. */
  #listen(isOn: boolean): void {
    this.#channel?.close();
    this.#channel = undefined;
    if (!isOn) return;
    try {
      this.#channel = new BroadcastChannel(`agent-chat-6:${this.#options.server.href}`);
      this.#channel.onmessage = ({ data }) => this.#heard(data);
    } catch {
      // Firefox forbids it with storage: then no other tab has anything to say.
    }
  }

  post(news: News): void {
    this.#channel?.postMessage(news);
    this.#notify(news);
  }

  #appended(news: News): void {
    this.post(news);
    if (news.appended?.row !== undefined) void this.#all?.makeRoom();
    // The first answer takes precedence over loading the list.
    if (!this.shown.conversation.value.run) void this.look();
  }

  #heard(news: News): void {
    const { id, appended, isGone } = news;
    if (isGone === true) this.gone(id);
    // Another element with the same slot has begun the conversation that both show.
    const slot =
      appended && appended.clock === undefined && this.#slot && this.#isNew ? readSlot(this.#slot) : undefined;
    if (slot?.id === id && this.#options.mayShow(slot.user)) {
      this.#moveDraft("", id);
      this.restored = this.show(id);
    }
    for (const { conversation } of this.sessions) {
      if (conversation.id !== id) continue;
      if (isGone === "unlessShown") conversation.restore();
      if (appended) conversation.receive(appended);
    }
    void this.look();
    this.#notify(news);
  }

  #notify({ appended }: News): void {
    // The list shows nothing of an answer that is running.
    const isGrowing =
      appended?.row === undefined && appended?.entries.every(({ operation }) => operation.type === "event");
    if (isGrowing) return;
    for (const listener of this.listeners) listener();
  }

  /** See `AllConversations.purge`. */
  async purge(user: string, leaving?: string): Promise<void> {
    const summaries = await this.#list().catch(() => []);
    if (summaries.length > 0 || user) await (await this.all())?.purge(user, leaving);
  }
}

function without<Value>(record: Readonly<Record<string, Value>>, name: string): Readonly<Record<string, Value>> {
  const { [name]: _, ...rest } = record;
  return rest;
}
