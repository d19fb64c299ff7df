/**
 * Where conversations are kept. Several tabs may show one: what one appends comes behind what the others have appended, and each
 * reads it in that order.
 */

import type { Conversation } from "./conversation.ts";
import type { Entry, Row, StoredConversation, Summary, UNREADABLE } from "./row.ts";
import type { SentFiles } from "./sent-files.ts";

/** Applies what other tabs have written, without what is damaged of it. */
export type Apply = (from: Conversation, entries: readonly Entry[]) => Conversation;

/** What stands in the store. */
export interface Found {
  /** Absent where nothing is stored, or it was deleted. */
  readonly summary: Summary | undefined;
  /** Present where it is not the one that is known, and can be read. */
  readonly row?: ReadRow | undefined;
  /** The operations behind the row, in their order: nothing of them is checked. */
  readonly entries: readonly Entry[];
  /** Absent until its code is loaded. */
  readonly apply?: Apply | undefined;
}

/** A row as it was read. */
export interface ReadRow {
  readonly conversation: StoredConversation;
  /** With what is here of its files, which is not stored in it. */
  readonly withSent: (before: Conversation, files: SentFiles) => Conversation;
}

/** What is written. A row takes the place of the one before, and of the entries that were found. */
export interface Change {
  readonly summary: Summary;
  readonly entries?: readonly Entry[];
  readonly row?: Row | undefined;
}

/** Takes over the data of files that has been read, where what it was read for is still as it was. */
export type Fill = (now: Conversation, files: SentFiles) => Conversation;

/** A conversation as it was read. */
export interface Loaded {
  readonly row: StoredConversation;
  /** The operations behind the row: nothing of them is checked. */
  readonly entries: readonly Entry[];
  readonly apply: Apply;
  /** Both together. */
  readonly conversation: StoredConversation;
  /** Reads the data of its files, too. Present where some is kept. */
  readonly withFiles?: () => Promise<Fill>;
}

/** Keeps the conversations of one server. Its methods reject where the browser forbids storage or has no room. */
export interface ConversationStore {
  list(): Promise<readonly Summary[]>;
  /** `UNREADABLE` for what another version of the chat has written, and for what is damaged. */
  load(id: string): Promise<Loaded | typeof UNREADABLE | undefined>;
  /**
   * In one transaction: reads what stands there, and writes what `change` makes of it, if anything. `clock` is that of the
   * row that is known, if one is. `change` may be asked more than once, and what it makes counts the last time: with "unread"
   * it is asked again when the code is loaded that applies what was found. `makeRoom` is asked where the browser has no room,
   * and resolves with whether it may be tried again; else older messages are left out.
   */
  update(
    id: string,
    clock: number | undefined,
    change: (found: Found) => Change | "unread" | undefined,
    makeRoom: () => Promise<boolean>,
  ): Promise<void>;
  /** Writes without reading: the page is left, and there is no time to look. All entries that stand there stay. */
  append(change: Change): Promise<void>;
  /** Keeps the data of files that is here, as far as there is room. */
  keepFiles(conversation: StoredConversation): Promise<void>;
  delete(id: string): Promise<void>;
  /** Resolves with what brings it back as it is now, also where it cannot be read, once it was deleted. */
  copy(id: string): Promise<() => Promise<void>>;
}
