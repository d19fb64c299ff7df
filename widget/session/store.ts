/**
 * The browser's library of conversations: what a list shows of each, apart from its messages. Several tabs may show
 * one; the store lets one at a time write.
 */

import { lazy } from "../loading/lazy.ts";
import type { PendingChange, PendingMessage } from "./conversation.ts";
import type { AnswerRow, Found, Queue, Row, StoredConversation, Summary } from "./row.ts";
import {
  answerKey,
  answerRow,
  charsOf,
  pendingOf,
  soundSummary,
  summaryOf,
  toRow,
  UNREADABLE,
  withoutPictures,
} from "./row.ts";

/** How long an element may go on with a conversation alone, from each save on. */
export const LEASE_MS = 5_000;

/** The element that writes, and the revision that it knows. */
export interface Writer {
  readonly writer: string;
  readonly revision: number;
}

/** The conversation that is shown, as the store knows it. */
export interface Shown {
  /** Absent before its first message. */
  id: string | undefined;
  name: string | undefined;
  /** The revision that is shown, or that follows from what is shown. */
  revision: number;
  /** Whether no other element has written it since. */
  isWriter: boolean;
  /** Until then another element writes what both receive. */
  followsUntil: number;
  /** When it was saved; 0 if it is not known in the store. */
  savedAt: number;
}

/** What is shown and not in the store: it is stored anew. */
export const UNKNOWN = { revision: 0, savedAt: 0 };

export type MakeRoom = (chars: number) => Promise<boolean>;

/** Keeps the conversations of one server. Its methods reject where the browser forbids storage or has no room. */
export interface ConversationStore {
  list(): Promise<readonly Summary[]>;
  /** `UNREADABLE` for what another version of the chat has written, and for what is damaged. */
  load(id: string): Promise<Found>;
  /**
   * Where there is little room, older messages are left out. `false`: another element has written something else, or
   * is writing, or has deleted it. `isLeaving`: the page is left, and there is no time to look. `makeRoomFor` is asked
   * first where there is little room, and resolves with whether it may be tried again.
   */
  save(conversation: StoredConversation, by: Writer, isLeaving?: boolean, makeRoomFor?: MakeRoom): Promise<boolean>;
  /** Whether the element may go on with the conversation now: then no other may for a while. */
  claim(id: string, by: Writer): Promise<boolean>;
  /** Changes what is pending, whoever writes the conversation. Resolves with what is pending then. */
  queue(id: string, change: PendingChange): Promise<readonly PendingMessage[]>;
  /** Resolves with what brings it back as it was, also where it cannot be read. */
  delete(id: string): Promise<() => Promise<void>>;
}

/** Whether what is stored was written by the same element, or is what it knows and nobody goes on with it. */
export function mayWrite(stored: Summary | undefined, { writer, revision }: Writer): boolean {
  if (!stored) return revision === 0;
  return stored.writer === writer || (stored.revision === revision && !isLeased(stored));
}

/** Whether an element goes on with it. */
export const isLeased = ({ until }: Summary): boolean => isAhead(until);

/** Whether a lease lasts. One that ends later than one of now would was made before the clock was set back. */
export function isAhead(until: number): boolean {
  const left = until - Date.now();
  return left >= 0 && left <= LEASE_MS;
}

/** The most characters that the messages of one conversation have together: all are copied with each save. */
const MAX_CHARS = 2_000_000;
/** Half a conversation would be a false one: without room for so much, nothing is kept. */
const MIN_CHARS = 1_000;

const ROWS = "conversations";
const SUMMARIES = "summaries";
const PENDING = "pending";

const TABLES = [ROWS, SUMMARIES, PENDING] as const;

const reading = lazy(() => import("./read-row.ts"), "fromRow");
const shrinking = lazy(() => import("./shrink.ts"), "shrink");

/** A browser in trouble may never answer, and the chat waits for its conversation. */
const OPEN_WITHIN_MS = 3_000;

export class IndexedDbStore implements ConversationStore {
  readonly #server: string;
  #database: Promise<IDBDatabase> | undefined;
  /** What was written last: while its answer comes, that alone is written again. */
  #written: readonly [StoredConversation, Summary] | undefined;

  constructor(server: URL) {
    this.#server = server.href;
  }

  async list(): Promise<readonly Summary[]> {
    const transaction = await this.#begin("readonly", SUMMARIES);
    const found = await settled<Summary[]>(transaction.objectStore(SUMMARIES).index("server").getAll(this.#server));
    return found.map(soundSummary);
  }

  async load(id: string): Promise<Found> {
    const transaction = await this.#begin("readonly", ...TABLES);
    const [[row, answer], summary, queue] = await Promise.all([
      settled<[Row?, AnswerRow?]>(transaction.objectStore(ROWS).getAll(partsOf(id)) as IDBRequest),
      settled<Summary | undefined>(transaction.objectStore(SUMMARIES).get(id)),
      settled<Queue | undefined>(transaction.objectStore(PENDING).get(id)),
    ]);
    if (!row) return summary && UNREADABLE;
    const { fromRow, withAnswer } = await reading.load();
    // What may be written is decided by the summary.
    return fromRow({ ...withAnswer(row, answer), revision: summary?.revision ?? 0, pending: pendingOf(queue) });
  }

  async save(
    conversation: StoredConversation,
    by: Writer,
    isLeaving = false,
    makeRoomFor?: MakeRoom,
  ): Promise<boolean> {
    const chars = charsOf(conversation.tree);
    for (let room = MAX_CHARS; ; ) {
      try {
        const isLarge = chars > room;
        const { id, run, updatedAt, revision } = conversation;
        // Another element may go on with it as soon as no answer comes here.
        const until = run && !isLeaving ? Date.now() + LEASE_MS : 0;
        const [written, known] = this.#written ?? [];
        const answer = isLarge || isLeaving || by.revision === 0 ? undefined : answerRow(written, conversation);
        if (answer && known) {
          const summary = { ...known, updatedAt, revision, writer: by.writer, until };
          return await this.#write(by, id, () => [summary, answer]);
        }
        const row = toRow(isLarge ? (await shrinking.load()).shrink(conversation, room) : conversation);
        const summary = summaryOf(row, by.writer, until);
        // Later it is changed with `queue` alone.
        const pending = by.revision === 0 ? (conversation.pending ?? []).map(withoutPictures) : [];
        const isTaken = await this.#write(by, isLeaving ? undefined : id, () => [summary, row, pending]);
        this.#written = isTaken ? [conversation, summary] : undefined;
        return isTaken;
      } catch (error) {
        const isFull = error instanceof DOMException && error.name === "QuotaExceededError";
        if (!isFull || room < MIN_CHARS) throw error;
        if (!(await makeRoomFor?.(chars))) room /= 2;
      }
    }
  }

  claim(id: string, by: Writer): Promise<boolean> {
    return this.#write(by, id, (known) => [known && { ...known, writer: by.writer, until: Date.now() + LEASE_MS }]);
  }

  async queue(id: string, change: PendingChange): Promise<readonly PendingMessage[]> {
    const transaction = await this.#begin("readwrite", PENDING);
    const table = transaction.objectStore(PENDING);
    const request: IDBRequest<Queue | undefined> = table.get(id);
    let pending: readonly PendingMessage[] = [];
    request.onsuccess = () => {
      pending = change(pendingOf(request.result));
      if (pending.length > 0) table.put({ id, pending: pending.map(withoutPictures) });
      else table.delete(id);
      transaction.commit();
    };
    await completed(transaction);
    return pending;
  }

  async delete(id: string): Promise<() => Promise<void>> {
    const transaction = await this.#begin("readwrite", ...TABLES);
    const tables = TABLES.map((name) => transaction.objectStore(name));
    const found = tables.map((table) => settled<object[]>(table.getAll(partsOf(id))));
    for (const table of tables) table.delete(partsOf(id));
    transaction.commit();
    const [rows] = await Promise.all([Promise.all(found), completed(transaction)]);
    return async () => {
      const back = await this.#begin("readwrite", ...TABLES);
      // What another element has stored there meanwhile stays.
      for (const [index, name] of TABLES.entries())
        for (const row of rows[index] ?? []) back.objectStore(name).add(row);
      return completed(back);
    };
  }

  /** Writes both, where what is stored under `id` allows it. Without an `id` it does not look. */
  async #write(
    by: Writer,
    id: string | undefined,
    change: (known: Summary | undefined) => readonly [Summary | undefined, (Row | AnswerRow)?, Queue["pending"]?],
  ): Promise<boolean> {
    const transaction = await this.#begin("readwrite", ROWS, SUMMARIES, PENDING);
    const [rows, summaries] = [transaction.objectStore(ROWS), transaction.objectStore(SUMMARIES)];
    let isAllowed = true;
    let failure: unknown;
    const put = (known?: Summary) => {
      const [summary, row, pending = []] = change(known);
      if (summary) summaries.put({ ...summary, server: this.#server });
      if (row) rows.put(row);
      if (row && "tree" in row) rows.delete(answerKey(row.id));
      if (row && pending.length > 0) transaction.objectStore(PENDING).put({ id: row.id, pending });
      // Else it would wait for its requests, and a page that is left does not live to see them.
      transaction.commit();
    };
    if (id === undefined) put();
    else {
      const request: IDBRequest<Summary | undefined> = summaries.get(id);
      request.onsuccess = () => {
        isAllowed = mayWrite(request.result, by);
        try {
          if (isAllowed) put(request.result);
        } catch (error) {
          failure = error;
          transaction.abort();
        }
      };
    }
    await completed(transaction).catch((error) => {
      throw failure ?? error;
    });
    return isAllowed;
  }

  async #begin(mode: IDBTransactionMode, ...tables: string[]): Promise<IDBTransaction> {
    this.#database ??= this.#open();
    const database = await this.#database;
    return database.transaction(tables, mode, { durability: "relaxed" });
  }

  async #open(): Promise<IDBDatabase> {
    const forget = () => {
      this.#database = undefined;
    };
    try {
      const database = await openDatabase();
      database.onclose = forget;
      database.onversionchange = () => {
        forget();
        database.close();
      };
      return database;
    } catch (error) {
      forget();
      throw error;
    }
  }
}

/** The row of a conversation, and an answer that was written since. */
const partsOf = (id: string): IDBKeyRange => IDBKeyRange.bound(`${id}`, answerKey(id));

/** Rejects where the browser forbids storage, for example in a private window or a third-party frame. */
async function openDatabase(): Promise<IDBDatabase> {
  const opening = indexedDB.open("agent-chat", 4);
  opening.onupgradeneeded = () => {
    const database = opening.result;
    for (const name of database.objectStoreNames) database.deleteObjectStore(name);
    for (const name of [ROWS, PENDING]) database.createObjectStore(name, { keyPath: "id" });
    database.createObjectStore(SUMMARIES, { keyPath: "id" }).createIndex("server", "server");
  };
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error("IndexedDB does not answer"));
      // An open connection that is not used would keep newer versions of the chat from opening theirs.
      opening.onsuccess = () => opening.result.close();
    }, OPEN_WITHIN_MS);
    settled(opening)
      .then(resolve, reject)
      .finally(() => clearTimeout(timer));
  });
}

function settled<Result>(request: IDBRequest<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function completed(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
  });
}
