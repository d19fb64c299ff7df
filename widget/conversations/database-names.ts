/**
 * The names of this origin's databases; `undefined` if the browser does not tell. Opening a missing one to find that
 * out would make WebKit list it from then on.
 */
export async function databaseNames(): Promise<readonly unknown[] | undefined> {
  try {
    return (await indexedDB.databases()).map(({ name }) => name);
  } catch {
    return undefined;
  }
}
