/**
 * Makes the children of `live`, from index `from` on, equal to `fresh`, and keeps every node that can stay: so
 * selections, scroll positions and the focus survive while text streams in. Moves the fresh nodes.
 */
export function patchChildren(live: Node, fresh: readonly ChildNode[], from = 0): void {
  let old: ChildNode | null = live.childNodes[from] ?? null;
  for (const node of fresh) {
    const next: ChildNode | null = old?.nextSibling ?? null;
    if (old === null) live.appendChild(node);
    else if (!patchNode(old, node)) old.replaceWith(node);
    old = next;
  }
  removeFrom(old);
}

/** Removes a node and all siblings behind it. */
export function removeFrom(first: ChildNode | null): void {
  for (let node = first; node !== null; ) {
    const next: ChildNode | null = node.nextSibling;
    node.remove();
    node = next;
  }
}

/** Makes `live` equal to `fresh`, or returns false when only replacing it would do. */
function patchNode(live: Node, fresh: Node): boolean {
  if (live.nodeName !== fresh.nodeName) return false;
  if (live instanceof Text) {
    patchText(live, fresh.nodeValue ?? "");
    return true;
  }
  if (!(live instanceof Element && fresh instanceof Element)) return false;
  // A button changes its text when pressed ("Copied"), an image must not be requested twice, and a formula not be drawn
  // twice.
  if (live.matches("button, img, .tex")) {
    return live.cloneNode(false).isEqualNode(fresh.cloneNode(false));
  }
  for (const { name } of [...live.attributes]) {
    if (!fresh.hasAttribute(name)) live.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) setAttribute(live, name, value);
  patchChildren(live, [...fresh.childNodes]);
  return true;
}

/** Leaves the unchanged beginning alone, to keep a selection in it: assigning `data` would collapse the selection. */
function patchText(live: Text, wanted: string): void {
  const shown = live.data;
  let same = wanted.startsWith(shown) ? shown.length : 0;
  while (same < shown.length && shown[same] === wanted[same]) same += 1;
  if (same < Math.max(shown.length, wanted.length)) live.replaceData(same, shown.length - same, wanted.slice(same));
}

/** Writes an attribute only when it differs: browsers style an element again even if the value stays. */
export function setAttribute(node: Element, name: string, value: string | undefined): void {
  if (value === undefined) node.removeAttribute(name);
  else if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}
