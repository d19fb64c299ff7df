/**
 * Draws blocks into the page. If the source of a drawn block has not changed, its element stays untouched; if it has
 * grown, only the new items, rows, lines or words are drawn. So the cost of a piece does not grow with the block, and
 * every node that can stay is kept.
 */

import type { Links, MarkedToken, Token, Tokens } from "marked";
import { COPIED, COPY } from "../clipboard/copying.ts";
import { boxButton, create } from "../styles/elements.ts";
import { decodeEntities } from "./entities.ts";
import { formula } from "./formulas.ts";
import type { DetailsToken } from "./html-names.ts";
import { inlinePieces } from "./inline-pieces.ts";
import { type LexedBlocks, lexers, lexInline } from "./lexer.ts";
import { linesInChunks } from "./lines.ts";
import { patchChildren, removeFrom, setAttribute } from "./patch-dom.ts";
import { appendInline, type InlineContext } from "./render-inline.ts";
import { type BlockRenderers, type Delimiter, type RenderBlock, rendererOf } from "./renderers.ts";
import { appendText } from "./text.ts";

/** Longer cells contain sentences, which need room; cells up to `SHORT_CELL` a price or a name, kept in one line. */
const LONG_CELL = 24;
const SHORT_CELL = 12;

/** Blocks without Markdown inside: link definitions do not change them, and a renderer's drawing stays. */
const LITERAL = /^(?:code|html|delimited|formula)$/;

const LANGUAGE_NAME = /^[a-z0-9+#-]{1,30}$/;

/** A block that a renderer draws once it has ended. */
export interface Renderable {
  readonly text: string;
  readonly info: string;
  readonly render: RenderBlock;
}

/** The link definitions for what is drawn, and a version that changes when they do. */
export interface Definitions {
  readonly links: Links;
  readonly version: string;
}

interface BlockContext extends InlineContext {
  readonly renderers: BlockRenderers;
  readonly headingLevel: number;
}

/** A piece of a paragraph's text, of which only the last one grows. */
interface Piece {
  readonly key: string;
  /** The number of its nodes. */
  readonly nodes: number;
}

export class DomRenderer {
  /** Blocks that are still drawn as written, until their renderer runs, by element. */
  readonly renderables = new Map<Element, Renderable>();
  /** The level of the first heading in the text: many answers begin with level 2 or 3. */
  #firstDepth: number | undefined;
  readonly #context: BlockContext;
  readonly #delimiters: readonly Delimiter[];
  /** The source that an element was drawn from. */
  readonly #sources = new WeakMap<Element, string>();
  readonly #pieces = new WeakMap<Element, readonly Piece[]>();
  #inline: LexedBlocks["inline"] = new Map();
  #definitions: Definitions = { links: {}, version: "" };

  constructor(context: BlockContext, delimiters: readonly Delimiter[]) {
    this.#context = context;
    this.#delimiters = delimiters;
  }

  /** To be called before blocks of another `LexedBlocks` are drawn, or with other definitions. */
  begin(inline: LexedBlocks["inline"], definitions: Definitions): void {
    this.#inline = inline;
    this.#definitions = definitions;
  }

  /** Whether a block shows anything. */
  static isShown({ type }: Token): boolean {
    return !/^(?:space|def|checkbox|footnote)$/.test(type);
  }

  /** Returns the element of a block: `live`, the element that is in its place, if that can be kept. */
  block(token: MarkedToken, live: Element | null | undefined): HTMLElement {
    const source = `${token.type} ${token.raw}`;
    const key = LITERAL.test(token.type) ? source : this.#key(source);
    if (live instanceof HTMLElement && this.#sources.get(live) === key) return live;
    const node = this.#draw(token, live);
    this.#sources.set(node, key);
    return node;
  }

  /** Replaces a drawn element permanently. */
  replace(drawn: Element, by: Element): void {
    const source = this.#sources.get(drawn);
    if (source !== undefined) this.#sources.set(by, source);
    drawn.replaceWith(by);
  }

  /** Text in brackets looks different once it is defined as a link. */
  #key(source: string): string {
    return source.includes("[") ? `${this.#definitions.version}\n${source}` : source;
  }

  #draw(token: MarkedToken, live: Element | null | undefined): HTMLElement {
    switch (token.type) {
      case "heading":
        return this.#text(this.#heading(token.depth, live), token.tokens);
      case "paragraph":
      case "text":
        return this.#text(kept(live, "p"), token.tokens ?? []);
      case "hr":
        return kept(live, "hr");
      case "blockquote":
        return this.#quote(token, live);
      case "list":
        return this.#list(token, live);
      case "list_item":
        return this.#item(token, live);
      case "code":
        return this.#code(token, live);
      case "table":
        return this.#table(token, live);
      default:
        if ((token as Token).type === "details") return this.#details(token as Token as DetailsToken, live);
        return this.#source(token, live);
    }
  }

  /** Looks and copies as in the answer. For screen readers the first one is one level below the heading of its message. */
  #heading(depth: number, live: Element | null | undefined): HTMLElement {
    const { headingLevel } = this.#context;
    this.#firstDepth ??= depth;
    const below = Math.max(1, depth - this.#firstDepth + 1);
    const heading = kept(live, `h${depth}` as "h1");
    // Screen readers know six levels.
    if (headingLevel > 0) setAttribute(heading, "aria-level", String(Math.min(headingLevel + below, 6)));
    return heading;
  }

  /** Draws blocks as the children of an element, after the first `from`. */
  #blocks<Parent extends HTMLElement>(parent: Parent, tokens: readonly Token[], from = 0): Parent {
    const shown = tokens.filter(DomRenderer.isShown) as MarkedToken[];
    placeChildren(parent, shown, from, (token, live) => this.block(token, live));
    return parent;
  }

  #quote(token: Tokens.Blockquote, live: Element | null | undefined): HTMLElement {
    if (!("alert" in token)) return this.#blocks(withDirection(kept(live, "blockquote")), token.tokens);
    const kind = token.alert as string;
    const box = withDirection(kept(live, "div", `alert alert-${kind}`));
    box.setAttribute("role", "note");
    const name = `alert${kind.charAt(0).toUpperCase()}${kind.slice(1)}` as "alertNote";
    if (!box.firstChild) box.appendChild(create("p", "alert-title")).textContent = this.#context.strings[name];
    return this.#blocks(box, token.tokens, 1);
  }

  #list(token: Tokens.List, live: Element | null | undefined): HTMLElement {
    const list = withDirection(kept(live, token.ordered ? "ol" : "ul"));
    setAttribute(list, "class", token.loose ? "loose" : "tight");
    const start = token.ordered ? Number(token.start) : 1;
    setAttribute(list, "start", start === 1 ? undefined : String(start));
    // For years, above all: numbers are outside of the items' box, where the message would clip long ones.
    setAttribute(list, "wide", start > 99 ? "" : undefined);
    return this.#blocks(list, token.items);
  }

  /**
   * The text of an item is always a paragraph, also in tight lists (a class removes the gaps): so a finished item stays
   * as it is when a later blank line makes the whole list loose.
   */
  #item(token: Tokens.ListItem, live: Element | null | undefined): HTMLElement {
    const item = kept(live, "li");
    setAttribute(item, "class", token.task ? "task" : undefined);
    if (!token.task) return this.#blocks(item, token.tokens);
    const blocks = token.tokens.filter(DomRenderer.isShown) as MarkedToken[];
    const [first] = blocks;
    const isText = first?.type === "paragraph" || first?.type === "text";
    placeChildren(item, isText ? blocks : ["checkbox" as const, ...blocks], 0, (block, old) => {
      if (block === "checkbox") return this.#checkbox(token.checked ?? false);
      if (block !== first || !isText) return this.block(block, old);
      return this.#text(kept(old, "p"), first.tokens ?? [], this.#checkbox(token.checked ?? false));
    });
    return item;
  }

  #checkbox(isChecked: boolean): HTMLElement {
    const { strings } = this.#context;
    const box = create("input");
    box.type = "checkbox";
    box.disabled = true;
    if (isChecked) box.setAttribute("checked", "");
    box.setAttribute("aria-label", isChecked ? strings.taskDone : strings.taskOpen);
    return box;
  }

  /** Drawn with its header from the start, so that nothing moves when the tools are added. */
  #code(token: Tokens.Code, live: Element | null | undefined): HTMLElement {
    const info = decodeEntities(token.lang ?? "");
    const label = info.split(/\s/, 1)[0] ?? "";
    const box = live?.matches(".code") ? (live as HTMLElement) : this.#codeBox();
    const code = box.querySelector("code") as HTMLElement;
    const language = label.toLowerCase();
    setAttribute(code, "class", LANGUAGE_NAME.test(language) ? `language-${language}` : undefined);
    showText(box.querySelector(".code-language") as HTMLElement, label.slice(0, 30) || this.#context.strings.code);
    placeChildren(code, linesInChunks(token.text.replace(/\n$/, "")), 0, (text, old) => {
      const chunk = kept(old, "span", "code-chunk");
      if (this.#sources.get(chunk) !== text) showText(chunk, text);
      this.#sources.set(chunk, text);
      return chunk;
    });
    const render = rendererOf(info, this.#context.renderers);
    if (render) this.renderables.set(box, { text: token.text, info, render });
    return box;
  }

  #codeBox(): HTMLElement {
    const box = create("div", "code");
    box.setAttribute("part", "code");
    const header = box.appendChild(create("div", "code-header"));
    header.append(create("span", "code-language"));
    header.append(boxButton("copy", this.#context.strings.copy, COPY, COPIED));
    const pre = box.appendChild(create("pre"));
    pre.dir = "ltr";
    pre.setAttribute("translate", "no");
    pre.append(create("code"));
    return box;
  }

  #table(token: Tokens.Table, live: Element | null | undefined): HTMLElement {
    const box = live?.matches(".table") ? (live as HTMLElement) : this.#tableBox();
    const table = box.querySelector("table") as HTMLTableElement;
    const row = (cells: readonly Tokens.TableCell[], old: Element | null) => this.#row(cells, old);
    placeChildren(table.tHead as Element, [token.header], 0, row);
    placeChildren(table.tBodies[0] as Element, token.rows, 0, row);
    return box;
  }

  #tableBox(): HTMLElement {
    const box = withDirection(create("div", "table"));
    box.setAttribute("part", "table");
    box.appendChild(create("table")).append(create("thead"), create("tbody"));
    return box;
  }

  /** Returns the element of a table's row, as `block` does. */
  #row(cells: readonly Tokens.TableCell[], live: Element | null): HTMLElement {
    const key = this.#key(cells.map(({ align, text }) => `${align}|${text}`).join("\n"));
    if (live instanceof HTMLElement && this.#sources.get(live) === key) return live;
    const row = kept(live, "tr");
    placeChildren(row, cells, 0, ({ header, align, tokens }, old) => {
      const cell = kept(old, header ? "th" : "td");
      setAttribute(cell, "class", align === null ? undefined : `align-${align}`);
      if (header) setAttribute(cell, "scope", "col");
      this.#text(cell, tokens);
      const { length } = cell.textContent;
      setAttribute(cell, "long", length > LONG_CELL ? "" : undefined);
      setAttribute(cell, "short", length > SHORT_CELL ? undefined : "");
      return cell;
    });
    this.#sources.set(row, key);
    return row;
  }

  /** Closed until the reader opens it, also while it grows. */
  #details(token: DetailsToken, live: Element | null | undefined): HTMLElement {
    const { summary } = token;
    const blocks = token.tokens.filter(DomRenderer.isShown) as MarkedToken[];
    const box = withDirection(kept(live, "details"));
    placeChildren(box, summary ? ["summary" as const, ...blocks] : blocks, 0, (block, old) =>
      block === "summary" ? this.#text(kept(old, "summary"), summary ?? []) : this.block(block, old),
    );
    return box;
  }

  /** Raw HTML, and blocks between delimiters until their renderer has drawn them, are shown as they are written. */
  #source(token: Token, live: Element | null | undefined): HTMLElement {
    if (token.type === "formula") {
      const box = kept(live, "p", "formula");
      patchChildren(box, [formula(token.raw.trim())]);
      return box;
    }
    const node = kept(live, "p", "source");
    showText(node, token.raw.replace(/\n+$/, ""));
    if ("open" in token && token.text !== undefined) {
      const delimiter = this.#delimiters.find(({ open }) => open === token.open);
      if (delimiter) this.renderables.set(node, { text: token.text, info: "", render: delimiter.render });
    }
    return node;
  }

  /** Draws the inline text of a block after `before`. Pieces that are drawn already are left alone. */
  #text<Box extends HTMLElement>(node: Box, tokens: readonly Token[], before?: HTMLElement): Box {
    const source = this.#inline.get(tokens) ?? "";
    const marked = lexers.get(node);
    // Source marks have split the nodes of its pieces.
    const known = (!marked && this.#pieces.get(node)) || [];
    const pieces: Piece[] = [];
    const fresh: ChildNode[] = before ? [before] : [];
    let from = 0;
    for (const group of inlinePieces(source)) {
      const key = this.#key(group.join("\0"));
      const old = known[pieces.length];
      if (old?.key === key && fresh.length === 0) {
        pieces.push(old);
        from += old.nodes;
        continue;
      }
      const drawn = document.createDocumentFragment();
      const lex = marked ?? lexInline;
      for (const piece of group) appendInline(drawn, lex(piece, this.#definitions.links), this.#context);
      pieces.push({ key, nodes: drawn.childNodes.length });
      fresh.push(...drawn.childNodes);
    }
    patchChildren(node, fresh, from);
    if (before) this.#pieces.delete(node);
    else this.#pieces.set(node, pieces);
    return node;
  }
}

/** `live` if it is an element of this kind, or a new one. */
function kept<Name extends keyof HTMLElementTagNameMap>(
  live: Element | null | undefined,
  name: Name,
  className = "",
): HTMLElementTagNameMap[Name] {
  const isKind = live?.localName === name && (name !== "p" && name !== "span" ? true : live.className === className);
  return isKind ? (live as HTMLElementTagNameMap[Name]) : create(name, className);
}

/** Makes a text the whole content of an element. */
function showText(node: HTMLElement, text: string): void {
  const fresh = create("span");
  appendText(fresh, text);
  patchChildren(node, [...fresh.childNodes]);
}

/**
 * Gives an element with blocks the direction of its first text. Each text in it has its own, by `unicode-bidi` in the
 * style sheet: one Arabic paragraph does not turn an English list around.
 */
function withDirection<Box extends HTMLElement>(node: Box): Box {
  setAttribute(node, "dir", "auto");
  return node;
}

/** Draws the children of an element after the first `from`, each in place of the child that is there. */
function placeChildren<Item>(
  parent: Element,
  items: readonly Item[],
  from: number,
  draw: (item: Item, live: Element | null) => Element,
): void {
  let live: Element | null = parent.children[from] ?? null;
  for (const item of items) {
    const node = draw(item, live);
    if (live === null) parent.append(node);
    else if (node !== live) live.replaceWith(node);
    live = node.nextElementSibling;
  }
  removeFrom(live);
}
