/** The browser's database of conversations. */

import { lazy } from "../loading/lazy.ts";
import { databaseNames } from "./database-names.ts";
import { completed, entriesOf, open, partsOf, ROWS, SUMMARIES, settled, TABLES, type Transact } from "./idb.ts";
import {
  charsOf,
  type Entry,
  type Row,
  type StoredConversation,
  type Summary,
  type UNREADABLE,
  VERSION,
} from "./row.ts";
import type { Change, ConversationStore, Found, Loaded } from "./store.ts";

const reading = lazy(() => import("./read-row.ts"), "read");
type Reader = typeof import("./read-row.ts");
const files = lazy(() => import("./kept-files.ts"), "keep");

/** Maximum number of characters of all messages of one conversation. */
const MAX_CHARS = 2_000_000;
/** If not even this many fit, nothing is stored: half a conversation would be a false one. */
const MIN_CHARS = 1_000;

/** A browser in trouble may never answer, and the chat waits for its conversation. */
const OPEN_WITHIN_MS = 3_000;

export class IndexedDbStore implements ConversationStore {
  readonly #server: string;

  constructor(server: URL) {
    this.#server = server.href;
    // Creating a database takes a while. If it is open before the first message, even a page that is left then can store that.
    void connect(this.#server).catch(() => undefined);
  }

  list(): Promise<readonly Summary[]> {
    return this.#transact("readonly", [SUMMARIES], (it) => settled(it.objectStore(SUMMARIES).getAll()));
  }

  async load(id: string): Promise<Loaded | typeof UNREADABLE | undefined> {
    return (await reading.load()).read(this.#transact, id);
  }

  async copy(id: string): Promise<() => Promise<void>> {
    return (await reading.load()).copy(this.#transact, id);
  }

  async keepFiles(conversation: StoredConversation): Promise<void> {
    // Messages are stored even if there is no room for their files.
    await this.#withFiles((it) => it.keep(this.#transact, conversation));
  }

  #withFiles(work: (module: typeof import("./kept-files.ts")) => Promise<unknown>): Promise<unknown> {
    return files
      .load()
      .then(work)
      .catch(() => undefined);
  }

  async update(
    id: string,
    clock: number | undefined,
    change: (found: Found) => Change | "unread" | undefined,
    makeRoom: () => Promise<boolean>,
  ): Promise<void> {
    let reader: Reader | undefined;
    for (let room = MAX_CHARS; ; ) {
      try {
        if (await this.#update(id, clock, (found) => changed(found, change, { room, reader }))) return;
        reader = await reading.load();
      } catch (error) {
        if (!isFull(error) || room < MIN_CHARS) throw error;
        // Text is worth more than files.
        const hadFiles = await this.#withFiles((it) => it.dropAll(this.#transact));
        if (!hadFiles && !(await makeRoom())) room /= 2;
      }
    }
  }

  /** Resolves with whether it could be done without loading more code. */
  #update(id: string, clock: number | undefined, change: (found: RawFound) => Change | undefined | "unread") {
    return this.#transact("readwrite", TABLES, async (transaction) => {
      const [rows, summaries] = [transaction.objectStore(ROWS), transaction.objectStore(SUMMARIES)];
      let failure: unknown;
      let isDone = true;
      const write = (found: RawFound) => {
        try {
          const made = change(found);
          isDone = made !== "unread";
          if (made && made !== "unread") {
            if (made.row) rows.delete(entriesOf(id));
            put(transaction, made);
          }
          transaction.commit();
        } catch (error) {
          failure = error;
          transaction.abort();
        }
      };
      const known: IDBRequest<Summary | undefined> = summaries.get(id);
      const entries: IDBRequest<Entry[]> = rows.getAll(entriesOf(id));
      entries.onsuccess = () => {
        const found = { summary: known.result, entries: entries.result };
        if (known.result === undefined || known.result.clock === clock) return write(found);
        const row: IDBRequest<Row | undefined> = rows.get(id);
        row.onsuccess = () => write({ ...found, row: row.result });
      };
      await completed(transaction).catch((error) => {
        throw failure ?? error;
      });
      return isDone;
    });
  }

  append(change: Change): Promise<void> {
    return this.#transact("readwrite", TABLES, (transaction) => {
      put(transaction, change);
      // Otherwise the transaction would wait for its requests, which do not end if the page is left.
      transaction.commit();
      return completed(transaction);
    });
  }

  async delete(id: string): Promise<void> {
    await this.#transact("readwrite", TABLES, (transaction) => {
      for (const name of TABLES) transaction.objectStore(name).delete(partsOf(id));
      transaction.commit();
      return completed(transaction);
    });
    await (await olderOf(this.#server))?.deleteFrom(this.#server, id);
  }

  /** Systems such as iOS close a connection silently: then another one is opened, and the work is tried once more. */
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

type RawFound = Omit<Found, "row"> & { readonly row?: Row | undefined };

/** `unread`: more code is needed to read what was found, or to shrink what is to be written. */
function changed(
  { row, ...found }: RawFound,
  change: (found: Found) => Change | "unread" | undefined,
  { room, reader }: { readonly room: number; readonly reader: Reader | undefined },
): Change | undefined | "unread" {
  if (row && !reader) return "unread";
  const made = change({ ...found, row: row && reader?.readRow(row), apply: reader?.applySound });
  if (made === "unread" || !made?.row || charsOf(made.row.tree) <= room) return made;
  return reader ? { ...made, row: reader.shrink(made.row, room) } : "unread";
}

const isFull = (error: unknown) => error instanceof DOMException && error.name === "QuotaExceededError";

function put(transaction: IDBTransaction, { summary, entries = [], row }: Change): void {
  const rows = transaction.objectStore(ROWS);
  transaction.objectStore(SUMMARIES).put(summary);
  if (row) rows.put(row);
  for (const entry of entries) rows.put(entry);
}

/** The connections of this page, by server. They outlive its elements. */
const connections = new Map<string, Promise<IDBDatabase>>();

/** Rejects where the browser forbids storage, for example in a private window or a third-party frame. */
function connect(server: string): Promise<IDBDatabase> {
  const known = connections.get(server);
  if (known) return known;
  const connection = new Promise<IDBDatabase>((resolve, reject) => {
    setTimeout(() => reject(new Error("IndexedDB does not answer")), OPEN_WITHIN_MS);
    openDatabase(server).then((database) => {
      resolve(database);
      // It was opened too late.
      if (connections.get(server) !== connection) database.close();
    }, reject);
  });
  connections.set(server, connection);
  connection.then(
    (database) => {
      // The site is deleting the database.
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
 * Each version of the chat has databases of its own, one per server, so that other versions do not affect it. A new
 * database takes over what an older version has stored.
 */
async function openDatabase(server: string): Promise<IDBDatabase> {
  const name = `agent-chat-${VERSION}:${server}`;
  const names = await databaseNames();
  const older = names?.includes(name) ? undefined : await olderOf(server);
  const rows = (await older?.rowsOf(server)) ?? [];
  const create = (database: IDBDatabase) =>
    TABLES.forEach((table, index) => {
      const created = database.createObjectStore(table, { keyPath: "id" });
      for (const row of rows[index] ?? []) created.put(row);
    });
  return open(name, create);
}

/** The code that reads databases of older versions; absent if there are none. */
async function olderOf(server: string): Promise<Reader | undefined> {
  const isOlder = (name: unknown) => name === "agent-chat" || name === `agent-chat-5:${server}`;
  return (await databaseNames())?.some(isOlder) ? reading.load() : undefined;
}
