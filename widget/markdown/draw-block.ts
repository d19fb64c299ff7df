import type { MarkedToken, Token, Tokens } from "marked";
import { strings } from "../strings.ts";
import { appendText, type Drawing, drawInline, element } from "./draw-inline.ts";
import { decodeEntities } from "./entities.ts";
import { childrenOf } from "./open-block.ts";
import { addPart } from "./part-groups.ts";

/** Shortest chunk of a code block: long enough to be rare, short enough to be laid out in no time. */
const codeChunkLength = 4096;

const headings = ["h1", "h2", "h3", "h4", "h5", "h6"] as const;

const languageName = /^[a-z0-9+#-]{1,30}$/;

/** Draws the parts of a block, or the blocks of a message. What shows nothing is not there. */
export function drawParts<Body extends Node>(body: Body, token: Token, drawing: Drawing): Body {
  for (const draw of partsOf(token, drawing)) {
    const part = draw();
    if (part !== undefined) addPart(body, part);
  }
  return body;
}

type DrawPart = () => HTMLElement | DocumentFragment | undefined;

/** What a block consists of, each to be drawn by itself: so a part can be final before the next. */
export function partsOf(generic: Token, drawing: Drawing): readonly DrawPart[] {
  const token = generic as MarkedToken;
  switch (token.type) {
    case "table":
      return [() => drawHead(token.header, drawing), ...token.rows.map((row) => () => drawRow(row, drawing))];
    case "code":
      return codeChunks(token.text).map((chunk) => () => drawChunk(chunk));
    case "heading":
    case "paragraph":
    case "text":
      return piecesOf(token.tokens ?? [], drawing);
    default:
      return childrenOf(token).map((child) => () => drawBlock(child, drawing));
  }
}

function piecesOf(tokens: readonly Token[], drawing: Drawing): (() => DocumentFragment)[] {
  return drawing.inline(tokens).map((piece) => () => {
    const drawn = document.createDocumentFragment();
    drawInline(drawn, piece, drawing);
    return drawn;
  });
}

/** Draws one block token, or nothing for a token that shows nothing. */
function drawBlock(token: MarkedToken, drawing: Drawing): HTMLElement | undefined {
  switch (token.type) {
    case "space":
    case "def":
    case "checkbox":
      return undefined;
    case "heading":
      return drawParts(element(headings[token.depth - 1] ?? "h6"), token, drawing);
    case "paragraph":
    case "text":
      return drawParts(element("p"), token, drawing);
    case "hr":
      return element("hr");
    case "blockquote":
      return drawParts(directed(element("blockquote")), token, drawing);
    case "code":
      return drawCode(token, drawing);
    case "list":
      return drawList(token, drawing);
    case "list_item":
      return drawItem(token, drawing);
    case "table":
      return drawTable(token, drawing);
    default:
      return drawSource(token.raw);
  }
}

/**
 * What holds blocks has the direction of its first text. Each text in it has its own, by `unicode-bidi` in the style sheet: one
 * Arabic paragraph does not turn an English list around, and with a `dir` of its own it would not count for that of the list.
 */
function directed<Node extends HTMLElement>(node: Node): Node {
  node.dir = "auto";
  return node;
}

/** Raw HTML and whatever else is shown exactly as it was written. */
function drawSource(source: string): HTMLElement {
  const node = element("p", "source");
  appendText(node, source.replace(/\n+$/, ""));
  return node;
}

/**
 * The text of a code block, without the line break that ends its last line, in chunks of whole lines. Each becomes a box
 * of its own, so that a browser lays out only the last one again while a long program streams in.
 */
export function codeChunks(code: string): string[] {
  const text = code.replace(/\n$/, "");
  const chunks: string[] = [];
  let start = 0;
  for (;;) {
    const end = text.indexOf("\n", start + codeChunkLength) + 1;
    if (end === 0) break;
    chunks.push(text.slice(start, end));
    start = end;
  }
  chunks.push(text.slice(start));
  return chunks;
}

function drawCode(token: Tokens.Code, drawing: Drawing): HTMLElement {
  const label = decodeEntities(token.lang ?? "").split(/\s/, 1)[0] ?? "";
  const language = label.toLowerCase();
  const box = element("div", "code");
  box.setAttribute("part", "code");
  const header = box.appendChild(element("div", "code-header"));
  appendText(header.appendChild(element("span", "code-language")), label.slice(0, 30) || strings.code);
  const copy = header.appendChild(element("button", "copy"));
  copy.type = "button";
  appendText(copy, strings.copy);
  const pre = box.appendChild(element("pre"));
  pre.dir = "ltr";
  const code = element("code", languageName.test(language) ? `language-${language}` : "");
  pre.append(drawParts(code, token, drawing));
  return box;
}

function drawChunk(text: string): HTMLElement {
  const chunk = element("span", "code-chunk");
  appendText(chunk, text);
  return chunk;
}

function drawList(token: Tokens.List, drawing: Drawing): HTMLElement {
  const name = token.ordered ? "ol" : "ul";
  const list = directed(element(name, token.loose ? "loose" : "tight"));
  if (token.ordered && token.start !== 1) {
    list.setAttribute("start", String(token.start));
    // Years, above all: numbers stand before the items, and what stands outside of the message is cut off.
    if ((token.start as number) > 99) list.setAttribute("wide", "");
  }
  return drawParts(list, token, drawing);
}

/**
 * Draws a list item. Its text is always a paragraph, in tight lists too (a class takes the gaps away): so an item that
 * is finished stays as it is when a later blank line makes the whole list loose.
 */
function drawItem(item: Tokens.ListItem, drawing: Drawing): HTMLElement {
  const node = drawParts(element("li", item.task ? "task" : ""), item, drawing);
  if (!item.task) return node;
  const box = element("input");
  box.type = "checkbox";
  box.disabled = true;
  if (item.checked) box.setAttribute("checked", "");
  box.setAttribute("aria-label", item.checked ? strings.taskDone : strings.taskOpen);
  const first = node.firstElementChild;
  (first?.localName === "p" ? first : node).prepend(box);
  return node;
}

function drawTable(token: Tokens.Table, drawing: Drawing): HTMLElement {
  const box = directed(element("div", "table"));
  box.setAttribute("part", "table");
  const table = box.appendChild(element("table"));
  drawParts(table, token, drawing);
  return box;
}

function drawHead(cells: readonly Tokens.TableCell[], drawing: Drawing): HTMLElement {
  const head = element("thead");
  head.append(drawRow(cells, drawing));
  return head;
}

function drawRow(cells: readonly Tokens.TableCell[], drawing: Drawing): HTMLElement {
  const row = element("tr");
  for (const cell of cells) {
    const node = element(cell.header ? "th" : "td", cell.align === null ? "" : `align-${cell.align}`);
    if (cell.header) node.setAttribute("scope", "col");
    for (const draw of piecesOf(cell.tokens, drawing)) node.append(draw());
    row.append(node);
  }
  return row;
}
