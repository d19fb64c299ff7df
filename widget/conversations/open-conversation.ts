/**
 * A conversation that is shown or runs. What happens here is applied at once and then appended to the store, behind what other
 * tabs have appended meanwhile; in that order it is applied again, so that all tabs come to the same.
 */

import type { Attachment } from "../../server/protocol/attachments.ts";
import { withoutData, withParts } from "./branch-states.ts";
import { type Conversation, conversationOf, EMPTY_DATA, lastQuestionOf } from "./conversation.ts";
import { apply, fold, hasSeen, merged, type NumberedOperation, type Operation, withSeen } from "./operations.ts";
import { randomId } from "./resumable-run.ts";
import { type Entry, entryOf, type Owner, rowOf, summaryOf } from "./row.ts";
import { SentFiles } from "./sent-files.ts";
import type { Apply, Change, ConversationStore, Fill, Found, Loaded } from "./store.ts";

/** While an answer comes, what has come of it is stored so often. */
const SAVE_EVERY_MS = 1_000;

/** After so many operations, the whole row is written again. */
const MAX_ENTRIES = 40;

/** A clock that no row has, and a count that no tab has. */
const UNKNOWN = -1;

/** What is kept for a tab is saved again after so long, so that it is not taken for one of a closed tab. */
const TOUCH_AFTER_MS = 60 * 60_000;

/** What other tabs are sent: they follow it where they have the same row, and as many operations behind it. Else they look. */
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
  /** For a save that the browser has no room for. Resolves with whether it may be tried again. */
  readonly makeRoom: (chars: number) => Promise<boolean>;
  /** Something was appended here. */
  readonly onAppend: (id: string, appended: Appended) => void;
}

/** What is done only where no other tab has gone on meanwhile. */
interface Attempt {
  readonly operation: Operation;
  readonly isStill: (now: Conversation) => boolean;
}

/** What the store was asked has come to its end. */
interface Answered {
  /** What stands here with what was attempted, if that was done. */
  readonly made: Conversation | undefined;
}

/** What is about to be stored, and what stands there then. */
interface Written {
  /** Absent where another tab has stored the same. */
  readonly change: Change | undefined;
  readonly base: Conversation;
  readonly entries: readonly Entry[];
}

export class OpenConversation {
  readonly id: string;
  /** All that has happened: another value after each change. */
  value: Conversation = conversationOf(EMPTY_DATA);
  readonly files = new SentFiles();
  /** Whether a reload will not find what should be kept. */
  isNotKept = false;
  /** What stands here is another value, or it is kept or not kept any more. */
  onChange: () => void = () => {};
  /** Another tab has changed it: what stood here before, and what stands here with that. */
  onRebase: (before: Conversation, after: Conversation) => void = () => {};
  /** Resolves when what has happened so far is in the store, or could not be. */
  stored: Promise<unknown> = Promise.resolve();
  readonly #options: OpenConversationOptions;
  readonly #writer = randomId().slice(0, 12);
  /** How many operations there were here. */
  #number = 0;
  /** What is not stored yet, as far as it is known. */
  #own: NumberedOperation[] = [];
  /** What is stored, as far as it is known: the row with its clock, the operations behind it, and all of it together. */
  #row = this.value;
  #clock: number | undefined;
  #entries: readonly Entry[] = [];
  #base = this.value;
  /** The clock of what was written here last: no two rows have the same, also where all of it was deleted meanwhile. */
  #newest = 0;
  /** When it was written last. */
  #savedAt = 0;
  /** Applies what other tabs have written, once its code is loaded. */
  #applyFound: Apply | undefined;
  /** When the page was left last, up to which of the operations here were appended: another object each time. */
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

  /** Whether the store was given all that has happened here, and it is not taken for that of a closed tab. */
  get isSaved(): boolean {
    return this.#own.every(({ number }) => number <= this.#left.number) && !this.isNotKept && !this.#isOld;
  }

  get #isOld(): boolean {
    return this.#options.owner().kept === "tab" && Date.now() > this.#savedAt + TOUCH_AFTER_MS;
  }

  /** What was read of it comes before all that has happened here, which has no files yet. */
  open({ row, entries, apply }: Loaded): void {
    this.#applyFound = apply;
    this.#row = conversationOf(row);
    this.#clock = row.clock;
    this.#savedAt = row.updatedAt;
    this.#rebase(entries, true);
  }

  /** Takes over the data of files that was read later, behind what is being written: that was made without it. */
  fill(fill: Fill): Promise<unknown> {
    this.stored = this.stored.then(() => {
      this.#row = fill(this.#row, this.files);
      this.#base = fill(this.#base, this.files);
      this.value = fill(this.value, this.files);
      this.onChange();
    });
    return this.stored;
  }

  /** The data of the files of the last message. */
  addFiles(attachments: readonly Attachment[]): void {
    this.files.keep(lastQuestionOf(this.value)?.id, attachments);
    this.#keepFiles();
  }

  change(operation: Operation): void {
    const before = this.value;
    this.#apply(operation);
    if (this.value === before) return;
    // The beginning and the end of an answer are stored at once: a browser that crashes does not say so before.
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
    // Where nothing is kept, or not yet, all of it will be in a row.
    if (!this.isStored && !this.#options.store()) this.#own = [];
    this.#own.push(own);
  }

  #numbered(operation: Operation): NumberedOperation {
    this.#number += 1;
    return { writer: this.#writer, number: this.#number, operation };
  }

  /**
   * Does what was meant for what stands here, and resolves with what it makes of it: without where another tab has gone on
   * meanwhile, or where `isStill` says that what stands there by now is not it any more.
   */
  async commit(
    operation: Operation,
    isStill: (now: Conversation) => boolean = () => true,
  ): Promise<Conversation | undefined> {
    const { head, run } = this.value;
    const isSame = (now: Conversation) => now.head === head && now.run?.run === run?.run && isStill(now);
    const answered = this.isStored && (await this.#save({ operation, isStill: isSame }));
    if (answered) return answered.made;
    // Without the store no other tab knows of it.
    if (!isSame(this.value)) return undefined;
    this.#apply(operation);
    const made = this.value;
    void this.save();
    this.onChange();
    return made;
  }

  /** Resolves when what has happened is in the store, or could not be, and what other tabs have done is here. */
  save(): Promise<unknown> {
    return this.#save();
  }

  /**
   * The page is left: there is no time to look what other tabs have done, or what becomes of that which is being stored. What
   * is appended twice counts once.
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

  /** It was deleted to make room: what this tab shows is stored again. */
  restore(): void {
    this.#clock = undefined;
    this.#entries = [];
    this.change({ type: "rename", name: this.value.name });
  }

  /** Stores nothing of it any more. */
  endStoring(): void {
    this.#endTimer();
    this.#hasEndedStoring = true;
  }

  /** Resolves without an answer where the store has none. */
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
      // A first row that was written as the page was left takes the place of this.
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

  /** Whether what is stored of it says that it is another's, or is about to be taken for that of a closed tab. */
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

  /** What has happened here comes behind `entries`. */
  #rebase(entries: readonly Entry[], isRowNew = false): void {
    const known = this.#entries;
    const isLonger = !isRowNew && areFirst(known, entries);
    const [from, added] = isLonger ? [this.#base, entries.slice(known.length)] : [this.#row, entries];
    // Without it, all of them are of this tab.
    this.#base = (this.#applyFound ?? fold)(from, added);
    this.#entries = entries;
    this.#applyOwn();
  }

  /** What is not stored comes behind what is. */
  #applyOwn(): void {
    this.#own = this.#own.filter((it) => !hasSeen(this.#base, it));
    this.value = fold(this.#base, this.#own);
  }

  /** All of it stands in a row from now on. */
  #compact(clock: number): void {
    this.#row = this.#base;
    this.#clock = clock;
    this.#entries = [];
  }

  /** What is written so that all of `value` stands there. Without `found`, other tabs may have written what is not known here. */
  #write(own: readonly NumberedOperation[], value: Conversation, found?: Found): Written {
    const clocks = this.#entries.map((entry) => entry.clock).filter(Number.isFinite);
    const clock = 1 + Math.max(this.#newest, this.#clock ?? 0, ...clocks);
    this.#newest = clock;
    const isDue = own.length === 0;
    const entries = merged(this.#base, own).map((it) => entryOf(this.id, clock, it));
    const hasEnded = this.#base.run !== undefined && !value.run;
    const hasFiles = own.some(({ operation: it }) => it.type === "ask" && it.message.files.length > 0);
    const isLong = hasEnded || hasFiles || this.#entries.length + entries.length > MAX_ENTRIES;
    // A row takes the place of all that stands there.
    const isRowDue = !this.isStored || (isLong && found !== undefined);
    const owner = this.#options.owner();
    const row = isRowDue ? rowOf(this.id, value, owner, clock) : undefined;
    const now = summaryOf(this.id, value, owner, (found && (row?.clock ?? this.#clock)) ?? UNKNOWN);
    // A new name leaves it in its place in the list, and so does a look at it.
    const isSame = ({ operation }: NumberedOperation) => /^(rename|read)$/.test(operation.type);
    const updatedAt = (!isDue && own.every(isSame) && found?.summary?.updatedAt) || now.updatedAt;
    const summary = { ...now, updatedAt };
    const change = { summary, ...(row ? { row } : { entries }) };
    const isNew = isDue || isRowDue || entries.length > 0;
    return { change: isNew ? change : undefined, base: value, entries };
  }

  /** What was written is in the store. */
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

  /** Has the store keep the data of files, too, and of the pictures of tools. */
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
