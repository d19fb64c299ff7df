/**
 * Makes the children of `live` from index `from` on equal to those of `fresh`, keeping every node that can stay: so a
 * selection, a scroll position and the focus survive while text streams in. `fresh` is used up.
 */
export function patchChildren(live: Node, fresh: Node, from = 0): void {
  const tools = toolsOf(live);
  let current: ChildNode | null = live.childNodes[from] ?? null;
  let wanted = fresh.firstChild;
  while (wanted !== null) {
    const next: ChildNode | null = wanted.nextSibling;
    if (current === null || current === tools) {
      live.insertBefore(wanted, tools);
    } else {
      const following: ChildNode | null = current.nextSibling;
      if (!patchNode(current, wanted)) live.replaceChild(wanted, current);
      current = following;
    }
    wanted = next;
  }
  while (current !== null && current !== tools) {
    const following: ChildNode | null = current.nextSibling;
    live.removeChild(current);
    current = following;
  }
}

/** What was added to a drawn element later stands last in it, and is none of what is drawn. */
function toolsOf({ lastChild }: Node): Element | null {
  return lastChild instanceof Element && lastChild.className === "tools" ? lastChild : null;
}

/** Makes `live` equal to `fresh` and says so, or answers false when only replacing it would do. */
export function patchNode(live: Node, fresh: Node): boolean {
  if (live.nodeName !== fresh.nodeName) return false;
  if (live instanceof Text) {
    patchText(live, fresh.nodeValue ?? "");
    return true;
  }
  if (!(live instanceof Element && fresh instanceof Element)) return false;
  // What a button says changes when it is pressed ("Copied"), and an image must not be requested twice.
  if (live.localName === "button" || live.localName === "img") {
    return live.cloneNode(false).isEqualNode(fresh.cloneNode(false));
  }
  patchAttributes(live, fresh);
  patchChildren(live, fresh);
  return true;
}

function patchText(live: Text, wanted: string): void {
  const shown = live.data;
  if (shown === wanted) return;
  // Appending leaves a selection in the text alone; assigning would collapse it.
  if (wanted.startsWith(shown)) live.appendData(wanted.slice(shown.length));
  else live.data = wanted;
}

/** Attributes that are not drawn: those of tools, of boxes that scroll, and what a long table has been given. */
const addedLater = /^(?:data-ui-|role|style|tabi|aria-)/;

/** Gives `live` the attributes of `fresh`, writing only those that differ. */
export function patchAttributes(live: Element, fresh: Element): void {
  for (const { name } of [...live.attributes]) {
    if (!fresh.hasAttribute(name) && !addedLater.test(name)) live.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (live.getAttribute(name) !== value) live.setAttribute(name, value);
  }
}
