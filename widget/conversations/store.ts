/**
 * Storage for conversations. Several tabs may show the same one: each appends its operations after those of the others,
 * and all read them in that order.
 */

import type { Conversation } from "./conversation.ts";
import type { Entry, Row, StoredConversation, Summary, UNREADABLE } from "./row.ts";
import type { SentFiles } from "./sent-files.ts";

/** Applies the entries of other tabs, except damaged ones. */
export type Apply = (from: Conversation, entries: readonly Entry[]) => Conversation;

/** What is stored of a conversation. */
export interface Found {
  /** Absent if nothing is stored, or it was deleted. */
  readonly summary: Summary | undefined;
  /** Present if it is not the row that is known already, and can be read. */
  readonly row?: ReadRow | undefined;
  /** The operations after the row, in their order, not validated. */
  readonly entries: readonly Entry[];
  /** Absent until its code is loaded. */
  readonly apply?: Apply | undefined;
}

/** A row as it was read. */
export interface ReadRow {
  readonly conversation: StoredConversation;
  /** The conversation with the data of its files that is here: rows do not contain it. */
  readonly withSent: (before: Conversation, files: SentFiles) => Conversation;
}

/** A write. A row replaces the one before, and the entries that were found. */
export interface Change {
  readonly summary: Summary;
  readonly entries?: readonly Entry[];
  readonly row?: Row | undefined;
}

/** Adds the data of files that was read, where the conversation is unchanged since then. */
export type Fill = (now: Conversation, files: SentFiles) => Conversation;

/** A conversation as it was read. */
export interface Loaded {
  readonly row: StoredConversation;
  /** The operations after the row, not validated. */
  readonly entries: readonly Entry[];
  readonly apply: Apply;
  /** The row with the operations applied. */
  readonly conversation: StoredConversation;
  /** Reads the data of its files. Present if any is stored. */
  readonly withFiles?: () => Promise<Fill>;
}

/** Keeps the conversations of one server. Its methods reject where the browser forbids storage or has no room. */
export interface ConversationStore {
  list(): Promise<readonly Summary[]>;
  /** `UNREADABLE` if another version of the chat has written it, or it is damaged. */
  load(id: string): Promise<Loaded | typeof UNREADABLE | undefined>;
  /**
   * In one transaction: reads what is stored, and writes what `change` returns, if anything. `clock` is that of the row
   * known so far, if any. `change` may be called more than once, and its last result counts: after "unread" it is
   * called again when the code that applies the entries is loaded. `makeRoom` is called if the browser has no room, and
   * resolves with whether to try again; otherwise older messages are left out.
   */
  update(
    id: string,
    clock: number | undefined,
    change: (found: Found) => Change | "unread" | undefined,
    makeRoom: () => Promise<boolean>,
  ): Promise<void>;
  /** Writes without reading, because the page is left and there is no time. All stored entries stay. */
  append(change: Change): Promise<void>;
  /** Stores the data of files that is here, as far as there is room. */
  keepFiles(conversation: StoredConversation): Promise<void>;
  delete(id: string): Promise<void>;
  /** Resolves with a function that restores it as it is now after a deletion, even if it cannot be read. */
  copy(id: string): Promise<() => Promise<void>>;
}
