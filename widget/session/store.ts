/**
 * The browser's library of conversations: what a list shows of each, apart from its messages. Several tabs may show
 * one; the store lets one at a time write.
 */

import { lazy } from "../loading/lazy.ts";
import type { PendingChange, PendingMessage } from "./conversation.ts";
import { completed, open, PENDING, partsOf, ROWS, SUMMARIES, settled, TABLES, type Transact } from "./idb.ts";
import { isLeased, LEASE_MS } from "./lease.ts";
import type { AnswerRow, Found, Queue, Row, StoredConversation, Summary } from "./row.ts";
import { answerKey, answerRow, charsOf, pendingOf, summaryOf, toRow, VERSION, withoutPictures } from "./row.ts";

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
  /** As it was read from there, or stored by this element, last: what is not in it is not stored yet. */
  known?: StoredConversation;
}

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
  delete(id: string): Promise<void>;
  /** Resolves with what brings it back as it is now, also where it cannot be read, once it was deleted. */
  copy(id: string): Promise<() => Promise<void>>;
}

/** Whether what is stored was written by the same element, or is what it knows and nobody goes on with it. */
export function mayWrite(stored: Summary | undefined, { writer, revision }: Writer): boolean {
  if (!stored) return revision === 0;
  return stored.writer === writer || (stored.revision === revision && !isLeased(stored));
}

/** The most characters that the messages of one conversation have together: all are copied with each save. */
const MAX_CHARS = 2_000_000;
/** Half a conversation would be a false one: without room for so much, nothing is kept. */
const MIN_CHARS = 1_000;

const reading = lazy(() => import("./read-row.ts"), "read");
const files = lazy(() => import("./kept-files.ts"), "keep");

/** What is said is kept also where there is no room for its files. */
const tryWithFiles = (work: (module: typeof import("./kept-files.ts")) => Promise<unknown>) =>
  files
    .load()
    .then(work)
    .catch(() => false);

/** A browser in trouble may never answer, and the chat waits for its conversation. */
const OPEN_WITHIN_MS = 3_000;

export class IndexedDbStore implements ConversationStore {
  readonly #server: string;
  /** What was written last: while its answer comes, that alone is written again. */
  #written: readonly [StoredConversation, Summary] | undefined;

  constructor(server: URL) {
    this.#server = server.href;
  }

  list(): Promise<readonly Summary[]> {
    return this.#transact("readonly", [SUMMARIES], (it) => settled(it.objectStore(SUMMARIES).getAll()));
  }

  async load(id: string): Promise<Found> {
    return (await reading.load()).read(this.#transact, id);
  }

  async copy(id: string): Promise<() => Promise<void>> {
    return (await reading.load()).copy(this.#transact, id);
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
        const whole = isLarge ? (await reading.load()).shrink(conversation, room) : conversation;
        const row = toRow(whole);
        const summary = summaryOf(row, by.writer, until);
        // Later it is changed with `queue` alone.
        const pending = by.revision === 0 ? (conversation.pending ?? []).map(withoutPictures) : [];
        const isTaken = await this.#write(by, isLeaving ? undefined : id, () => [summary, row, pending]);
        this.#written = isTaken ? [conversation, summary] : undefined;
        if (isTaken && (whole.attachments?.size || row.states !== whole.states))
          await tryWithFiles((it) => it.keep(this.#transact, whole));
        return isTaken;
      } catch (error) {
        if (!isFull(error) || room < MIN_CHARS) throw error;
        // Words are worth more than pictures.
        if (await tryWithFiles((it) => it.dropAll(this.#transact))) continue;
        if (!(await makeRoomFor?.(chars))) room /= 2;
      }
    }
  }

  claim(id: string, by: Writer): Promise<boolean> {
    return this.#write(by, id, (known) => [known && { ...known, writer: by.writer, until: Date.now() + LEASE_MS }]);
  }

  queue(id: string, change: PendingChange): Promise<readonly PendingMessage[]> {
    return this.#transact("readwrite", [PENDING], async (transaction) => {
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
    });
  }

  async delete(id: string): Promise<void> {
    await this.#transact("readwrite", TABLES, (transaction) => {
      for (const name of TABLES) transaction.objectStore(name).delete(partsOf(id));
      transaction.commit();
      return completed(transaction);
    });
    await withOlder((older, rows) => rows.deleteFrom(older, id));
  }

  /** Writes both, where what is stored under `id` allows it. Without an `id` it does not look. */
  #write(
    by: Writer,
    id: string | undefined,
    change: (known: Summary | undefined) => readonly [Summary | undefined, (Row | AnswerRow)?, Queue["pending"]?],
  ): Promise<boolean> {
    return this.#transact("readwrite", TABLES, async (transaction) => {
      const [rows, summaries] = [transaction.objectStore(ROWS), transaction.objectStore(SUMMARIES)];
      let isAllowed = true;
      let failure: unknown;
      const put = (known?: Summary) => {
        const [summary, row, pending = []] = change(known);
        if (summary) summaries.put(summary);
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
    });
  }

  /** Systems such as iOS close a connection without a word: then another one is opened, and it is tried once more. */
  readonly #transact: Transact = async (mode, tables, work, isLast = false) => {
    const connection = connect(this.#server);
    const database = await connection;
    try {
      return await work(database.transaction(tables, mode, { durability: "relaxed" }));
    } catch (error) {
      if (isLast || isFull(error)) throw error;
      leave(this.#server, connection);
      return this.#transact(mode, tables, work, true);
    }
  };
}

const isFull = (error: unknown) => error instanceof DOMException && error.name === "QuotaExceededError";

/** The connections of this page, by server. They outlive its elements, of which they know nothing. */
const connections = new Map<string, Promise<IDBDatabase>>();

/** Rejects where the browser forbids storage, for example in a private window or a third-party frame. */
function connect(server: string): Promise<IDBDatabase> {
  const known = connections.get(server);
  if (known) return known;
  const connection = new Promise<IDBDatabase>((resolve, reject) => {
    setTimeout(() => reject(new Error("IndexedDB does not answer")), OPEN_WITHIN_MS);
    openDatabase(server).then((database) => {
      resolve(database);
      // It comes too late.
      if (connections.get(server) !== connection) database.close();
    }, reject);
  });
  connections.set(server, connection);
  connection.then(
    (database) => {
      // The site deletes it.
      database.onversionchange = () => leave(server, connection);
    },
    () => connections.delete(server),
  );
  return connection;
}

function leave(server: string, connection: Promise<IDBDatabase>): void {
  if (connections.get(server) === connection) connections.delete(server);
  void connection.then((database) => database.close());
}

/**
 * Each version of the chat has databases of its own, one for each server: what another version does is no matter to it. It
 * takes over what an older one has kept.
 */
async function openDatabase(server: string): Promise<IDBDatabase> {
  const name = `agent-chat-${VERSION}:${server}`;
  const known = await open(name);
  if (known) return known;
  const rows = await withOlder((older, { rowsOf }) => rowsOf(older, server));
  const create = (database: IDBDatabase) =>
    TABLES.forEach((table, index) => {
      const created = database.createObjectStore(table, { keyPath: "id" });
      for (const row of rows?.[index] ?? []) created.put(row);
    });
  return (await open(name, create)) as IDBDatabase;
}

/** Works with the database of an older version, if there is one. */
async function withOlder<Result>(
  work: (older: IDBDatabase, rows: typeof import("./read-row.ts")) => Promise<Result>,
): Promise<Result | undefined> {
  const older = await open("agent-chat");
  try {
    return older && (await work(older, await reading.load()));
  } finally {
    older?.close();
  }
}
