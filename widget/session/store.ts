/** Where conversations are kept between page loads, and how. Bytes of files and keys are never part of them. */

import type { ContentPart, ConversationState, HistoryMessage } from "../../server/protocol/chat.ts";
import { isRecord, toJson } from "../../server/protocol/json.ts";
import type { SessionData } from "./chat-session.ts";
import type { Message } from "./messages.ts";

/** Everything that a reload must not lose. */
export interface StoredConversation extends SessionData {
  readonly id: string;
  /** Another agent at the same address must not get it. */
  readonly agent: string;
  /** As `/api/info` names them; empty or absent for nobody. */
  readonly user?: string;
  /** When it was saved, in milliseconds. */
  readonly updatedAt: number;
}

/** Keeps the conversations of one server. Its methods reject where the browser forbids storage or has no room. */
export interface ConversationStore {
  list(): Promise<readonly Pick<StoredConversation, "id" | "updatedAt" | "user">[]>;
  load(id: string): Promise<StoredConversation | undefined>;
  /** Where there is little room, the oldest messages are left out. */
  save(conversation: StoredConversation): Promise<void>;
  delete(id: string): Promise<void>;
}

/** The most characters that the messages of one conversation have together: all are copied with each save. */
const MAX_CHARS = 2_000_000;
/** Half a conversation would be a false one: without room for so much, nothing is kept. */
const MIN_CHARS = 1_000;

const TABLE = "conversations";

/** A browser in trouble may never answer, and the chat waits for its conversation. */
const OPEN_WITHIN_MS = 3_000;

export class IndexedDbStore implements ConversationStore {
  readonly #server: string;
  #database: Promise<IDBDatabase> | undefined;

  constructor(server: URL) {
    this.#server = server.href;
  }

  async list() {
    const rows = await this.#read<Row[]>((table) => table.index("server").getAll(this.#server));
    return rows.map(({ id, updatedAt, user = "" }) => ({ id, updatedAt, user }));
  }

  async load(id: string): Promise<StoredConversation | undefined> {
    return fromRow(await this.#read<Row | undefined>((table) => table.get(id)));
  }

  async save(conversation: StoredConversation): Promise<void> {
    for (let room = MAX_CHARS; ; room /= 2) {
      try {
        return await this.#write((table) => table.put({ ...toRow(conversation, room), server: this.#server }));
      } catch (error) {
        const isFull = error instanceof DOMException && error.name === "QuotaExceededError";
        if (!isFull || room < MIN_CHARS) throw error;
      }
    }
  }

  delete(id: string): Promise<void> {
    return this.#write((table) => table.delete(id));
  }

  async #read<Result>(request: (table: IDBObjectStore) => IDBRequest<Result>): Promise<Result> {
    return settled(request(await this.#begin("readonly")));
  }

  async #write(change: (table: IDBObjectStore) => void): Promise<void> {
    const table = await this.#begin("readwrite");
    const { transaction } = table;
    return new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
      change(table);
      // Without a word to the contrary it would wait for its requests, which a page that is left does not live to see.
      transaction.commit();
    });
  }

  async #begin(mode: IDBTransactionMode): Promise<IDBObjectStore> {
    this.#database ??= this.#open();
    const database = await this.#database;
    return database.transaction(TABLE, mode, { durability: "relaxed" }).objectStore(TABLE);
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

/** Rejects where the browser forbids storage, for example in a private window or a third-party frame. */
async function openDatabase(): Promise<IDBDatabase> {
  const opening = indexedDB.open("agent-chat", 2);
  opening.onupgradeneeded = () => {
    const database = opening.result;
    for (const name of database.objectStoreNames) database.deleteObjectStore(name);
    database.createObjectStore(TABLE, { keyPath: "id" }).createIndex("server", "server");
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

/** Grows when older versions of this file could misread what is written. */
const VERSION = 4;

type Row = Omit<StoredConversation, "state"> & {
  readonly version: number;
  /** Absent where it could not be stored. */
  readonly state: ConversationState | undefined;
};

/** A copy to be stored. `maxChars` bounds the messages: the newest are kept, and the state always is. */
export function toRow(conversation: StoredConversation, maxChars: number): Row {
  const messages: Message[] = [];
  let chars = 0;
  for (const message of conversation.messages.toReversed()) {
    chars += sizeOf(message);
    if (chars > maxChars) break;
    messages.unshift(withoutPictures(message));
  }
  const isCut = conversation.isCut || messages.length < conversation.messages.length;
  return { ...conversation, version: VERSION, isCut, messages, state: withoutFiles(conversation.state) };
}

/** A row of another version, or a damaged one, gives `undefined`. */
export function fromRow(row: Row | undefined): StoredConversation | undefined {
  if (row?.version !== VERSION || !isSound(row)) return undefined;
  const { version: _, state, ...rest } = row;
  if (state) return { ...rest, state };
  // The agent knows nothing of it, and without the state it is not known what an earlier one began with.
  const lastAnswer = rest.messages.findLast(({ role }) => role === "assistant");
  const messages = rest.messages.map((message) => {
    if (message.role === "user") return { ...message, stateBefore: undefined };
    return message === lastAnswer ? { ...message, forgotten: true } : message;
  });
  return { ...rest, messages, state: {} };
}

/** Whether it can be shown: scripts of the site and tools of the browser can change what is stored. */
function isSound({ messages, state = {}, run = { run: "", after: 0 } }: Row): boolean {
  const isComplete = isRecord(state) && typeof run.run === "string" && typeof run.after === "number";
  return isComplete && Array.isArray(messages) && messages.every(isMessage);
}

function isMessage(value: unknown): boolean {
  if (!isRecord(value) || !/^m\d+$/.test(`${value.id}`)) return false;
  return value.role === "user"
    ? typeof value.text === "string" && Array.isArray(value.files)
    : Array.isArray(value.blocks);
}

/** Messages never change: each is measured once. */
const sizes = new WeakMap<Message, number>();

function sizeOf(message: Message): number {
  const size = sizes.get(message) ?? toJson(message).length;
  sizes.set(message, size);
  return size;
}

function withoutPictures(message: Message): Message {
  if (message.role !== "user" || message.files.length === 0) return message;
  return { ...message, files: message.files.map(({ picture: _, ...file }) => file) };
}

/** `undefined` for a signed state with files: without them it is another one, which the server would refuse. */
function withoutFiles(state: ConversationState): ConversationState | undefined {
  const { conversation_history: history, signature } = state;
  const slim = history?.map(withoutFileParts);
  const hasFiles = slim?.some((message, index) => message !== history?.[index]);
  if (!slim || !hasFiles) return state;
  return signature ? undefined : { ...state, conversation_history: slim };
}

function withoutFileParts(message: HistoryMessage): HistoryMessage {
  if (message.role !== "user" || typeof message.content === "string") return message;
  if (message.content.every(({ type }) => type === "text")) return message;
  return { ...message, content: message.content.map((part) => (part.type === "text" ? part : notice(part))) };
}

function notice(part: ContentPart): ContentPart {
  const name = part.type === "file" ? part.file.filename : "an image";
  return { type: "text", text: `[${name} was attached here earlier and is no longer included]` };
}
