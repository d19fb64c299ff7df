/**
 * Keeps the conversation of one element and its draft: the conversation in the browser's library, its id and the draft
 * in the tab's storage. A tab that finds its slot in use is a copy, as after "Duplicate tab": it goes on with a copy of
 * the conversation, unless the browser keeps all of them, and both tabs show the same one.
 */

import { toJson } from "../../server/protocol/json.ts";
import { lazy } from "../loading/lazy.ts";
import type { RunPosition } from "../transport/transport.ts";
import { progressOf, type SessionData } from "./chat-session.ts";
import { EMPTY_CONVERSATION, type PendingChange, type PendingMessage } from "./conversation.ts";
import { isAhead, LEASE_MS, UNKNOWN, UNREADABLE } from "./lease.ts";
import type { Library, LibraryHost, LibraryOptions } from "./library.ts";
import { randomId } from "./resumable-run.ts";
import type { StoredConversation } from "./row.ts";
import type { Shown } from "./store.ts";
import { type Draft, EMPTY_DRAFT, forgetSlots, type Place, type SlotContent, TabSlot } from "./tab-slot.ts";

const SAVE_EVERY_MS = 1_000;

/** Conversations of tabs that were closed are deleted after so long. */
const DELETE_AFTER_MS = 24 * 60 * 60_000;

/** That of a tab is saved again after so long, so that it is not taken for one of a closed tab. */
const TOUCH_AFTER_MS = 60 * 60_000;

/** For elements that keep all conversations. */
const libraries = lazy(() => import("./library.ts"), "Library");

/** `user` is whose it is, as `/api/info` names them; empty for nobody. */
export type Restored = SessionData & { readonly agent: string; readonly user?: string };

const shownFrom = (id?: string): Shown => ({
  id,
  name: undefined,
  isWriter: true,
  followsUntil: 0,
  ...UNKNOWN,
});

/** What stands in the place of a conversation that is not there. */
const NOTHING: Restored = { ...EMPTY_CONVERSATION, agent: "", user: "" };

export interface KeeperOptions extends LibraryOptions {
  /** Id of the element, or an empty text. */
  readonly id: string;
  /** What is to be kept at the moment. */
  readonly read: () => Restored;
  /** Whether the browser keeps all conversations, and lists them. */
  readonly keepsAll: () => boolean;
  /** Whether what is kept of this user, or of nobody, may be shown: to none as long as it is not known who is there. */
  readonly mayShow: (user: string) => boolean;
  /** Whether that may change soon. */
  readonly isAsking: () => boolean;
  /** What another user has left here was not shown, and is gone. */
  readonly onErased: () => void;
  /** An earlier page load has kept this. `isNewer`: it takes the place of what is shown. */
  readonly restore: (stored: Restored, reportedUntil: number, isNewer: boolean) => void;
  /** The data of the files has been read, of what was `restored`. */
  readonly fill: (restored: Restored, filled: Restored) => void;
  readonly onDraft: (draft: Draft) => void;
  /** This is pending in the store. */
  readonly onPending: (list: readonly PendingMessage[] | undefined) => void;
  /** Where the reader is; absent at the end. */
  readonly place?: (() => Place | undefined) | undefined;
  /** It is known whether there is something to restore; or the conversation is no longer kept, or is again. */
  readonly onChange: () => void;
}

export class ConversationKeeper implements LibraryHost {
  /** Whether an earlier conversation is about to be shown. */
  isRestoring = false;
  /** Whether a reload will find nothing although the conversation should be kept. */
  isNotKept = false;
  /**
   * What is kept stays, and is not shown: it is of another version of the chat, or damaged, or (`null`) cannot be read now.
   * What is said in its place is another conversation.
   */
  unread: typeof UNREADABLE | null | undefined;
  /** Where an earlier page load was left; absent at the end. */
  restoredPlace: Place | undefined;
  /** Resolves when the earlier conversation, if any, is there. A message that is sent before would take its place. */
  restored: Promise<void> = Promise.resolve();
  /** Resolves when the data of its files is there, too, as far as it is kept. */
  filled: Promise<void> = Promise.resolve();
  /** Resolves when what was saved last is in the store, or could not be. */
  stored: Promise<void> = Promise.resolve();
  /** Resolves when what is pending is in the store, or could not be. */
  queued: Promise<unknown> = Promise.resolve();
  /** How many changes of it are being made. */
  #queueing = 0;
  readonly #options: KeeperOptions;
  readonly writer = randomId();
  shown = shownFrom();
  #slot: TabSlot | undefined;
  /** Name of the slot that was left last. */
  #leftSlot: string | undefined;
  #progressAtOpen = "";
  /** What was deleted while it was being stored is deleted again. */
  readonly #deleted = new Set<string>();
  #draft = EMPTY_DRAFT;
  /** Whether the page was left, and may be shown again. */
  #isLeft = false;
  /** Whether what is kept waits for its user, and stays as it is. */
  #isHeld = false;
  #isDirty = false;
  /** Whether what was saved last is not in the store yet. */
  #isStoring = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #savedProgress = "";
  /** The newest revision that a save was given: what another tab has read under it must stay what it is. */
  #revision = 0;
  /** What the list shows of what was stored last. */
  #listed = "";
  /** Grows when what is being loaded is no longer what is to be shown. */
  #loads = 0;
  #library: Library | undefined;
  #hasKept = false;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** Takes a slot, and restores what is kept there. What this element shows stays where nothing newer is kept. */
  open(): void {
    if (this.#slot) return;
    const { server, id, progress } = this.#options;
    this.#slot = new TabSlot(server, id, () => this.#takeOver());
    this.#progressAtOpen = progress();
    if (this.#slot.name === this.#leftSlot) {
      this.resume();
      return;
    }
    this.#isLeft = false;
    this.#isHeld = true;
    this.userChanged();
  }

  /** Whether the library has, or had, a conversation: nothing is loaded for a list that is not there. */
  get hasKept(): boolean {
    return this.#hasKept && this.#options.keepsAll();
  }

  /** Looks whether the library has anything, and listens to other tabs then. */
  async look(): Promise<void> {
    const { store, keepsAll, onChange } = this.#options;
    if (keepsAll() && !this.#hasKept) {
      const summaries = await store.list().catch(() => []);
      if (this.#hasKept || !summaries.some(({ kept }) => kept !== "tab")) return;
      this.#hasKept = true;
      onChange();
    }
    await this.library();
  }

  /** All conversations that the browser keeps; absent where it keeps only that of the tab, or the code cannot be loaded. */
  async library(): Promise<Library | undefined> {
    const module = this.#options.keepsAll() ? await libraries.load().catch(() => undefined) : undefined;
    if (module) this.#library ??= new module.Library(this, this.#options);
    this.#listen();
    return module && this.#library;
  }

  #listen(): void {
    this.#library?.listen(this.#slot !== undefined && !this.#isLeft && this.#options.keepsAll());
  }

  /** To be called when it is known, or not to be found out, who is there. */
  userChanged(): void {
    if (!this.#slot || !this.#isHeld) return;
    const { read, onDraft, mayShow, isAsking, onErased, keepsAll, progress } = this.#options;
    let content = this.#slot.read();
    if (content && !mayShow(content.user)) {
      const { user } = read();
      this.isRestoring = isAsking() && content.id !== undefined;
      if (isAsking() || !user) return;
      if (content.id && !keepsAll()) void this.#options.store.delete(content.id).catch(() => undefined);
      this.#slot.clear();
      content = undefined;
      onErased();
    }
    this.#isHeld = false;
    if (content) {
      this.restoredPlace = content.place;
      this.#draft = content.draft;
      onDraft(content.draft);
    }
    const isCopy = content?.isInUse === true && !keepsAll();
    this.shown = shownFrom(isCopy ? undefined : content?.id);
    this.isRestoring = content?.id !== undefined;
    this.restored = this.#load(content, isCopy ? "copy" : "begin");
    void this.restored.then(() => this.purge(read().user)).then(() => this.look());
    if (progress() !== "") this.changed();
  }

  /** Leaves nothing here of a user who has left. `keepsRows`: their conversations wait for them in the library. */
  forget(keepsRows = false): void {
    if (!keepsRows) this.#delete();
    this.begin(undefined);
    this.#draft = EMPTY_DRAFT;
    this.#slot?.clear();
    this.isRestoring = false;
    if (this.#isHeld) this.userChanged();
  }

  /** To be called after every change of the conversation. */
  changed(): void {
    if (!this.#slot) return;
    this.#isDirty = true;
    this.#saveSoon();
    // The beginning and the end of an answer are saved at once: a browser that crashes does not say so before.
    if (this.#options.progress() !== this.#savedProgress) this.save();
  }

  /** Keeps what is being written. It belongs to the tab: the conversation is not written again. */
  saveDraft(draft: Draft): void {
    const before = this.#draft;
    if (isSameDraft(draft, before)) return;
    this.#draft = draft;
    if (this.#slot) this.#saveSoon();
    // What was sent is kept as a message, and not twice if the browser crashes now.
    if ((before.text && !draft.text) || (before.edit && !draft.edit)) this.save();
  }

  /** Saves what has changed. To be called on `visibilitychange`, too: a phone may grant no later moment. */
  save(isLast = this.#isLeft): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // What is stored would be overwritten before it is shown: it is saved then.
    if (!this.#slot || this.isRestoring || this.#isHeld) return;
    const data = this.#options.read();
    const progress = this.#options.progress();
    if (this.unread !== undefined && progress !== "") {
      this.begin(undefined);
      this.#isDirty = true;
    }
    this.#savedProgress = progress;
    if (progress === "") {
      // One that could not be read was never shown: the next page may have it.
      if (this.shown.savedAt > 0) this.#delete();
      this.#writeSlot(this.#slot, undefined);
      return;
    }
    const { savedAt } = this.shown;
    if (savedAt === 0 || (!this.#options.keepsAll() && Date.now() > savedAt + TOUCH_AFTER_MS)) this.#isDirty = true;
    this.shown.id ??= randomId();
    const hasRoom = this.#writeSlot(this.#slot, data.run);
    if (!this.#isDirty) return;
    if (isAhead(this.shown.followsUntil)) this.#saveSoon();
    else {
      this.#isDirty = false;
      const stored = this.#store(data, this.shown.id, hasRoom, isLast).finally(() => {
        if (this.stored === stored) this.#isStoring = false;
      });
      this.stored = stored;
      this.#isStoring = true;
    }
  }

  /** The page is left, and the browser may show it again as it is. */
  suspend(): void {
    this.#isLeft = true;
    // What is being stored looks at what is there first, and a page that is left does not live to go on. While an answer
    // comes, this says that another one may go on with it now.
    this.#isDirty ||= this.#isStoring || this.#options.read().run !== undefined;
    this.save();
    this.#listen();
  }

  /** To be called on `pageshow` if the page was left before: the conversation may have gone on in another one. */
  resume(): void {
    if (!this.#slot) return;
    this.#isLeft = false;
    this.#listen();
    if (this.#isHeld) return;
    this.isRestoring = true;
    this.restored = this.#load({ draft: EMPTY_DRAFT, ...this.#slot.read() }, "return");
  }

  /** Saves, and lets another element have the slot. */
  close(): void {
    this.suspend();
    this.#leftSlot = this.#slot?.name;
    this.#leave();
  }

  /** Leaves nothing of what was kept. */
  erase(): void {
    this.#eraseSlot();
    this.#leftSlot = undefined;
    this.isNotKept = false;
  }

  /** Shows another conversation of the library, or a new one. The one before stays there, with its run, unless it is gone. */
  async show(id: string | undefined, isGone = false): Promise<void> {
    if (!this.#slot || this.#isHeld) return;
    if (isGone) this.#deleted.add(`${this.shown.id}`);
    else {
      this.#isDirty ||= this.#options.read().run !== undefined;
      this.save(true);
    }
    this.begin(id);
    this.isRestoring = id !== undefined;
    this.#options.restore(NOTHING, 0, true);
    this.#isDirty = false;
    this.restoredPlace = undefined;
    this.#writeSlot(this.#slot, undefined);
    void this.stored.then(() => this.look());
    if (id !== undefined) this.restored = this.#load(this.#slot.read(), "return");
    await this.restored;
    this.#options.onChange();
  }

  /** A conversation of the library, with its messages: those that are shown may not be stored yet. */
  async load(id: string): Promise<SessionData | typeof UNREADABLE | undefined> {
    const isHere = id === this.shown.id && !this.isRestoring && this.unread === undefined;
    return isHere ? this.#options.read() : this.#options.store.load(id);
  }

  /** Shows what another element has made of the conversation. */
  reload(): Promise<void> {
    this.restored = this.#load({ id: this.shown.id }, "return");
    return this.restored;
  }

  /**
   * Changes what is pending in the store, or only reads it. Resolves when the element knows what is there, also of other
   * tabs.
   */
  queue(change?: PendingChange): Promise<unknown> {
    const { id } = this.shown;
    if (!this.#slot || id === undefined) return Promise.resolve();
    const { store, onPending } = this.#options;
    this.#queueing += 1;
    const end = (list?: readonly PendingMessage[]) => {
      this.#queueing -= 1;
      // What is shown already has the changes that are still being made.
      if (list && this.#queueing === 0 && id === this.shown.id) onPending(list);
      if (change) this.#library?.tell({ id, isQueued: true });
    };
    this.queued = store.queue(id, change ?? ((list) => list)).then(end, () => end());
    return this.queued;
  }

  /** Whether this element may go on with the conversation: another one may be about to. */
  async claim(): Promise<boolean> {
    const { id, savedAt } = this.shown;
    const mayGoOn = savedAt === 0 || ((await (await this.library())?.claim()) ?? true);
    // A file that is not there yet would be left out for good.
    await this.filled;
    // The person may have opened another one meanwhile.
    return mayGoOn && this.shown.id === id;
  }

  /** Goes on with the conversation of the element that has left, unless another one has begun here. */
  #takeOver(): void {
    if (this.#options.progress() !== this.#progressAtOpen) return;
    this.#eraseSlot();
    this.open();
  }

  #eraseSlot(): void {
    this.#delete();
    this.#slot?.erase();
    this.#leave();
  }

  #leave(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isDirty = false;
    this.#slot?.release();
    this.#slot = undefined;
    this.isRestoring = false;
    this.#listen();
  }

  /** From now on another conversation is the one that is kept here. */
  begin(id: string | undefined): void {
    this.#loads += 1;
    this.shown = shownFrom(id);
    this.unread = undefined;
    this.#deleted.delete(`${id}`);
    this.#savedProgress = "";
  }

  async #load(content: Partial<SlotContent> = {}, how: "begin" | "copy" | "return"): Promise<void> {
    const { store, restore, onDraft, onChange, progress, keepsAll } = this.#options;
    const [slot, isReturn, isCopy] = [this.#slot, how === "return", how === "copy"];
    const { id, draft = this.#draft, reported } = content;
    this.#loads += 1;
    const load = this.#loads;
    const { revision: before } = this.shown;
    // `null`: it cannot be read now.
    const found = id === undefined ? undefined : await store.load(id).catch(() => null);
    if (this.#slot !== slot || this.#loads !== load) return;
    const whole = found === UNREADABLE ? undefined : (found ?? undefined);
    // What is pending is sent by the conversation that it was written in.
    const stored = whole && isCopy ? { ...whole, pending: [] } : whole;
    const { revision } = this.shown;
    // What was stored here meanwhile is newer than what has been read.
    const isKnown = id === this.shown.id && [before, revision].includes(stored?.revision ?? revision);
    if (isReturn && !isSameDraft(draft, this.#draft)) onDraft(draft);
    if (isReturn ? !isKnown : stored) {
      // As `show` does: what waits to go on in the conversation before must not go on in this one.
      if (isReturn && id !== this.shown.id) restore(NOTHING, 0, true);
      const taken = isReturn && stored && this.#library ? this.#library.withOwn(stored) : stored;
      this.begin(isCopy ? undefined : id);
      const isAfter = reported?.run === stored?.run?.run;
      // What is restored is not saved before its revision is known.
      this.isRestoring = true;
      restore(taken ?? NOTHING, isAfter ? (reported?.after ?? 0) : 0, isReturn);
      if (stored && !isCopy) {
        const { name, revision, updatedAt: savedAt } = stored;
        Object.assign(this.shown, { name, savedAt, revision, known: stored, isWriter: false });
      }
      // What has just been read has not changed, unless there were messages here already, or it was that of a tab.
      const isOfTab = keepsAll() && stored?.kept === "tab";
      this.#isDirty = isCopy || isOfTab || taken !== stored || progress() !== progressOf(stored);
      if (!this.#isDirty) this.#savedProgress = progress();
      if (stored?.withFiles) this.filled = this.#fill(stored, stored.withFiles(), isCopy);
    } else if (isReturn && progress() !== this.#savedProgress) this.#isDirty = true;
    if (isReturn && whole && this.#queueing === 0) this.#options.onPending(whole.pending);
    // The browser has cleared it: what goes on here is stored anew.
    if (isReturn && id !== undefined && found === undefined) Object.assign(this.shown, UNKNOWN);
    // What is shown already is known, unless it can never be read again.
    this.unread = found === UNREADABLE || (found === null && progress() === "") ? found : undefined;
    this.isRestoring = false;
    this.save();
    onChange();
  }

  async #fill(stored: StoredConversation, reading: Promise<StoredConversation>, isCopy: boolean): Promise<void> {
    const { shown } = this;
    const filled = await reading.catch(() => undefined);
    if (!filled || shown !== this.shown) return;
    this.#options.fill(stored, filled);
    if (isCopy) this.changed();
    this.#options.onChange();
  }

  #saveSoon(): void {
    this.#timer ??= setTimeout(() => this.save(), SAVE_EVERY_MS);
  }

  /** Returns whether there was room for it. */
  #writeSlot(slot: TabSlot, reported: RunPosition | undefined): boolean {
    if (this.shown.id !== undefined || !isSameDraft(this.#draft, EMPTY_DRAFT)) {
      const place = this.#options.place?.();
      const { user = "" } = this.#options.read();
      return slot.write({ id: this.shown.id, user, draft: this.#draft, reported, place, isInUse: !this.#isLeft });
    }
    slot.clear();
    return true;
  }

  /** `isLast`: from now on another element may go on with it. */
  async #store(data: Restored, id: string, hasRoom: boolean, isLast: boolean): Promise<void> {
    const { store, onChange, keepsAll } = this.#options;
    const { shown } = this;
    const [updatedAt, progress] = [Date.now(), this.#savedProgress];
    shown.savedAt = updatedAt;
    const by = { writer: this.writer, revision: shown.revision };
    this.#revision = Math.max(this.#revision, shown.revision) + 1;
    const revision = this.#revision;
    const row: StoredConversation = {
      ...data,
      id,
      name: shown.name,
      kept: keepsAll() ? "browser" : "tab",
      updatedAt,
      revision,
    };
    const outcome = await store.save(row, by, isLast && shown.isWriter, this.#library?.makeRoomFor).then(
      (isTaken) => (isTaken ? "stored" : "late"),
      () => "failed",
    );
    const isDeleted = this.#deleted.has(id);
    if (outcome === "stored" && !isDeleted) {
      shown.revision = Math.max(shown.revision, revision);
      shown.known = row;
      shown.isWriter = true;
      const listed = `${id} ${progress} ${row.name}`;
      const isGrowing = by.revision > 0 && !!row.run && listed === this.#listed;
      this.#listed = listed;
      this.#library?.tell({ id, revision, progress, isGrowing });
    }
    // How a later save ends is what counts.
    if (!isDeleted && shown.savedAt !== updatedAt) return;
    // What was stored before is an old conversation by now.
    if (isDeleted || (outcome === "failed" && row.kept === "tab")) await store.delete(id).catch(() => undefined);
    if (isDeleted || shown !== this.shown) return;
    if (outcome === "late") {
      shown.followsUntil = Date.now() + LEASE_MS;
      this.#isDirty = true;
      this.#saveSoon();
      return this.reload();
    }
    // A first answer comes before the list; another tab may delete its conversation all the same.
    void (data.run ? this.library() : this.look());
    const isNotKept = outcome === "failed" || !hasRoom;
    if (isNotKept === this.isNotKept || !this.#slot) return;
    this.isNotKept = isNotKept;
    onChange();
  }

  #delete(): void {
    const { id } = this.shown;
    this.begin(undefined);
    if (id === undefined) return;
    this.#deleted.add(id);
    void this.#options.store.delete(id).catch(() => undefined);
    this.#library?.tell({ id, isGone: true });
  }

  /**
   * Deletes conversations of tabs that were closed, those of tabs of all users but one, if one is named, and what the
   * library has of a user who is `leaving`, whose answers end.
   */
  async purge(user = "", leaving?: string): Promise<void> {
    const { server, store, cancel } = this.#options;
    if (user) forgetSlots(server, user);
    const summaries = await store.list().catch(() => []);
    const before = Date.now() - DELETE_AFTER_MS;
    // What is damaged stays.
    for (const it of summaries) {
      const isForeign = user !== "" && it.user && it.user !== user;
      const isOld = it.updatedAt > 0 && it.updatedAt < before;
      const isLeaving = it.user !== "" && it.user === leaving;
      if (!(it.kept === "tab" ? isForeign || isOld : isLeaving) || it.id === this.shown.id) continue;
      const row = isLeaving ? await store.load(it.id).catch(() => undefined) : undefined;
      await store.delete(it.id).catch(() => undefined);
      if (row && row !== UNREADABLE && row.run) cancel(row.run.run);
    }
  }
}

function isSameDraft(a: Draft, b: Draft): boolean {
  return toJson(a) === toJson(b);
}
