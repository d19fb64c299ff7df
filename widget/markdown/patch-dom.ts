/**
 * Makes what is drawn equal to what was drawn afresh, keeping every node that can stay: so a selection, a scroll position and
 * the focus survive while text streams in. What is fresh is used up.
 */

import { newBlock, type OpenBlocks } from "./open-block.ts";
import { addPart, dropPart, partsFrom } from "./part-groups.ts";

/** The node that holds the parts of a block. Only of a box it is another one, and only there it may be searched for. */
export function bodyOf<Block extends Node | undefined>(node: Block): Block | Element {
  if (!(node instanceof HTMLDivElement)) return node;
  return node.querySelector("code, table") ?? node;
}

/** Are these two drawings of a block of the same kind? */
export function isKin(live: Node | undefined, fresh: Node | undefined): boolean {
  return bodyOf(live)?.nodeName === bodyOf(fresh)?.nodeName;
}

/**
 * Makes the body of a block that goes on equal to one drawn from the rest of its source, behind the parts that are
 * final.
 */
export function adoptParts(live: Node, fresh: Node, [block = newBlock, ...inner]: OpenBlocks): void {
  const stale = partsFrom(live, block.done);
  const parts = partsFrom(fresh, block.skip);
  for (const [index, part] of parts.entries()) {
    place(live, stale[index], part, index === 0 ? inner : []);
  }
  for (const part of stale.slice(parts.length).reverse()) dropPart(live, part);
}

/** As `adoptParts`, for the whole of a block. */
function adoptBlock(live: Node, fresh: Node, open: OpenBlocks): void {
  const liveBody = bodyOf(live);
  const freshBody = bodyOf(fresh);
  if (open[0]?.type === "list" && live instanceof Element && fresh instanceof Element) {
    const looks = open[0].loose ? "loose" : fresh.className;
    if (live.className !== looks) live.className = looks;
  }
  adoptParts(liveBody, freshBody, open);
}

/** Makes the node at a place in a body equal to a fresh one, and answers the node that stands there now. */
export function place(body: Node, live: ChildNode | undefined, fresh: ChildNode, open: OpenBlocks): ChildNode {
  if (live === undefined) return addPart(body, fresh);
  if (open.length > 0 && isKin(live, fresh)) adoptBlock(live, fresh, open);
  else if (!patchNode(live, fresh)) {
    live.replaceWith(fresh);
    return fresh;
  }
  return live;
}

/** Makes `live` equal to `fresh` and says so, or answers false when only replacing it would do. */
function patchNode(live: Node, fresh: Node): boolean {
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
  adoptParts(live, fresh, []);
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
function patchAttributes(live: Element, fresh: Element): void {
  for (const { name } of [...live.attributes]) {
    if (!fresh.hasAttribute(name) && !addedLater.test(name)) live.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (live.getAttribute(name) !== value) live.setAttribute(name, value);
  }
}
