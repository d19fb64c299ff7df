/** Keys: whether the chat may handle them, which ones are shortcuts, and where they move the focus. */

/**
 * Whether the chat must ignore a key event: the page has handled it, or it comes from an input method or from autofill,
 * which has no `key`. 229: an input method's key, even if Safari reports that the composition is over.
 */
export function isTaken(event: KeyboardEvent): boolean {
  return !event.key || event.defaultPrevented || event.isComposing || event.keyCode === 229;
}

/** Runs the command of a key, if it has one here, and marks the event as handled. */
export function useKey(event: KeyboardEvent, commandOf: (event: KeyboardEvent) => (() => void) | undefined): void {
  const use = isTaken(event) ? undefined : commandOf(event);
  if (!use) return;
  event.preventDefault();
  use();
}

/** Lets a held-down Enter press a button only once, and not act on the field that has the focus next. */
export function pressOnce(event: KeyboardEvent): void {
  if (event.repeat && event.key === "Enter" && !(event.target as Element).matches("textarea")) event.preventDefault();
}

/**
 * Hides keys that are typed into a field from the page: it sees the element as their target, and would take "/" or "s"
 * for its shortcut. It still gets Escape and Tab, and keys with Ctrl or ⌘.
 */
export function keepTyping(event: KeyboardEvent): void {
  const [field, chat] = [event.target as Element, event.currentTarget as Element];
  if (event.ctrlKey || event.metaKey || /^(Escape|Tab)$/.test(event.key)) return;
  // A slotted field belongs to the page's tree, and its keys to the page.
  if (field.matches("textarea,input") && field.getRootNode() === chat.getRootNode()) event.stopPropagation();
}

/** Whether an event is a shortcut, written as in "Ctrl+Shift+O". ⌘ counts as Ctrl. */
export function isShortcut(event: KeyboardEvent, shortcut: string): boolean {
  const names = shortcut.toLowerCase().split("+");
  // A key without a Latin letter, by its layout or by Alt on a Mac, is recognised by its position. So is a digit, whose
  // key types something else with Shift, and on French keyboards without it.
  const isWritten = /^[!-~]$/.test(event.key) && !/^Digit/.test(event.code);
  const key = isWritten ? event.key : event.code.replace(/Key|Digit/, "");
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

/**
 * Where a key moves the focus; `undefined` leaves it to the browser. F6 switches between conversation and text field,
 * and Escape goes to the text field. `tabStop` decides about Tab.
 */
export function focusTarget(
  event: KeyboardEvent,
  scroller: HTMLElement,
  tabStop?: typeof import("./tab-stop.ts").tabStop,
): HTMLElement | "composer" | undefined {
  const { key, target } = event;
  const isInside = scroller.contains(target as Node);
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  if (key === "F6") return isInside ? "composer" : scroller;
  // After a click into the text, Escape is meant for the panel around the chat.
  if (key === "Escape") return isInside && (target as Element).matches(":focus-visible") ? "composer" : undefined;
  return key === "Tab" ? tabStop?.(event, scroller) : undefined;
}
