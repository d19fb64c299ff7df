/** What an older version of the chat has kept, in a database for all servers of a site. Loaded where there is one. */

import { completed, partsOf, settled, TABLES } from "./idb.ts";

/** What it has of a server, by table. It stays there: the older version may come back, or be on another page. */
export async function rowsOf(older: IDBDatabase, server: string): Promise<readonly (readonly object[])[]> {
  if (!isOurs(older)) return [];
  const transaction = older.transaction(TABLES);
  type Known = { readonly id: string; readonly server?: string };
  const all = await Promise.all(TABLES.map((name) => settled<Known[]>(transaction.objectStore(name).getAll())));
  const ids = new Set(all.flat().flatMap((row) => (row.server === server ? [row.id] : [])));
  return all.map((rows) => rows.filter(({ id }) => ids.has(id.replace(/ .*/, ""))));
}

/** What the person deletes must not come back with that version. */
export async function deleteFrom(older: IDBDatabase, id: string): Promise<void> {
  if (!isOurs(older)) return;
  const transaction = older.transaction(TABLES, "readwrite");
  for (const name of TABLES) transaction.objectStore(name).delete(partsOf(id));
  return completed(transaction);
}

/** The site may have a database of the same name. */
const isOurs = (older: IDBDatabase) => TABLES.every((name) => older.objectStoreNames.contains(name));
