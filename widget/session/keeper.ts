/**
 * Keeps the conversation of one element and its draft over reloads and pages of a site: the conversation in a store,
 * its id and the draft in the tab's storage. A tab that finds its slot in use is a copy, as after "Duplicate tab": it
 * goes on with a copy of the conversation.
 */

import type { RunPosition } from "../transport/transport.ts";
import type { SessionData } from "./chat-session.ts";
import { randomId } from "./resumable-run.ts";
import type { ConversationStore } from "./store.ts";
import { type Draft, EMPTY_DRAFT, forgetSlots, type Place, TabSlot } from "./tab-slot.ts";

const SAVE_EVERY_MS = 1_000;

/** Conversations of tabs that were closed are deleted after so long. */
const DELETE_AFTER_MS = 24 * 60 * 60_000;

/** One that is shown is saved again after so long, so that it is not taken for one of a closed tab. */
const TOUCH_AFTER_MS = 60 * 60_000;

/** What another page of this tab leaves when it has started a new conversation. */
const NOTHING: Restored = { agent: "", user: "", messages: [], state: {}, isCut: false };

/** `user` is whose it is, as `/api/info` names them; empty for nobody. */
export type Restored = SessionData & { readonly agent: string; readonly user?: string };

export interface KeeperOptions {
  readonly server: URL;
  /** Id of the element, or an empty text. */
  readonly id: string;
  readonly store: ConversationStore;
  /** What is to be kept at the moment. */
  readonly read: () => Restored;
  /** Whether what is kept of this user, or of nobody, may be shown: to none as long as it is not known who is there. */
  readonly mayShow: (user: string) => boolean;
  /** Whether that may change soon. */
  readonly isAsking: () => boolean;
  /** What another user has left here was not shown, and is gone. */
  readonly onErased: () => void;
  /** An earlier page load has kept this. `isNewer`: another page has kept it while this one was left. */
  readonly restore: (stored: Restored, reportedUntil: number, isNewer: boolean) => void;
  readonly onDraft: (draft: Draft) => void;
  /** Where the reader is; absent at the end. */
  readonly place?: (() => Place | undefined) | undefined;
  /** It is known whether there is something to restore; or the conversation is no longer kept, or is again. */
  readonly onChange: () => void;
}

export class ConversationKeeper {
  /** Whether an earlier conversation is about to be shown. */
  isRestoring = false;
  /** Whether a reload will find nothing although the conversation should be kept. */
  isNotKept = false;
  /** Where an earlier page load was left; absent at the end. */
  restoredPlace: Place | undefined;
  /** Resolves when the earlier conversation, if any, is there. A message that is sent before would take its place. */
  restored: Promise<void> = Promise.resolve();
  readonly #options: KeeperOptions;
  #slot: TabSlot | undefined;
  /** Name of the slot that was left last. */
  #leftSlot: string | undefined;
  #lengthAtOpen = 0;
  /** Id of this tab's conversation in the store; absent before its first message. */
  #id: string | undefined;
  #draft = EMPTY_DRAFT;
  /** Whether the page was left, and may be shown again. */
  #isLeft = false;
  /** Whether what is kept waits for its user, and stays as it is. */
  #isHeld = false;
  #isDirty = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #savedProgress = "";
  #savedAt = 0;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** Takes a slot, and restores what is kept there. What this element shows stays where nothing newer is kept. */
  open(): void {
    if (this.#slot) return;
    const { server, id, read } = this.#options;
    this.#slot = new TabSlot(server, id, () => this.#takeOver());
    this.#lengthAtOpen = read().messages.length;
    if (this.#slot.name === this.#leftSlot) {
      this.resume();
      return;
    }
    this.#isLeft = false;
    this.#isHeld = true;
    this.userChanged();
  }

  /** To be called when it is known, or not to be found out, who is there. */
  userChanged(): void {
    if (!this.#slot || !this.#isHeld) return;
    const { read, onDraft, mayShow, isAsking, onErased } = this.#options;
    let content = this.#slot.read();
    if (content && !mayShow(content.user)) {
      const { user } = read();
      this.isRestoring = isAsking() && content.id !== undefined;
      if (isAsking() || !user) return;
      if (content.id) void this.#options.store.delete(content.id).catch(() => undefined);
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
    this.#id = content?.isInUse ? undefined : content?.id;
    this.isRestoring = content?.id !== undefined;
    this.restored = this.#load(false);
    void this.restored.then(() => this.purge(read().user));
    if (read().messages.length > 0) this.changed();
  }

  /** Deletes what is kept here of a user who has left. */
  forget(): void {
    this.#delete();
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
    if (progressOf(this.#options.read()) !== this.#savedProgress) this.save();
  }

  /** Keeps what is in the composer. It belongs to the tab: the conversation is not written again. */
  saveDraft(draft: Draft): void {
    if (isSameDraft(draft, this.#draft)) return;
    this.#draft = draft;
    if (this.#slot) this.#saveSoon();
    // What was sent is kept as a message, and not twice if the browser crashes now.
    if (draft.text === "") this.save();
  }

  /** Saves what has changed. To be called on `visibilitychange`, too: a phone may grant no later moment. */
  save(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // What is stored would be overwritten before it is shown: it is saved then.
    if (!this.#slot || this.isRestoring || this.#isHeld) return;
    const data = this.#options.read();
    this.#savedProgress = progressOf(data);
    if (data.messages.length === 0) {
      // One that could not be read was never shown: the next page may have it.
      if (this.#savedAt > 0) this.#delete();
      this.#writeSlot(this.#slot, undefined);
      return;
    }
    if (Date.now() > this.#savedAt + TOUCH_AFTER_MS) this.#isDirty = true;
    this.#id ??= randomId();
    const hasRoom = this.#writeSlot(this.#slot, data.run);
    if (this.#isDirty) void this.#store(data, this.#id, hasRoom);
    this.#isDirty = false;
  }

  /** The page is left, and the browser may show it again as it is. */
  suspend(): void {
    this.#isLeft = true;
    this.save();
  }

  /** To be called on `pageshow` if the page was left before: the conversation may have gone on in another one. */
  resume(): void {
    if (!this.#slot || this.#isHeld) return;
    this.#isLeft = false;
    this.isRestoring = true;
    this.restored = this.#load(true);
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

  /** Goes on with the conversation of the element that has left, unless another one has begun here. */
  #takeOver(): void {
    if (this.#options.read().messages.length !== this.#lengthAtOpen) return;
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
  }

  async #load(isReturn: boolean): Promise<void> {
    const { store, restore, onDraft, onChange } = this.#options;
    const slot = this.#slot;
    const { id, draft = EMPTY_DRAFT, reported, isInUse = false } = slot?.read() ?? {};
    const stored = id === undefined ? undefined : await store.load(id).catch(() => undefined);
    if (this.#slot !== slot) return;
    const isCopy = isInUse && !isReturn;
    const isKnown = id === this.#id && (stored?.updatedAt ?? this.#savedAt) === this.#savedAt;
    this.#id = isCopy ? undefined : id;
    if (isReturn && !isSameDraft(draft, this.#draft)) onDraft(draft);
    if (isReturn ? !isKnown : stored) {
      const isAfter = reported?.run === stored?.run?.run;
      restore(stored ?? NOTHING, isAfter ? (reported?.after ?? 0) : 0, isReturn);
      // What has just been read has not changed, unless there were messages here already.
      this.#isDirty = isCopy || progressOf(this.#options.read()) !== progressOf(stored ?? NOTHING);
      this.#savedAt = stored?.updatedAt ?? 0;
    } else if (isReturn && progressOf(this.#options.read()) !== this.#savedProgress) this.#isDirty = true;
    this.isRestoring = false;
    this.save();
    onChange();
  }

  #saveSoon(): void {
    this.#timer ??= setTimeout(() => this.save(), SAVE_EVERY_MS);
  }

  /** Returns whether there was room for it. */
  #writeSlot(slot: TabSlot, reported: RunPosition | undefined): boolean {
    if (this.#id !== undefined || this.#draft.text !== "" || this.#draft.files.length > 0) {
      const place = this.#options.place?.();
      const { user = "" } = this.#options.read();
      return slot.write({ id: this.#id, user, draft: this.#draft, reported, place, isInUse: !this.#isLeft });
    }
    slot.clear();
    return true;
  }

  async #store(data: Restored, id: string, hasRoom: boolean): Promise<void> {
    const { store, onChange } = this.#options;
    const updatedAt = Date.now();
    this.#savedAt = updatedAt;
    const isStored = await store.save({ ...data, id, updatedAt }).then(
      () => true,
      () => false,
    );
    const isDeleted = this.#id !== id;
    // How a later save ends is what counts.
    if (!isDeleted && this.#savedAt !== updatedAt) return;
    // What was stored before is an old conversation by now.
    if (!isStored || isDeleted) await store.delete(id).catch(() => undefined);
    const isNotKept = !isStored || !hasRoom;
    if (isNotKept === this.isNotKept || !this.#slot || isDeleted) return;
    this.isNotKept = isNotKept;
    onChange();
  }

  #delete(): void {
    if (this.#id !== undefined) void this.#options.store.delete(this.#id).catch(() => undefined);
    this.#id = undefined;
  }

  /** Deletes conversations of tabs that were closed; what is kept of all users but one at once, if one is named. */
  async purge(user = ""): Promise<void> {
    const { server, store } = this.#options;
    if (user) forgetSlots(server, user);
    const conversations = await store.list().catch(() => []);
    const before = Date.now() - DELETE_AFTER_MS;
    for (const it of conversations) {
      const isForeign = user !== "" && it.user && it.user !== user;
      if ((isForeign || it.updatedAt < before) && it.id !== this.#id) await store.delete(it.id).catch(() => undefined);
    }
  }
}

function isSameDraft(a: Draft, b: Draft): boolean {
  return a.text === b.text && a.files.join("/") === b.files.join("/");
}

/** Another text as soon as there is another message, or a run has begun or ended. */
function progressOf({ messages, run }: Restored): string {
  return `${messages.length} ${run?.run}`;
}
