/** Keys: whose they are, which of them are pressed together, and where they move the focus. */

/**
 * Whether a key is nothing for the chat: the page has used it, or it belongs to an input method or to what fills in
 * forms, which has none. 229: also where Safari says that the composition is over.
 */
export function isTaken(event: KeyboardEvent): boolean {
  return !event.key || event.defaultPrevented || event.isComposing || event.keyCode === 229;
}

/** Carries out what a key means here, if it means anything, so that nothing around takes it for its own. */
export function useKey(event: KeyboardEvent, commandOf: (event: KeyboardEvent) => (() => void) | undefined): void {
  const use = isTaken(event) ? undefined : commandOf(event);
  if (!use) return;
  event.preventDefault();
  use();
}

/** A key that is held down presses a button once, and does not go on in the field that has the focus then. */
export function pressOnce(event: KeyboardEvent): void {
  if (event.repeat && event.key === "Enter" && !(event.target as Element).matches("textarea")) event.preventDefault();
}

/**
 * The page does not get the keys that are typed into a field: it sees the element as their target, and would take "/"
 * or "s" for its shortcut. It gets those that move the focus or close something, and those with Ctrl or ⌘.
 */
export function keepTyping(event: KeyboardEvent): void {
  const [field, chat] = [event.target as Element, event.currentTarget as Element];
  if (event.ctrlKey || event.metaKey || /^(Escape|Tab)$/.test(event.key)) return;
  // A field that the page has put into a slot is in the page's tree.
  if (field.matches("textarea,input") && field.getRootNode() === chat.getRootNode()) event.stopPropagation();
}

/** Whether keys are pressed together that are written as in "Ctrl+Shift+O", where ⌘ does as well as Ctrl. */
export function isShortcut(event: KeyboardEvent, shortcut: string): boolean {
  const names = shortcut.toLowerCase().split("+");
  // Where a layout, or Alt on a Mac, has no Latin letter on a key, it is known by its place; so is a digit, whose key
  // writes something else with Shift, and on French keyboards without it.
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
 * Where a key moves the focus to, if not to where the browser would. F6 goes to and fro between conversation and text
 * field, and Escape goes to the text field. `tabStop` says it of Tab.
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
