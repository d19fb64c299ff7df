/** Data that older versions of the chat have stored, before version 5 in one database for all servers of a site. */

import { databaseNames } from "./database-names.ts";
import { completed, open, partsOf, settled, TABLES } from "./idb.ts";

type Tables = readonly (readonly object[])[];

/** The rows of a server, by table. They stay there, too: the older version may come back, or be on another page. */
export async function rowsOf(server: string): Promise<Tables> {
  const [newest = []] = (await inOlder(server, (older) => readAll(older, server))).reverse();
  return newest;
}

async function readAll(older: IDBDatabase, server: string): Promise<Tables> {
  const transaction = older.transaction(TABLES);
  type Known = { readonly id: string; readonly server?: string };
  const all = await Promise.all(TABLES.map((name) => settled<Known[]>(transaction.objectStore(name).getAll())));
  if (older.name !== "agent-chat") return all;
  const ids = new Set(all.flat().flatMap((row) => (row.server === server ? [row.id] : [])));
  return all.map((rows) => rows.filter(({ id }) => ids.has(id.replace(/ .*/, ""))));
}

/** A conversation that the user deletes must not come back with that version. */
export async function deleteFrom(server: string, id: string): Promise<void> {
  await inOlder(server, (older) => {
    const transaction = older.transaction(TABLES, "readwrite");
    for (const name of TABLES) transaction.objectStore(name).delete(partsOf(id));
    transaction.commit();
    return completed(transaction);
  });
}

/** Calls `work` with each database of an older version; the newest comes last. */
async function inOlder<Result>(server: string, work: (older: IDBDatabase) => Promise<Result>): Promise<Result[]> {
  const names = await databaseNames();
  const results: Result[] = [];
  for (const name of ["agent-chat", `agent-chat-5:${server}`]) {
    if (!names?.includes(name)) continue;
    const older = await open(name, () => {});
    try {
      // The site may have a database of the same name.
      if (TABLES.every((table) => older.objectStoreNames.contains(table))) results.push(await work(older));
    } finally {
      older.close();
    }
  }
  return results;
}
