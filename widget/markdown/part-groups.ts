import { element } from "./draw-inline.ts";

/**
 * Parts of one group. A browser looks through all children of an element of which one grows, with each frame: so the many
 * parts of a text, a list or a table stand in groups, of which only the last one grows.
 */
const groupSize = 32;

/**
 * Children of a body that stand before its groups: a table's head, and of a text or a list as many parts as most have. Of
 * anything else, all.
 */
function aheadOf({ nodeName }: Node): number {
  if (nodeName === "TABLE") return 1;
  return /^DIV|[OU]L$/.test(nodeName) ? groupSize : Number.POSITIVE_INFINITY;
}

/** The part of a block's body at an index: its child, or one of a group. */
export function partAt(body: Node, index: number): ChildNode | undefined {
  const ahead = aheadOf(body);
  const grouped = index - ahead;
  return grouped < 0
    ? body.childNodes[index]
    : body.childNodes[ahead + Math.floor(grouped / groupSize)]?.childNodes[grouped % groupSize];
}

/** The parts of a block's body from an index on. What was added to a box later stands last in it, and is none. */
export function partsFrom(body: Node, index: number): ChildNode[] {
  const ahead = aheadOf(body);
  const parts: ChildNode[] = [];
  let part: ChildNode | null | undefined = partAt(body, index);
  while (part && (part as Element).className !== "tools") {
    parts.push(part);
    const next = index + parts.length;
    part = (next - ahead) % groupSize === 0 ? partAt(body, next) : part.nextSibling;
  }
  return parts;
}

/** Adds a part behind those in a block's body. */
export function addPart<Part extends Node>(body: Node, part: Part): Part {
  return growingGroup(body).appendChild(part);
}

/** Where the next part of a body comes in. */
function growingGroup(body: Node): Node {
  const { childNodes } = body;
  const ahead = aheadOf(body);
  // Their number would be counted anew with each part.
  if (!childNodes[ahead - 1]) return body;
  const last = body.lastChild as Element;
  return childNodes[ahead] && last.childNodes.length < groupSize ? last : addGroup(body);
}

function addGroup(body: Node): Node {
  const group = element(body.nodeName === "TABLE" ? "tbody" : "div");
  if (body.nodeName === "DIV") {
    group.className = "section";
    // Not the one before: that is in view, and would be left out and taken in again in one frame.
    rename((body as Element).lastElementChild?.previousElementSibling, "section", "section passed");
  } else if (body.nodeName !== "TABLE") {
    // Between a list and its items it stands for nothing.
    (body as Element).setAttribute("role", "list");
    group.setAttribute("role", "none");
  }
  return body.appendChild(group);
}

/** Takes away the last part of a block's body, and the group that it leaves empty. */
export function dropPart(body: Node, part: ChildNode): void {
  const group = part.parentNode as Element;
  if (group === body || part.previousSibling) part.remove();
  else {
    rename(group.previousElementSibling?.previousElementSibling, "section passed", "section");
    group.remove();
  }
}

function rename(node: Element | null | undefined, from: string, to: string): void {
  if (node?.className === from) node.className = to;
}
