import type { MarkedToken, Token } from "marked";
import { patchChildren, patchNode } from "./patch-dom.ts";
import { addPart } from "./table-rows.ts";

/** A block that parts of are settled, or the one that holds it. */
export interface Step {
  readonly token: Token;
  /** Its parts that are final: blocks, items, rows, chunks of code, pieces of text. */
  readonly count: number;
  /** How many blocks stand for those in the rest: none or one. */
  readonly skip: number;
  /** What the source of the rest surely begins with. */
  readonly begin?: string;
  /** Do they make the list loose? */
  readonly loose?: boolean;
  readonly adopt?: Adopt | undefined;
}

/** Makes the body of a block equal to a fresh one behind its final parts, where their children are not just those parts. */
type Adopt = (live: Node, fresh: Node, done: number) => void;

/** A block in the DOM of which the first parts are final while it goes on, or the root of them all. */
export interface OpenBlock {
  readonly type: string;
  /** Children of its body that are final. */
  readonly done: number;
  /** How many blocks stand for those when the rest of its source is lexed: none or one. */
  readonly skip: number;
  /** Has something final made the list loose? */
  readonly loose: boolean;
  /** What the rest of its source begins with as long as it is what it was. */
  readonly begin: string;
  readonly adopt?: Adopt | undefined;
}

/** The blocks that go on, the root first and each one in the one before it. */
export type OpenBlocks = readonly OpenBlock[];

/** One of which nothing is final yet. */
export const newBlock: OpenBlock = { type: "blocks", done: 0, skip: 0, loose: false, begin: "" };

/** The blocks in a quote, an item or a message; the items of a list. */
export function childrenOf(token: Token): readonly MarkedToken[] {
  return ("items" in token ? token.items : "tokens" in token ? token.tokens : undefined) ?? [];
}

/** The type of a token. Text in an item is a paragraph to the reader. */
export function typeOf({ type }: Token): string {
  return type === "text" ? "paragraph" : type;
}

/** The block that goes on after a step. */
export function toOpen({ token, skip, begin = "", adopt }: Step): OpenBlock {
  return { ...newBlock, type: typeOf(token), skip, begin, adopt };
}

/** Are the open blocks still what a token begins with? */
export function goesOn(token: Token | undefined, [block, ...inner]: OpenBlocks): boolean {
  if (block === undefined) return true;
  if (token === undefined || typeOf(token) !== block.type) return false;
  if (!token.raw.startsWith(block.begin)) return false;
  return goesOn(childrenOf(token)[block.skip], inner);
}

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
export function adoptParts(live: Node, fresh: Node, [block, ...inner]: OpenBlocks): void {
  let { done = 0, skip = 0 } = block ?? {};
  for (; skip > 0; skip -= 1) fresh.firstChild?.remove();
  const next = live.childNodes[done];
  const first = fresh.firstChild;
  if (next && first && inner.length > 0 && isKin(next, first)) {
    adoptBlock(next, first, inner);
    first.remove();
    done += 1;
  }
  if (block?.adopt) block.adopt(live, fresh, done);
  else patchChildren(live, fresh, done);
}

/** As `adoptParts`, for the whole of a block. */
export function adoptBlock(live: Node, fresh: Node, open: OpenBlocks): void {
  const liveBody = bodyOf(live);
  const freshBody = bodyOf(fresh);
  if (open[0]?.type === "list" && live instanceof Element && fresh instanceof Element) {
    const looks = open[0].loose ? "loose" : fresh.className;
    if (live.className !== looks) live.className = looks;
  }
  adoptParts(liveBody, freshBody, open);
}

/** Makes the node at a place in a body equal to a fresh one, and answers the node that stands there now. */
export function place(
  body: Node,
  live: ChildNode | undefined,
  fresh: ChildNode,
  open: OpenBlocks,
): ChildNode {
  if (live === undefined) return addPart(body, fresh);
  if (open.length > 0 && isKin(live, fresh)) adoptBlock(live, fresh, open);
  else if (!patchNode(live, fresh)) {
    live.replaceWith(fresh);
    return fresh;
  }
  return live;
}
