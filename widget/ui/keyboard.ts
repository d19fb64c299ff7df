/** Keys that mean something else than they say. */

/** Whether a key belongs to an input method. 229: also where Safari says that the composition is over. */
export function isComposing(event: KeyboardEvent): boolean {
  return event.isComposing || event.keyCode === 229;
}

/**
 * The page does not get the keys that are typed into a field: it sees the element as their target, and would take "/"
 * or "s" for its shortcut. It gets those that move the focus or close something, and those with Ctrl or ⌘.
 */
export function keepTyping(event: KeyboardEvent): void {
  const [field] = event.composedPath();
  if (event.ctrlKey || event.metaKey || /^(Escape|Tab)$/.test(event.key)) return;
  if (field instanceof Element && field.matches("textarea,input")) event.stopPropagation();
}
