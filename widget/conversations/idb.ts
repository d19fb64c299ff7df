/** IndexedDB by promises, and the tables of a database. */

export const ROWS = "conversations";
export const SUMMARIES = "summaries";
/** The data of files: see `kept-files.ts`. Before version 6 also the queued messages. */
export const FILES = "pending";
export const TABLES: string[] = [ROWS, SUMMARIES, FILES];

/** All keys of a conversation in a table: its id, or one that begins with its id and a space. */
export const partsOf = (id: string): IDBKeyRange => IDBKeyRange.bound(id, `${id} \uffff`);

/** The keys of the operations after its row. */
export const entriesOf = (id: string): IDBKeyRange => IDBKeyRange.bound(`${id} op `, `${id} op \uffff`);

/** Runs `work` in a transaction, and resolves with its result. */
export type Transact = <Result>(
  mode: IDBTransactionMode,
  tables: string[],
  work: (transaction: IDBTransaction) => Promise<Result>,
  isLast?: boolean,
) => Promise<Result>;

/** Opens a database. If there is none of this name, it is created, with its tables by `create`. */
export function open(name: string, create: (database: IDBDatabase) => void): Promise<IDBDatabase> {
  const opening = indexedDB.open(name);
  return new Promise((resolve, reject) => {
    opening.onupgradeneeded = () => create(opening.result);
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = (event) => {
      // Some browsers report it to the page as an error.
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
