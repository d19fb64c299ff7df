/** IndexedDB by promises, and the tables of a database. */

export const ROWS = "conversations";
export const SUMMARIES = "summaries";
/** The data of files: see `kept-files.ts`. Before version 6 also what is queued. */
export const FILES = "pending";
export const TABLES: string[] = [ROWS, SUMMARIES, FILES];

/** In each table, all that is kept of a conversation: what it is named by begins with its id and a space. */
export const partsOf = (id: string): IDBKeyRange => IDBKeyRange.bound(id, `${id} \uffff`);

/** The operations behind its row. */
export const entriesOf = (id: string): IDBKeyRange => IDBKeyRange.bound(`${id} op `, `${id} op \uffff`);

/** Does its work in a transaction, and resolves with what that resolves with. */
export type Transact = <Result>(
  mode: IDBTransactionMode,
  tables: string[],
  work: (transaction: IDBTransaction) => Promise<Result>,
  isLast?: boolean,
) => Promise<Result>;

/** One that is not there is made, and gets its tables by `create`. */
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
