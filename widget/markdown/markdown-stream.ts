import type { MarkedToken } from "marked";
import { drawBlock, drawBlocks, drawItem, drawRow } from "./draw-block.ts";
import type { Drawing, ImageStatus } from "./draw-inline.ts";
import { LateParts } from "./late-parts.ts";
import { listenForActions } from "./markdown-actions.ts";
import {
  collectLinks,
  InlineLexer,
  type LexedBlocks,
  lexBlocks,
  noLinks,
  normalizedLabels,
} from "./markdown-lexer.ts";
import { adoptPart, type PartBlock, partBody } from "./open-block.ts";
import { patchChildren, patchNode } from "./patch-dom.ts";
import { presentable } from "./presentable.ts";
import { loosens, settledCount, settledPart } from "./settle.ts";

/** Settled content that names a label in brackets, and so looks different once that label is defined. */
interface Redrawable {
  readonly labels: string;
  readonly redraw: () => void;
}

/**
 * Renders Markdown that arrives piece by piece into an element whose children it owns.
 *
 * Only the unsettled tail of the text is lexed again. Blocks that nothing can change any more are drawn once from their
 * own source and left alone, so that the final DOM is that of the whole text rendered at once, and the cost of a piece
 * does not grow with the message.
 */
export class MarkdownStream {
  readonly #root: HTMLElement;
  readonly #images = new Map<string, ImageStatus>();
  readonly #late = new LateParts();

  #text = "";
  #streaming = false;
  /** What is not settled yet, with line breaks normalized. */
  #tail = "";
  #links = noLinks();
  #inline = new InlineLexer(this.#links);
  /** Children of the root that are final. */
  #settled = 0;
  /** The first child behind them, when its first parts are final already. */
  #open: PartBlock | undefined;
  #redrawables: Redrawable[] = [];

  constructor(root: HTMLElement) {
    this.#root = root;
    listenForActions(root, this.#images);
  }

  /** Shows `text`, the whole of it so far. While `streaming`, what is unfinished at its end is shown with care. */
  update(text: string, streaming: boolean): void {
    if (text === this.#text && streaming === this.#streaming) return;
    // What was final is settled to its last character, so only a text that was streaming can be read on.
    if (!this.#streaming || !text.startsWith(this.#text)) this.#reset();
    this.#streaming = streaming;
    this.#take(text);
    this.#draw();
  }

  #reset(): void {
    this.#text = "";
    this.#tail = "";
    this.#links = noLinks();
    this.#inline = new InlineLexer(this.#links);
    this.#settled = 0;
    this.#open = undefined;
    this.#redrawables = [];
  }

  #take(text: string): void {
    // Half a line break or half a character waits for its other half.
    const isHalf = this.#streaming && /^[\r\ud800-\udbff]/.test(text.charAt(text.length - 1));
    const whole = isHalf ? text.slice(0, -1) : text;
    this.#tail += whole.slice(this.#text.length).replace(/\r\n?/g, "\n");
    this.#text = whole;
  }

  #draw(): void {
    const source = (this.#open?.prefix ?? "") + this.#tail;
    const blocks = lexBlocks(source);
    const count = this.#streaming ? settledCount(source, blocks.tokens) : blocks.tokens.length;
    const settling = blocks.tokens.slice(0, count);
    const newLabels = collectLinks(settling, this.#links);
    if (newLabels.length > 0) this.#inline.forget();

    const rest = settling.reduce((length, token) => length + token.raw.length, 0);
    for (const token of settling) this.#settle(token, blocks);
    if (count > 0) this.#tail = source.slice(rest);
    this.#drawTail(source, rest, { ...blocks, tokens: blocks.tokens.slice(count) });
    this.#redraw(newLabels);
    this.#late.watch(this.#root.childNodes[this.#settled]);
  }

  /** Draws a block for good. */
  #settle(token: MarkedToken, blocks: LexedBlocks): void {
    const sources: string[] = [];
    const draw = (into: string[] = []) =>
      drawBlock(token, this.#drawing(blocks, this.#inline, into));
    const part = this.#open;
    const fresh = draw(sources);
    if (fresh === undefined) return;
    this.#open = undefined;
    this.#inline.forget();
    const place = this.#root.childNodes[this.#settled];
    const node =
      place === undefined ? this.#root.appendChild(fresh) : this.#place(place, fresh, part);
    this.#settled += 1;
    this.#late.add(node);
    this.#keepRedrawable(sources, () => {
      const again = draw();
      if (again !== undefined) this.#place(node, again, part);
    });
  }

  /** Makes the node at a place equal to a fresh one, and answers the node that stands there now. */
  #place(live: ChildNode, fresh: HTMLElement, part?: PartBlock): ChildNode {
    if (part !== undefined && adoptPart(live, fresh, part)) return live;
    if (patchNode(live, fresh)) return live;
    live.replaceWith(fresh);
    return fresh;
  }

  /** Draws what may still change, and settles the finished parts of the block that goes on. */
  #drawTail(source: string, offset: number, blocks: LexedBlocks): void {
    const rest = source.slice(offset);
    const shown = presentable(rest, blocks.tokens);
    let shownBlocks = shown === rest ? blocks : lexBlocks(shown);
    // What is open goes on, however little of it may be shown.
    if (this.#open && shownBlocks.tokens[0]?.type !== blocks.tokens[0]?.type) shownBlocks = blocks;
    const links = Object.assign(noLinks(), this.#links);
    const inline =
      collectLinks(shownBlocks.tokens, links).length > 0 ? new InlineLexer(links) : this.#inline;
    const drawing = this.#drawing(shownBlocks, inline, []);
    const fresh = document.createDocumentFragment();
    drawBlocks(fresh, shownBlocks.tokens, drawing);
    let from = this.#settled;
    const live = this.#root.childNodes[from];
    if (this.#open !== undefined && live !== undefined) {
      const first = fresh.firstElementChild;
      if (first instanceof HTMLElement && adoptPart(live, first, this.#open)) first.remove();
      from += 1;
    }
    patchChildren(this.#root, fresh, from);
    this.#settlePart(source, offset, blocks);
  }

  #settlePart(source: string, offset: number, blocks: LexedBlocks): void {
    const [token] = blocks.tokens;
    const live = this.#root.childNodes[this.#settled];
    const part = token && settledPart(source, offset, token);
    const body = token && live && partBody(live, token.type);
    if (part === undefined || token === undefined || body === undefined) return;
    let done = this.#open?.done ?? 0;
    let loose = this.#open?.loose ?? false;
    if (token.type === "list") {
      const items = token.items.slice(0, part.count);
      loose ||= items.some(loosens);
      this.#redraw(items.flatMap((item) => collectLinks(item.tokens, this.#links)));
      done = this.#settleParts(body, done, items, blocks, drawItem);
    } else if (token.type === "table") {
      done = this.#settleParts(body, done, token.rows.slice(0, part.count), blocks, drawRow);
    } else if (token.type === "blockquote") {
      const inner = token.tokens.slice(0, part.count) as MarkedToken[];
      this.#redraw(collectLinks(inner, this.#links));
      done = this.#settleParts(body, done, inner, blocks, drawBlock);
    } else {
      done += part.count;
    }
    this.#open = { prefix: part.prefix, done, loose };
    this.#tail = source.slice(part.rest);
  }

  /** Draws parts for good, from child `done` of the body on; answers how many children are final then. */
  #settleParts<Part>(
    body: Node,
    done: number,
    parts: readonly Part[],
    blocks: LexedBlocks,
    drawPart: (part: Part, drawing: Drawing) => HTMLElement | undefined,
  ): number {
    let next = done;
    for (const part of parts) {
      const sources: string[] = [];
      const draw = (into: string[] = []) =>
        drawPart(part, this.#drawing(blocks, this.#inline, into));
      const fresh = draw(sources);
      if (fresh === undefined) continue;
      const live = body.childNodes[next];
      const settled = live === undefined ? body.appendChild(fresh) : this.#place(live, fresh);
      next += 1;
      this.#keepRedrawable(sources, () => {
        const again = draw();
        if (again !== undefined) this.#place(settled, again);
      });
    }
    return next;
  }

  #keepRedrawable(sources: readonly string[], redraw: () => void): void {
    const bracketed = sources.filter((source) => source.includes("["));
    if (bracketed.length === 0) return;
    this.#redrawables.push({ labels: normalizedLabels(bracketed.join("\n")), redraw });
  }

  /** A definition may come long after the text that refers to it. */
  #redraw(newLabels: readonly string[]): void {
    if (newLabels.length === 0) return;
    this.#inline.forget();
    for (const { labels, redraw } of this.#redrawables) {
      if (newLabels.some((label) => labels.includes(label))) redraw();
    }
  }

  #drawing(blocks: LexedBlocks, inline: InlineLexer, sources: string[]): Drawing {
    return {
      images: this.#images,
      inline: (tokens) => {
        const source = blocks.inline.get(tokens) ?? "";
        sources.push(source);
        return inline.lex(source);
      },
    };
  }
}
