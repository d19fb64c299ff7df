/** The browser's storage, which never throws: if it is blocked, values last as long as the page. */

/** `localStorage` is for this browser, `sessionStorage` for this tab. */
export type StorageArea = "localStorage" | "sessionStorage";

const memory = new Map<string, string>();

export function recall(name: string, area: StorageArea = "localStorage"): string | undefined {
  try {
    return memory.get(name) ?? window[area].getItem(name) ?? undefined;
  } catch {
    // Reading `localStorage` itself throws in a sandboxed frame or with site data blocked.
    return undefined;
  }
}

/** Whether the browser has stored it. A value that it does not store is kept in memory. */
export function remember(name: string, value: string, area: StorageArea = "localStorage"): boolean {
  try {
    window[area].setItem(name, value);
    memory.delete(name);
    return true;
  } catch {
    memory.set(name, value);
    return false;
  }
}

export function forget(name: string, area: StorageArea = "localStorage"): void {
  memory.delete(name);
  try {
    window[area].removeItem(name);
  } catch {
    // Blocked: nothing was stored.
  }
}
