/** `localStorage` that never throws: where the browser blocks it, values last as long as the page. */

const memory = new Map<string, string>();

export function recall(name: string): string | undefined {
  try {
    return localStorage.getItem(name) ?? memory.get(name);
  } catch {
    // Reading `localStorage` itself throws in a sandboxed frame or with site data blocked.
    return memory.get(name);
  }
}

export function remember(name: string, value: string): void {
  memory.set(name, value);
  try {
    localStorage.setItem(name, value);
  } catch {
    // Blocked or full: the copy in memory serves this page.
  }
}

export function forget(name: string): void {
  memory.delete(name);
  try {
    localStorage.removeItem(name);
  } catch {
    // Blocked: nothing was stored.
  }
}
