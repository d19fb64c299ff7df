import { element } from "./draw-inline.ts";

/** Rows of one body of a table. A table that grows has several, so that a browser can leave alone all but the last. */
const bodySize = 32;

/** The part of a block's body at an index: its child, or a row of a table's bodies. */
export function partAt(body: Node, index: number): ChildNode | undefined {
  return body instanceof HTMLTableElement
    ? body.childNodes[1 + Math.floor(index / bodySize)]?.childNodes[index % bodySize]
    : body.childNodes[index];
}

/** Adds a part behind those in a block's body. */
export function addPart<Part extends Node>(body: Node, part: Part): Part {
  let into = body;
  if (body instanceof HTMLTableElement) {
    into = body.lastChild as Node;
    if (into === body.firstChild || into.childNodes.length === bodySize) {
      into = body.appendChild(element("tbody"));
    }
  }
  return into.appendChild(part);
}
