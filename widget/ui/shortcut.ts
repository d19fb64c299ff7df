/** Keys that are pressed together. They are written as in "Ctrl+Shift+O", where ⌘ does as well as Ctrl. */

export function isShortcut(event: KeyboardEvent, shortcut: string): boolean {
  const names = shortcut.toLowerCase().split("+");
  // Where a layout, or Alt on a Mac, has no Latin letter on a key, it is known by its place.
  const isLatin = /^[\x21-\x7e]$/.test(event.key);
  const key = isLatin ? event.key : event.code.replace(/^(?:Key|Digit)/, "");
  return (
    names.pop() === key.toLowerCase() &&
    names.includes("ctrl") === (event.ctrlKey || event.metaKey) &&
    names.includes("shift") === event.shiftKey &&
    names.includes("alt") === event.altKey
  );
}

/** For `aria-keyshortcuts`. */
export function shownShortcut(shortcut: string): string {
  return ["Control", "Meta"].map((name) => shortcut.replace(/ctrl/i, name)).join(" ");
}
