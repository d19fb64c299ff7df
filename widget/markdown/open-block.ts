import { patchAttributes, patchChildren } from "./patch-dom.ts";

/** A block in the DOM of which the first parts are final while it goes on. */
export interface PartBlock {
  /** What stands before the rest of its source when that is lexed again. */
  readonly prefix: string;
  /** Children of its body that are final. */
  readonly done: number;
  /** Has one of the final items made the list loose? */
  readonly loose: boolean;
}

/** The node that holds the parts of a list, table or code block, if `node` is such a block. */
export function partBody(node: Node, type: string): Node | undefined {
  if (!(node instanceof Element)) return undefined;
  if (type === "list") return node.matches("ul, ol") ? node : undefined;
  if (type === "blockquote") return node.matches(type) ? node : undefined;
  if (type === "table") return node.querySelector(":scope > table > tbody") ?? undefined;
  return type === "code" ? (node.querySelector(":scope > pre > code") ?? undefined) : undefined;
}

function typeOf(node: Node): string {
  if (!(node instanceof Element)) return "";
  if (node.localName === "blockquote") return node.localName;
  return node.localName === "div" ? node.className : "list";
}

/**
 * Makes a block that goes on equal to one drawn from the rest of its source, behind the parts that are final. Answers
 * false when the rest turned out to be another kind of block.
 */
export function adoptPart(live: Node, fresh: HTMLElement, part: PartBlock): boolean {
  const type = typeOf(fresh);
  const liveBody = partBody(live, type);
  const freshBody = partBody(fresh, type);
  if (!(live instanceof Element) || live.localName !== fresh.localName) return false;
  if (liveBody === undefined || freshBody === undefined) return false;
  if (type === "list") {
    if (part.loose) fresh.className = "loose";
    const start = live.getAttribute("start");
    // The rest of a list counts on from its own first item; the list keeps the number that it began with.
    if (start === null) fresh.removeAttribute("start");
    else fresh.setAttribute("start", start);
    patchAttributes(live, fresh);
  }
  const liveHead = live.querySelector(":scope > table > thead");
  const freshHead = fresh.querySelector(":scope > table > thead");
  // A head does not grow, but a definition may come that its text refers to.
  if (liveHead !== null && freshHead !== null) patchChildren(liveHead, freshHead);
  patchChildren(liveBody, freshBody, part.done);
  return true;
}
