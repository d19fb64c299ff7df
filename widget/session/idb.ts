/** IndexedDB by promises, and the tables of a database. */

import { answerKey } from "./row.ts";

export const ROWS = "conversations";
export const SUMMARIES = "summaries";
/** What waits to be sent, and beside it the data of files: see `kept-files.ts`. */
export const PENDING = "pending";
export const TABLES: string[] = [ROWS, SUMMARIES, PENDING];

/** In each table, what is kept of a conversation: its row, and an answer that was written since. */
export const partsOf = (id: string): IDBKeyRange => IDBKeyRange.bound(`${id}`, answerKey(id));

/** Does its work in a transaction, and resolves with what that resolves with. */
export type Transact = <Result>(
  mode: IDBTransactionMode,
  tables: string[],
  work: (transaction: IDBTransaction) => Promise<Result>,
  isLast?: boolean,
) => Promise<Result>;

/** A database as it is. One that is not there is made by `create`, or stays away. */
export function open(name: string, create?: (database: IDBDatabase) => void): Promise<IDBDatabase | undefined> {
  const opening = indexedDB.open(name);
  return new Promise((resolve, reject) => {
    opening.onupgradeneeded = () => {
      if (create) return create(opening.result);
      resolve(undefined);
      opening.transaction?.abort();
    };
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = (event) => {
      // Some browsers tell the page of it.
      event.preventDefault();
      reject(opening.error);
    };
  });
}

export function settled<Result>(request: IDBRequest<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

export function completed(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
  });
}
