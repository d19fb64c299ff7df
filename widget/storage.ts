/** The browser's storage, never throwing: where it is blocked, values last as long as the page. */

/** `localStorage` is for this browser, `sessionStorage` for this tab. */
export type StorageArea = "localStorage" | "sessionStorage";

const memory = new Map<string, string>();

export function recall(name: string, area: StorageArea = "localStorage"): string | undefined {
  try {
    return window[area].getItem(name) ?? memory.get(name);
  } catch {
    // Reading `localStorage` itself throws in a sandboxed frame or with site data blocked.
    return memory.get(name);
  }
}

/** Whether there was room for it. A value without room, or without storage, is kept in memory. */
export function remember(name: string, value: string, area: StorageArea = "localStorage"): boolean {
  memory.set(name, value);
  try {
    window[area].setItem(name, value);
    return true;
  } catch (error) {
    return !(error instanceof DOMException && error.name === "QuotaExceededError");
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
