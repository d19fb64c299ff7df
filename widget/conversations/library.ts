/**
 * The conversations of one element: the one that is shown, and those whose answers go on meanwhile. All are kept in the
 * browser; what a tab shows and what is being written there is kept in the tab's storage.
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

/** The place of the reader, and a draft, are stored so soon. */
const SAVE_AFTER_MS = 1_000;

/** How long a conversation that the person has closed can be brought back, where none are listed. */
const UNDO_FOR_MS = 10_000;

/** For elements that keep all conversations, and when something is deleted. */
const all = lazy(() => import("./all-conversations.ts"), "AllConversations");

export interface LibraryOptions {
  readonly server: URL;
  /** Id of the element, or an empty text: it distinguishes several chats of one server in one tab. */
  readonly id: string;
  /** Where they are kept. Rejects where its code cannot be loaded. */
  readonly store: () => Promise<ConversationStore>;
  readonly sessionOf: (conversation: OpenConversation) => ChatSession;
  /** Whose the conversations are: the name of the agent, and the user as `/api/info` names them. */
  readonly owner: () => { readonly agent: string; readonly user: string };
  /** Whether the browser keeps all conversations, and lists them. */
  readonly keepsAll: () => boolean;
  /** Whether what is kept of this user, or without one, may be shown: nothing as long as the current user is not known. */
  readonly mayShow: (user: string) => boolean;
  /** Whether that may change soon. */
  readonly isAsking: () => boolean;
  /** Whether a conversation was with another agent at this address: this one knows nothing of it. */
  readonly isOtherAgent: (agent: string) => boolean;
  /** What another user has left here was not shown, and is gone. */
  readonly onErased: () => void;
  /** Another conversation is shown, or about to be. */
  readonly onShow: () => void;
  /** The answer of a conversation that was read may go on. */
  readonly onRestored: () => void;
  /** An earlier page load, or another page of this tab, has left this. Called by `open`, and when the page is shown again. */
  readonly onDraft: (draft: Draft) => void;
  /** Another conversation is shown, in which this is being written. */
  readonly onSwitch: (written: Written) => void;
  /** Where the reader is; absent at the end. */
  readonly place?: (() => Place | undefined) | undefined;
  readonly onChange: () => void;
  /** Ends a run at the server. */
  readonly cancel: (run: string) => void;
}

/**
 * It is about to be shown, or stays where it is: it is of another version of the chat, or damaged, or the browser's storage
 * cannot be read now.
 */
export interface AbsentConversation {
  readonly id: string;
  readonly why: "reading" | typeof UNREADABLE | "unavailable";
}

export class Library implements LibraryHost {
  shown: ChatSession;
  /** What is kept in the place of what is shown, and is not here, or not yet. What is said in its place is another one. */
  absent: AbsentConversation | undefined;
  /** The name of the agent that the conversation was with when it was read. */
  agent = "";
  /** Where an earlier page load was left; absent at the end. */
  restoredPlace: Place | undefined;
  /** Resolves when the earlier conversation, if any, is there. A message that is sent before would take its place. */
  restored: Promise<void> = Promise.resolve();
  /** Resolves when the data of its files is there, too, as far as it is kept. */
  filled: Promise<unknown> = Promise.resolve();
  /** What is being written: by the id of the conversation, that of a new one under an empty text. */
  drafts: SlotContent["drafts"] = {};
  /** To be called when what is listed has changed. */
  readonly listeners = new Set<() => void>();
  readonly #options: LibraryOptions;
  /** What is not shown, and goes on: its answer comes, or it can be brought back. */
  readonly #open = new Set<ChatSession>();
  /** What goes on no more, and is still being stored. */
  readonly #storing = new Set<OpenConversation>();
  /** The name of the tab's slot; absent while nothing is kept. */
  #slot: string | undefined;
  /** Present once it is loaded. */
  #store: ConversationStore | undefined;
  #edit: Draft["edit"];
  /** Whether nothing stands yet in what is shown. */
  #isNew = true;
  /** Whether what is kept waits for its user, and stays as it is. */
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

  /** Resolves when what has happened so far is stored, or could not be. */
  get stored(): Promise<unknown> {
    return this.shown.conversation.stored;
  }

  /** All sessions of this element, the one that is shown included. */
  get sessions(): readonly ChatSession[] {
    return [this.shown, ...this.#open];
  }

  /** The conversations of all sessions, and what is still being stored. */
  get #conversations(): readonly OpenConversation[] {
    return [...this.sessions.map(({ conversation }) => conversation), ...this.#storing];
  }

  /** Takes the tab's slot, and shows what is kept there. What this element shows already stays. */
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
    // An element that returns has its draft, and the bytes of its files.
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
    // Another one is shown meanwhile, or about to be.
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
      // Another tab may have gone on since it was read, when this one did not listen yet.
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
    // It cannot be brought back any more, and the server forgets it before it answers here.
    void this.forgetClosed();
    // A browser that crashes does not say so before, and what was sent is found by its conversation's id.
    this.#saveSlot();
  }

  #saveSoon(): void {
    this.#timer ??= setTimeout(() => this.#saveSlot(), SAVE_AFTER_MS);
  }

  /** Whether the library has, or had, a conversation: nothing is loaded for a list that is not there. */
  get hasKept(): boolean {
    return this.#hasKept && this.#options.keepsAll();
  }

  /** Looks whether the library has anything to list. */
  async look(): Promise<void> {
    const { keepsAll, onChange } = this.#options;
    if (!keepsAll() || this.#hasKept) return;
    const summaries = await this.#list().catch(() => []);
    if (this.#hasKept || !summaries.some(({ kept }) => kept !== "tab")) return;
    this.#hasKept = true;
    await this.all();
    onChange();
  }

  /** What lists and deletes conversations; absent where its code cannot be loaded. */
  async all(): Promise<AllConversations | undefined> {
    const [module, store] = await Promise.all([all.load(), this.#stores()]).catch(() => []);
    if (module && store) this.#all ??= new module.AllConversations(this, { ...this.#options, store });
    return this.#all;
  }

  /** Shows another conversation, or a new one. The one before stays where it is, and its answer goes on. */
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
    // The code that stores it may come late.
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
   * Begins a new conversation in place of this one, which `undo` brings back as it is for a while; its answer goes on
   * meanwhile.
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

  /** Ends its answer and leaves nothing of it. What is kept for tabs stays in a duplicate of this one. */
  async #remove(session: ChatSession, isForAll = this.#options.keepsAll()): Promise<void> {
    const { conversation } = session;
    const isStored = conversation.isStored || this.#slot !== undefined;
    this.#open.delete(session);
    conversation.endStoring();
    session.close(true);
    this.drafts = without(this.drafts, conversation.id);
    if (!isStored) return;
    // If the page is left, the deletion has to follow what is being stored.
    await Promise.all([conversation.stored, this.#delete(conversation.id)]);
    this.post({ id: conversation.id, isGone: isForAll || "unlessShown" });
  }

  /**
   * For `AllConversations`: a conversation was deleted. Where it is open here, it is not stored again. What was being written
   * where it is shown goes on in a new one, unless that has a draft of its own.
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

  /** The user has left, and nothing of them stays here. `keepsRows`: their conversations wait for them in the library. */
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
      // What the store is being asked about would be written as the next user's.
      conversation.endStoring();
    }
    await Promise.all(removed);
    if (this.#isHeld) this.userChanged();
  }

  #draftOf(id = ""): Draft {
    return { ...(this.drafts[id] ?? NOTHING_WRITTEN), ...(this.#edit && { edit: this.#edit }) };
  }

  /** Takes over what the tab has, and returns whether that is not what is here, with its files. */
  #takeDrafts({ drafts = {}, edit }: Partial<SlotContent> = {}): boolean {
    const isNew = toJson([drafts, edit]) !== toJson([this.drafts, this.#edit]);
    if (isNew) [this.drafts, this.#edit] = [drafts, edit];
    return isNew;
  }

  /** What is being written in the conversation that is shown. */
  saveDraft(draft: Draft): void {
    const { edit, ...written } = draft;
    const key = this.shownId ?? "";
    const before = this.#draftOf(this.shownId);
    this.drafts = isEmpty(written) ? without(this.drafts, key) : { ...this.drafts, [key]: written };
    this.#edit = edit;
    if (toJson(before) === toJson(draft)) return;
    // What was sent is kept as a message, and not twice if the browser crashes now.
    const isSent = (before.text && !draft.text) || (before.edit && !draft.edit);
    if (isSent) this.#saveSlot();
    else this.#saveSoon();
  }

  /**
   * To be called on `visibilitychange`: a phone may grant no later moment. A page that was left before has saved all, and does
   * not look at what is stored: WebKit keeps the page as it is, and has all others wait for the end of that.
   */
  save(): void {
    this.#saveSlot();
    for (const { conversation } of this.sessions) if (!conversation.isSaved) void conversation.save();
  }

  /** The page is left, and the browser may show it again as it is. */
  suspend(): void {
    void this.forgetClosed();
    this.#saveSlot();
    for (const conversation of this.#conversations) conversation.leave();
    this.#listen(false);
  }

  /** To be called on `pageshow` if the page was left before: conversations may have gone on in another one. */
  resume(): void {
    if (!this.#slot) return;
    this.#listen(true);
    if (this.#isHeld) return;
    const content = readSlot(this.#slot);
    const isDraftNew = this.#takeDrafts(content);
    const id = content?.id;
    // Another page of this tab may have begun a new one, or shown one of the list.
    const isOther = id !== this.shownId && !this.#isSlotFull;
    if (isDraftNew && !isOther) this.#options.onDraft(this.#draftOf(id));
    if (isOther) this.restored = this.show(id);
    else for (const { conversation } of this.sessions) void conversation.save();
  }

  /** Saves, and keeps nothing from now on. */
  leave(): void {
    this.suspend();
    this.#slot = undefined;
    this.absent = undefined;
  }

  /** Leaves nothing of what was kept; what is shown stays. */
  async erase(): Promise<void> {
    const slot = this.#slot;
    if (!slot) return;
    // What is about to be shown goes, too.
    const { shownId: id } = this;
    this.leave();
    clearSlot(slot);
    await this.stored;
    if (id !== undefined) await this.#delete(id);
  }

  /** Loads what keeps a first message. */
  prepare(): void {
    if (this.#slot && !this.#store) void this.#stores().catch(() => undefined);
  }

  /** Absent while nothing is to be kept, and until its code is there: what happens next asks for it again. */
  #storeToSave(): ConversationStore | undefined {
    this.prepare();
    return this.#slot && !this.#isHeld ? this.#store : undefined;
  }

  async #stores(): Promise<ConversationStore> {
    if (this.#store) return this.#store;
    this.#store = await this.#options.store();
    // What was said meanwhile is stored now.
    for (const { conversation } of this.sessions) void conversation.save();
    return this.#store;
  }

  async #list(): Promise<readonly Summary[]> {
    // Nothing is loaded to look into what is not there.
    const names = this.#store ? undefined : await databaseNames();
    return names?.length === 0 ? [] : (await this.#stores()).list();
  }

  #delete(id: string): Promise<void> {
    return this.#stores()
      .then((store) => store.delete(id))
      .catch(() => undefined);
  }

  /** The draft stays in its field, and the conversation there gets another name. */
  #moveDraft(from: string, to: string): void {
    const draft = this.drafts[from];
    if (draft) this.drafts = { ...without(this.drafts, from), [to]: draft };
  }

  #saveSlot(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (!this.#slot || this.#isHeld || this.isRestoring) return;
    const { owner, place } = this.#options;
    // As long as nothing is said in its place, the next page may be able to read it.
    const id = this.shownId;
    const [drafts, edit] = [this.drafts, this.#edit];
    if (id === undefined && Object.keys(drafts).length === 0 && !edit) {
      clearSlot(this.#slot);
      return;
    }
    const content = { id, user: owner().user, drafts, edit, reported: this.shown.position, place: place?.() };
    this.#isSlotFull = !writeSlot(this.#slot, content);
  }

  /** An open channel may keep the browser from showing a page again as it was left. */
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
    // A first answer comes before the list.
    if (!this.shown.conversation.value.run) void this.look();
  }

  #heard(news: News): void {
    const { id, appended, isGone } = news;
    if (isGone === true) this.gone(id);
    // Another element with the slot of this one has begun what both show.
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
    // Nothing of an answer that grows is listed.
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
