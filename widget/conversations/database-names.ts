/**
 * The names of this origin's databases; absent where the browser does not say. One that is not there is not opened to find
 * that out: WebKit lists it from then on.
 */
export async function databaseNames(): Promise<readonly unknown[] | undefined> {
  try {
    return (await indexedDB.databases()).map(({ name }) => name);
  } catch {
    return undefined;
  }
}
