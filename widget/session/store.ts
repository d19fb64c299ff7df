/** Where conversations are kept between page loads. */

import type { Message } from "./messages.ts";
import { fromRow, type StoredConversation, toRow } from "./stored-conversation.ts";

export type { StoredConversation } from "./stored-conversation.ts";

/** One row of a list of conversations. */
export interface ConversationSummary {
  readonly id: string;
  /** The beginning of the first message. */
  readonly title: string;
  readonly updatedAt: number;
  readonly isRunning: boolean;
}

/** Keeps the conversations of one server. Its methods reject where the browser forbids storage or has no room. */
export interface ConversationStore {
  /** The newest first. */
  list(): Promise<readonly ConversationSummary[]>;
  load(id: string): Promise<StoredConversation | undefined>;
  /** Where there is little room, the oldest messages are left out. */
  save(conversation: StoredConversation): Promise<void>;
  delete(id: string): Promise<void>;
}

/** Of the messages of one conversation: all of them are copied with each save. */
const MAX_CHARS = 2_000_000;
/** Half a conversation would be a false one: without room for so much, nothing is kept. */
const MIN_CHARS = 1_000;

/** Summaries are stored apart, so that the list does not read every message of every conversation. */
type SummaryRow = ConversationSummary & { readonly server: string };

const TABLES = ["summaries", "conversations"] as const;

type Tables = Readonly<Record<(typeof TABLES)[number], IDBObjectStore>>;

export class IndexedDbStore implements ConversationStore {
  readonly #server: string;
  #database: Promise<IDBDatabase> | undefined;

  constructor(server: URL) {
    this.#server = server.href;
  }

  async list(): Promise<readonly ConversationSummary[]> {
    const rows = await this.#read<SummaryRow[]>(({ summaries }) => summaries.index("server").getAll(this.#server));
    return rows.sort((a, b) => b.updatedAt - a.updatedAt);
  }

  async load(id: string): Promise<StoredConversation | undefined> {
    return fromRow(await this.#read(({ conversations }) => conversations.get(id)));
  }

  async save(conversation: StoredConversation): Promise<void> {
    const summary: SummaryRow = { ...summaryOf(conversation), server: this.#server };
    for (let room = MAX_CHARS; ; room /= 2) {
      try {
        return await this.#write(({ summaries, conversations }) => {
          summaries.put(summary);
          conversations.put(toRow(conversation, room));
        });
      } catch (error) {
        if (!isFull(error) || room < MIN_CHARS) throw error;
      }
    }
  }

  delete(id: string): Promise<void> {
    return this.#write(({ summaries, conversations }) => {
      summaries.delete(id);
      conversations.delete(id);
    });
  }

  async #read<Result>(request: (tables: Tables) => IDBRequest<Result>): Promise<Result> {
    const { tables } = await this.#begin("readonly");
    return settled(request(tables));
  }

  async #write(change: (tables: Tables) => void): Promise<void> {
    const { transaction, tables } = await this.#begin("readwrite");
    const completed = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    });
    try {
      change(tables);
      // Without a word to the contrary it would wait for its requests, which a page that is left does not live to see.
      transaction.commit();
    } catch (error) {
      completed.catch(() => undefined);
      transaction.abort();
      throw error;
    }
    return completed;
  }

  async #begin(mode: IDBTransactionMode): Promise<{ transaction: IDBTransaction; tables: Tables }> {
    this.#database ??= this.#open();
    const database = await this.#database;
    const transaction = database.transaction(TABLES, mode, { durability: "relaxed" });
    const [summaries, conversations] = TABLES.map((name) => transaction.objectStore(name)) as [
      IDBObjectStore,
      IDBObjectStore,
    ];
    return { transaction, tables: { summaries, conversations } };
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

/** A browser in trouble may never answer, and the chat waits for its conversation. */
const OPEN_WITHIN_MS = 3_000;

/** Rejects where the browser forbids storage, for example in a private window or a third-party frame. */
async function openDatabase(): Promise<IDBDatabase> {
  const opening = indexedDB.open("agent-chat", 1);
  opening.onupgradeneeded = () => {
    const database = opening.result;
    database.createObjectStore("conversations", { keyPath: "id" });
    database.createObjectStore("summaries", { keyPath: "id" }).createIndex("server", "server");
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

function isFull(error: unknown): boolean {
  return error instanceof DOMException && error.name === "QuotaExceededError";
}

function summaryOf({ id, messages, run, updatedAt }: StoredConversation): ConversationSummary {
  const isFromPerson = ({ role }: Message) => role === "user";
  const first = messages.find(isFromPerson);
  const title = first?.role === "user" ? first.text.slice(0, 60) : "";
  return { id, title, updatedAt, isRunning: run !== undefined };
}
