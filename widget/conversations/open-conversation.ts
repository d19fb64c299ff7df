/**
 * A conversation that is shown or running. Operations are applied here at once, and then appended to the store behind
 * those of other tabs. They are applied again in the order of the store, so that all tabs reach the same value.
 */

import type { Attachment } from "../../server/protocol/attachments.ts";
import { withoutData, withParts } from "./branch-states.ts";
import { type Conversation, conversationOf, EMPTY_DATA, lastQuestionOf } from "./conversation.ts";
import { apply, fold, hasSeen, merged, type NumberedOperation, type Operation, withSeen } from "./operations.ts";
import { randomId } from "./resumable-run.ts";
import { type Entry, entryOf, type Owner, rowOf, summaryOf } from "./row.ts";
import { SentFiles } from "./sent-files.ts";
import type { Apply, Change, ConversationStore, Fill, Found, Loaded } from "./store.ts";

/** How often an answer is stored while it is running. */
const SAVE_EVERY_MS = 1_000;

/** Number of stored operations after which the whole row is written again. */
const MAX_ENTRIES = 40;

/** A clock that no row has, and a count that no tab has. */
const UNKNOWN = -1;

/** A tab's conversation is saved again after this time, so that it is not mistaken for that of a closed tab. */
const TOUCH_AFTER_MS = 60 * 60_000;

/** Sent to other tabs. They apply it if they have the same row and number of operations; otherwise they read the store. */
export interface Appended {
  readonly clock: number | undefined;
  readonly count: number;
  readonly entries: readonly Entry[];
  /** The clock of the row that was written with them. */
  readonly row?: number | undefined;
}

export interface OpenConversationOptions {
  /** Absent while nothing is to be kept. */
  readonly store: () => ConversationStore | undefined;
  readonly owner: () => Owner;
  /** Called when the browser has no room for a save. Resolves with whether to try again. */
  readonly makeRoom: (chars: number) => Promise<boolean>;
  /** Called when something was appended here. */
  readonly onAppend: (id: string, appended: Appended) => void;
}

/** An operation that is applied only if no other tab has continued the conversation in the meantime. */
interface Attempt {
  readonly operation: Operation;
  readonly isStill: (now: Conversation) => boolean;
}

/** The result of an update of the store. */
interface Answered {
  /** The conversation with the attempted operation; absent if that was not applied. */
  readonly made: Conversation | undefined;
}

/** A change to be stored, and the stored conversation after it. */
interface Written {
  /** Absent if another tab has stored the same. */
  readonly change: Change | undefined;
  readonly base: Conversation;
  readonly entries: readonly Entry[];
}

export class OpenConversation {
  readonly id: string;
  /** The conversation with all operations so far: a new value after each. */
  value: Conversation = conversationOf(EMPTY_DATA);
  readonly files = new SentFiles();
  /** Whether a reload will lose what should be stored. */
  isNotKept = false;
  /** Called when `value` or `isNotKept` may have changed. */
  onChange: () => void = () => {};
  /** Called when another tab has changed the conversation, with the values before and after. */
  onRebase: (before: Conversation, after: Conversation) => void = () => {};
  /** Resolves when all operations so far are stored, or storing them has failed. */
  stored: Promise<unknown> = Promise.resolve();
  readonly #options: OpenConversationOptions;
  readonly #writer = randomId().slice(0, 12);
  /** Number of operations made here. */
  #number = 0;
  /** Operations made here that are not known to be stored. */
  #own: NumberedOperation[] = [];
  /** The stored part, as far as known: the row with its clock, the operations after it, and the result of both. */
  #row = this.value;
  #clock: number | undefined;
  #entries: readonly Entry[] = [];
  #base = this.value;
  /** Clock of the last write here: no two rows have the same, even if the conversation was deleted in between. */
  #newest = 0;
  /** When it was last written, in milliseconds. */
  #savedAt = 0;
  /** Applies the operations of other tabs; absent until its code is loaded. */
  #applyFound: Apply | undefined;
  /** Number of the last operation that was appended when the page was left: a new object each time. */
  #left = { number: 0 };
  #hasEndedStoring = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: OpenConversationOptions, id = randomId()) {
    this.#options = options;
    this.id = id;
  }

  /** Whether it is in the store. */
  get isStored(): boolean {
    return this.#clock !== undefined;
  }

  /** Whether all operations were passed to the store, and it is not about to be mistaken for that of a closed tab. */
  get isSaved(): boolean {
    return this.#own.every(({ number }) => number <= this.#left.number) && !this.isNotKept && !this.#isOld;
  }

  get #isOld(): boolean {
    return this.#options.owner().kept === "tab" && Date.now() > this.#savedAt + TOUCH_AFTER_MS;
  }

  /** Puts what was read before all operations made here, none of which has files yet. */
  open({ row, entries, apply }: Loaded): void {
    this.#applyFound = apply;
    this.#row = conversationOf(row);
    this.#clock = row.clock;
    this.#savedAt = row.updatedAt;
    this.#rebase(entries, true);
  }

  /** Adds the data of files, which is read later. Waits for the current write, which was made without that data. */
  fill(fill: Fill): Promise<unknown> {
    this.stored = this.stored.then(() => {
      this.#row = fill(this.#row, this.files);
      this.#base = fill(this.#base, this.files);
      this.value = fill(this.value, this.files);
      this.onChange();
    });
    return this.stored;
  }

  /** Adds the data of the files of the last message. */
  addFiles(attachments: readonly Attachment[]): void {
    this.files.keep(lastQuestionOf(this.value)?.id, attachments);
    this.#keepFiles();
  }

  change(operation: Operation): void {
    const before = this.value;
    this.#apply(operation);
    if (this.value === before) return;
    // The beginning and the end of an answer are stored at once, in case the browser crashes.
    const isGrowing = operation.type === "event" && before.run?.after !== 0 && this.value.run !== undefined;
    if (isGrowing) this.#timer ??= setTimeout(() => void this.save(), SAVE_EVERY_MS);
    else void this.save();
  }

  #apply(operation: Operation): void {
    const next = apply(this.value, operation);
    // There is nothing to store.
    if (next === this.value) return;
    const own = this.#numbered(operation);
    this.value = withSeen(next, own);
    // As long as there is no store, older operations are dropped: the first row will contain their result.
    if (!this.isStored && !this.#options.store()) this.#own = [];
    this.#own.push(own);
  }

  #numbered(operation: Operation): NumberedOperation {
    this.#number += 1;
    return { writer: this.#writer, number: this.#number, operation };
  }

  /**
   * Applies an operation that was meant for the current value. Resolves with the result, or with `undefined` if another
   * tab has continued the conversation in the meantime or `isStill` no longer accepts the value.
   */
  async commit(
    operation: Operation,
    isStill: (now: Conversation) => boolean = () => true,
  ): Promise<Conversation | undefined> {
    const { head, run } = this.value;
    const isSame = (now: Conversation) => now.head === head && now.run?.run === run?.run && isStill(now);
    const answered = this.isStored && (await this.#save({ operation, isStill: isSame }));
    if (answered) return answered.made;
    // Without the store, no other tab can have changed it.
    if (!isSame(this.value)) return undefined;
    this.#apply(operation);
    const made = this.value;
    void this.save();
    this.onChange();
    return made;
  }

  /** Resolves when all operations are stored, or storing them has failed, and those of other tabs are applied here. */
  save(): Promise<unknown> {
    return this.#save();
  }

  /**
   * To be called when the page is left: there is no time to read what other tabs have stored, or to wait for a pending
   * write. An operation that is appended twice counts once.
   */
  leave(): void {
    this.#endTimer();
    const store = this.#options.store();
    if (!store || this.#hasEndedStoring || this.value.tree.length === 0 || (this.isStored && this.isSaved)) return;
    const { change, entries } = this.#write(this.#own, this.value);
    this.#left = { number: this.#number };
    if (!change) return;
    this.#savedAt = change.summary.updatedAt;
    const appended = store.append(change).catch(() => {
      this.isNotKept = true;
    });
    this.stored = Promise.all([this.stored, appended]);
    this.#options.onAppend(this.id, { clock: this.#clock, count: UNKNOWN, entries });
  }

  /** Another tab has appended something. */
  receive({ clock, count, entries, row }: Appended): void {
    if (!this.isStored) return;
    if (clock !== this.#clock || count !== this.#entries.length || !this.#applyFound) return void this.save();
    const before = this.value;
    this.#rebase([...this.#entries, ...entries]);
    if (row !== undefined) this.#compact(row);
    this.onRebase(before, this.value);
    this.onChange();
  }

  /** It was deleted to make room, but is shown here: stores it again. */
  restore(): void {
    this.#clock = undefined;
    this.#entries = [];
    this.change({ type: "rename", name: this.value.name });
  }

  /** Stops storing it. */
  endStoring(): void {
    this.#endTimer();
    this.#hasEndedStoring = true;
  }

  /** Resolves with `undefined` if there is no store, or it has failed. */
  #save(attempt?: Attempt): Promise<Answered | undefined> {
    this.#endTimer();
    const saved = this.stored.then(() => this.#update(attempt));
    this.stored = saved;
    return saved;
  }

  #endTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  async #update(attempt?: Attempt): Promise<Answered | undefined> {
    const isNothing = this.value.tree.length === 0 && !this.isStored;
    const store = isNothing || this.#hasEndedStoring ? undefined : this.#options.store();
    if (!store) return undefined;
    const left = this.#left;
    let made: Conversation | undefined;
    let written: Written | undefined;
    let rebased: readonly [before: Conversation, after: Conversation] | undefined;
    const change = (found: Found) => {
      made = written = undefined;
      // The page was left in the meantime, which has written the first row.
      if (this.#hasEndedStoring || (!this.isStored && left !== this.#left)) return undefined;
      this.#applyFound ??= found.apply;
      if (!this.#applyFound && found.entries.some(({ writer }) => writer !== this.#writer)) return "unread";
      const before = this.value;
      this.#takeOver(found);
      if (before !== this.value) rebased = [rebased?.[0] ?? before, this.value];
      const own = [...this.#own];
      if (attempt?.isStill(this.value)) {
        own.push(this.#numbered(attempt.operation));
        made = fold(this.value, own);
      }
      if (own.length > 0 || this.#isDue(found)) written = this.#write(own, made ?? this.value, found);
      return written?.change;
    };
    const makeRoom = () => this.#options.makeRoom(summaryOf(this.id, this.value, this.#options.owner(), 0).size);
    let hasFailed = false;
    await store.update(this.id, this.#clock, change, makeRoom).catch(() => {
      hasFailed = true;
    });
    if (written && !hasFailed) this.#acknowledge(written);
    this.isNotKept = hasFailed;
    if (rebased) this.onRebase(...rebased);
    this.onChange();
    return hasFailed ? undefined : { made };
  }

  /** Whether the summary must be written again: it still says `tab`, or soon looks like that of a closed tab. */
  #isDue({ summary }: Found): boolean {
    const { kept } = summaryOf(this.id, this.value, this.#options.owner(), 0);
    return summary !== undefined && (this.#isOld || (kept === "browser" && kept !== summary.kept));
  }

  /** Takes over what other tabs have stored. */
  #takeOver({ summary, row, entries }: Found): void {
    this.#savedAt = summary?.updatedAt ?? 0;
    if (row) {
      this.#row = row.withSent(this.value, this.files);
      this.#clock = row.conversation.clock;
    } else if (!summary) {
      // The browser has cleared the database: what this tab shows is stored again.
      this.#clock = undefined;
      this.#entries = [];
      return;
    }
    const isKnown = entries.length === this.#entries.length && areFirst(entries, this.#entries);
    if (row || !isKnown) this.#rebase(entries, row !== undefined);
  }

  /** Applies the operations made here after `entries`. */
  #rebase(entries: readonly Entry[], isRowNew = false): void {
    const known = this.#entries;
    const isLonger = !isRowNew && areFirst(known, entries);
    const [from, added] = isLonger ? [this.#base, entries.slice(known.length)] : [this.#row, entries];
    // Until the code for other tabs' operations is loaded, all entries are this tab's own.
    this.#base = (this.#applyFound ?? fold)(from, added);
    this.#entries = entries;
    this.#applyOwn();
  }

  /** Applies the operations that are not stored after those that are. */
  #applyOwn(): void {
    this.#own = this.#own.filter((it) => !hasSeen(this.#base, it));
    this.value = fold(this.#base, this.#own);
  }

  /** From now on the row contains all operations. */
  #compact(clock: number): void {
    this.#row = this.#base;
    this.#clock = clock;
    this.#entries = [];
  }

  /** The write after which all of `value` is stored. Without `found`, other tabs may have written something unknown here. */
  #write(own: readonly NumberedOperation[], value: Conversation, found?: Found): Written {
    const clocks = this.#entries.map((entry) => entry.clock).filter(Number.isFinite);
    const clock = 1 + Math.max(this.#newest, this.#clock ?? 0, ...clocks);
    this.#newest = clock;
    const isDue = own.length === 0;
    const entries = merged(this.#base, own).map((it) => entryOf(this.id, clock, it));
    const hasEnded = this.#base.run !== undefined && !value.run;
    const hasFiles = own.some(({ operation: it }) => it.type === "ask" && it.message.files.length > 0);
    const isLong = hasEnded || hasFiles || this.#entries.length + entries.length > MAX_ENTRIES;
    // A row replaces all that is stored, which must be known for that.
    const isRowDue = !this.isStored || (isLong && found !== undefined);
    const owner = this.#options.owner();
    const row = isRowDue ? rowOf(this.id, value, owner, clock) : undefined;
    const now = summaryOf(this.id, value, owner, (found && (row?.clock ?? this.#clock)) ?? UNKNOWN);
    // Renaming a conversation, or reading it, does not move it in the list.
    const isSame = ({ operation }: NumberedOperation) => /^(rename|read)$/.test(operation.type);
    const updatedAt = (!isDue && own.every(isSame) && found?.summary?.updatedAt) || now.updatedAt;
    const summary = { ...now, updatedAt };
    const change = { summary, ...(row ? { row } : { entries }) };
    const isNew = isDue || isRowDue || entries.length > 0;
    return { change: isNew ? change : undefined, base: value, entries };
  }

  /** To be called when the write has succeeded. */
  #acknowledge({ change, base, entries }: Written): void {
    const row = change?.row;
    this.#savedAt = change?.summary.updatedAt ?? this.#savedAt;
    const appended = { clock: this.#clock, count: this.#entries.length, entries, row: row?.clock };
    this.#base = base;
    this.#entries = [...this.#entries, ...entries];
    if (row) this.#compact(row.clock);
    this.#applyOwn();
    if (change) this.#options.onAppend(this.id, appended);
    if (row) this.#keepFiles();
  }

  /** Has the store keep the data of files and of the pictures of tools, too. */
  #keepFiles(): void {
    const attachments = this.files.all;
    const { tree, states, root } = this.#base;
    const hasPictures = withParts(tree, withoutData) !== tree;
    if (this.#clock === undefined || (attachments.size === 0 && !hasPictures)) return;
    const row = rowOf(this.id, this.#base, this.#options.owner(), this.#clock);
    void this.#options.store()?.keepFiles({ ...row, tree, states, root, attachments });
  }
}

/** Whether a list begins with these. */
const areFirst = (these: readonly Entry[], list: readonly Entry[]): boolean =>
  these.every(({ id }, index) => id === list[index]?.id);
