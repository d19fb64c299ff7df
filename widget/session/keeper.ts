/**
 * Keeps the conversation of one element and its draft over reloads and pages of a site: the conversation in a store,
 * its id and the draft in the tab's storage. A conversation has one owner: where another tab has it, as after
 * "Duplicate tab", this one goes on with a copy.
 */

import type { RunPosition } from "../transport/transport.ts";
import type { SessionData } from "./chat-session.ts";
import { randomId } from "./resumable-run.ts";
import type { ConversationStore } from "./store.ts";
import { type Draft, EMPTY_DRAFT, isTabStorageBlocked, TabSlot } from "./tab-slot.ts";

const SAVE_EVERY_MS = 1_000;

/** A page that is left needs a moment to let go of its conversation. */
const OWNER_LEAVES_WITHIN_MS = 500;

/** Conversations of tabs that were closed are deleted after so long. */
const DELETE_AFTER_MS = 24 * 60 * 60_000;

/** One that is shown is saved again after so long, so that it is not taken for one of a closed tab. */
const TOUCH_AFTER_MS = 60 * 60_000;

/** What another page of this tab leaves when it has started a new conversation. */
const NOTHING: Restored = { agent: "", messages: [], state: {}, statesBefore: new Map(), isCut: false };

export type Restored = SessionData & { readonly agent: string };

export interface KeeperOptions {
  readonly server: URL;
  /** Id of the element, or an empty text. */
  readonly id: string;
  readonly store: ConversationStore;
  /** What is to be kept at the moment. */
  readonly read: () => Restored;
  /** An earlier page load has kept this. `isNewer`: another page has kept it while this one was left. */
  readonly restore: (stored: Restored, reportedUntil: number, isNewer: boolean) => void;
  readonly onDraft: (draft: Draft) => void;
  /** It is known whether there is something to restore; or the conversation is no longer kept, or is again. */
  readonly onChange: () => void;
}

export class ConversationKeeper {
  readonly #options: KeeperOptions;
  #slot: TabSlot | undefined;
  /** Of the conversation that this element shows; absent before its first message. */
  #id: string | undefined;
  /** From the first change on: with a lock, the browser would not show the page again as it was left. */
  #isOwner = false;
  #isLocking = false;
  #releaseLock: (() => void) | undefined;
  #draft = EMPTY_DRAFT;
  #restored: Promise<void> = Promise.resolve();
  #isRestoring = false;
  #isNotKept = false;
  #isDirty = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #savedMark = "";
  #savedAt = 0;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** Whether an earlier conversation is about to be shown. */
  get isRestoring(): boolean {
    return this.#isRestoring;
  }

  /** Whether a reload will find nothing although the conversation should be kept. */
  get isNotKept(): boolean {
    return this.#isNotKept;
  }

  /** Resolves when the earlier conversation, if any, is there. */
  get restored(): Promise<void> {
    return this.#restored;
  }

  /** Takes a slot, and restores what is kept there. */
  open(): void {
    if (this.#slot) return;
    const { server, id, read, onDraft } = this.#options;
    this.#slot = new TabSlot(server, id);
    this.#isNotKept = isTabStorageBlocked();
    const content = this.#slot.read();
    if (content) {
      this.#draft = content.draft;
      onDraft(content.draft);
    }
    this.#isRestoring = content?.id !== undefined;
    this.#restored = this.#load(false);
    void this.#restored.then(() => this.#deleteAbandoned());
    if (read().messages.length > 0) this.changed();
  }

  /** To be called after every change of the conversation. */
  changed(): void {
    if (!this.#slot) return;
    this.#isDirty = true;
    this.#timer ??= setTimeout(() => this.save(), SAVE_EVERY_MS);
    // The beginning and the end of an answer are saved at once: a browser that crashes does not say so before.
    if (markOf(this.#options.read()) !== this.#savedMark) this.save();
  }

  set draft(draft: Draft) {
    if (JSON.stringify(draft) === JSON.stringify(this.#draft)) return;
    this.#draft = draft;
    this.changed();
    // What was sent is kept as a message, and not twice if the browser crashes now.
    if (draft.text === "") this.save();
  }

  /** Saves what has changed. */
  save(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // What is stored would be overwritten before it is shown: it is saved then.
    if (!this.#slot || this.#isRestoring) return;
    const data = this.#options.read();
    this.#savedMark = markOf(data);
    if (data.messages.length === 0) this.#forget();
    else if (Date.now() > this.#savedAt + TOUCH_AFTER_MS) this.#isDirty = true;
    const isChanged = this.#isDirty && data.messages.length > 0;
    if (isChanged && this.#id === undefined) this.#useNewId();
    const hasRoom = this.#writeSlot(this.#slot, data.run);
    if (!isChanged || this.#id === undefined) return;
    if (!this.#isOwner) {
      void this.#becomeOwner(this.#id);
      return;
    }
    this.#isDirty = false;
    void this.#store(data, this.#id, hasRoom);
  }

  /** The page is left, and the browser may show it again as it is. */
  suspend(): void {
    // There is no time to ask whether another tab has it.
    this.#isOwner = true;
    this.save();
    this.#disown();
  }

  /** The page is shown again as it was left: the conversation may have gone on in another one. */
  resume(): void {
    if (!this.#slot) return;
    this.#isRestoring = true;
    this.#restored = this.#load(true);
  }

  /** Saves, and lets another element have the slot. */
  close(): void {
    this.suspend();
    this.#leave();
  }

  /** Leaves nothing of what was kept. */
  erase(): void {
    this.#id ??= this.#slot?.read()?.id;
    this.#forget();
    this.#slot?.erase();
    this.#leave();
    this.#isNotKept = false;
  }

  async #load(isReturn: boolean): Promise<void> {
    const { store, restore, onDraft, onChange } = this.#options;
    const slot = this.#slot;
    const { id, draft = EMPTY_DRAFT, reported } = slot?.read() ?? {};
    const stored = id === undefined ? undefined : await store.load(id).catch(() => undefined);
    if (this.#slot !== slot) return;
    const isKnown = id === this.#id && (stored?.updatedAt ?? this.#savedAt) === this.#savedAt;
    this.#id = id;
    if (isReturn) onDraft(draft);
    if (isReturn ? !isKnown : stored) {
      const isAfter = reported?.run === stored?.run?.run;
      restore(stored ?? NOTHING, isAfter ? (reported?.after ?? 0) : 0, isReturn);
      // What has just been read has not changed, unless there were messages here already.
      this.#isDirty = markOf(this.#options.read()) !== markOf(stored ?? NOTHING);
      this.#savedAt = stored?.updatedAt ?? 0;
    }
    this.#isRestoring = false;
    this.save();
    onChange();
  }

  #useNewId(): void {
    const id = randomId();
    this.#id = id;
    this.#isOwner = true;
    void lockConversation(id).then((releaseLock) => this.#keepLock(id, releaseLock));
  }

  /** Saves as the owner. Where another tab has the conversation, this one goes on with a copy. */
  async #becomeOwner(id: string): Promise<void> {
    if (this.#isLocking) return;
    this.#isLocking = true;
    const releaseLock = await lockConversation(id);
    this.#isLocking = false;
    if (this.#id === id && this.#slot) {
      if (releaseLock) this.#isOwner = true;
      else this.#useNewId();
    }
    this.#keepLock(id, releaseLock);
    this.save();
  }

  /** Gives the lock back where the page was left, or the conversation begun anew, before it was granted. */
  #keepLock(id: string, releaseLock: (() => void) | undefined): void {
    if (this.#id === id && this.#isOwner) this.#releaseLock = releaseLock;
    else releaseLock?.();
  }

  #disown(): void {
    this.#isOwner = false;
    this.#releaseLock?.();
    this.#releaseLock = undefined;
  }

  #writeSlot(slot: TabSlot, reported: RunPosition | undefined): boolean {
    if (this.#id !== undefined || this.#draft.text !== "" || this.#draft.files.length > 0) {
      return slot.write({ id: this.#id, draft: this.#draft, reported });
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
    // What was stored before is an old conversation by now.
    if (!isStored) await store.delete(id).catch(() => undefined);
    const isNotKept = !isStored || !hasRoom || isTabStorageBlocked();
    if (isNotKept === this.#isNotKept || !this.#slot) return;
    this.#isNotKept = isNotKept;
    onChange();
  }

  #forget(): void {
    const [id, isOwner] = [this.#id, this.#isOwner];
    this.#id = undefined;
    this.#disown();
    if (id === undefined) return;
    if (isOwner) void this.#options.store.delete(id).catch(() => undefined);
    else void this.#deleteUnowned(id);
  }

  #leave(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isDirty = false;
    this.#slot?.release();
    this.#slot = undefined;
    this.#isRestoring = false;
  }

  async #deleteAbandoned(): Promise<void> {
    const conversations = await this.#options.store.list().catch(() => []);
    const before = Date.now() - DELETE_AFTER_MS;
    for (const { id, updatedAt } of conversations) {
      if (updatedAt < before && id !== this.#id) await this.#deleteUnowned(id);
    }
  }

  async #deleteUnowned(id: string): Promise<void> {
    const releaseLock = await lockConversation(id);
    if (releaseLock) await this.#options.store.delete(id).catch(() => undefined);
    releaseLock?.();
  }
}

/** Another one as soon as there is another message, or a run has begun or ended. */
function markOf({ messages, run }: Restored): string {
  return `${messages.length} ${run?.run}`;
}

/**
 * Makes this page the owner of a conversation until it is left, or until the result is called. `undefined`: another
 * page is the owner. Without Web Locks, as on pages without HTTPS, each is.
 */
function lockConversation(id: string): Promise<(() => void) | undefined> {
  const { locks } = globalThis.navigator ?? {};
  if (!locks) return Promise.resolve(() => {});
  return new Promise((resolve) => {
    const hold = () => new Promise<void>((release) => resolve(release));
    const signal = AbortSignal.timeout(OWNER_LEAVES_WITHIN_MS);
    locks
      .request(`agent-chat:${id}`, { signal }, hold)
      .catch((error: unknown) => resolve(isTimeout(error) ? undefined : () => {}));
  });
}

function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === "TimeoutError";
}
