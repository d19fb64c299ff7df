import type { MarkedToken } from "marked";
import { clipboard } from "../clipboard/copying.ts";
import type { Strings } from "../i18n/strings.ts";
import { lazy } from "../loading/lazy.ts";
import { create } from "../styles/elements.ts";
import { DomRenderer, type Renderable } from "./dom-renderer.ts";
import type { FootnoteList } from "./footnote-list.ts";
import { isExpected } from "./footnotes.ts";
import { trimIncompleteTail } from "./heal.ts";
import {
  collectLinks,
  collectNotes,
  type LexedBlocks,
  lexBlocks,
  noLinks,
  normalizedLabels,
  settledBlocks,
} from "./lexer.ts";
import { removeFrom } from "./patch-dom.ts";
import { type ImageStatus, type InlineContext, listenForImages, type MayLoadImages } from "./render-inline.ts";
import { type BlockRenderers, delimitersOf, type RenderedBlock } from "./renderers.ts";

/**
 * Blocks of one section. When a child grows, a browser checks all children of its parent in each frame, and lays out
 * those in view. So the later blocks of a long answer are grouped in sections.
 */
const SECTION_SIZE = 32;

/** Growing code is coloured after this pause in its growth, in milliseconds. */
const PAUSE = 300;

const BOXES = ".code, .table, .alert, .tex";

const footnoteList = lazy(() => import("./footnote-list.ts"), "FootnoteList");
const codeBlocks = lazy(() => import("./code-blocks/code-blocks.ts"), "addTools");

/** The part of the chat's context that Markdown needs. */
export interface MarkdownContext {
  readonly strings: Strings;
  readonly renderers: BlockRenderers;
  readonly theme: "light" | "dark";
  /** Level of the heading above the text. */
  readonly headingLevel: number;
  /** Which external images the reader is asked to load. Default: all. */
  readonly images?: MayLoadImages;
}

type StreamContext = MarkdownContext & Pick<RenderedBlock, "onSources">;

/** Settled content with text in brackets, which looks different once one of its labels is defined as a link. */
interface Bracketed {
  readonly labels: string;
  readonly inline: LexedBlocks["inline"];
  node: Element;
  readonly token: MarkedToken;
}

/**
 * Renders Markdown that arrives piece by piece into an element whose children it owns.
 *
 * Only the tail of the text is lexed: the blocks that a later character can still change. A block that nothing can
 * change any more is settled: drawn from its own source, handed to its renderer, and left alone. So the result is that
 * of the whole text rendered at once, and the cost of a piece does not grow with the answer.
 */
export class MarkdownStream {
  readonly #root: HTMLElement;
  readonly #context: StreamContext;
  readonly #delimiters: ReturnType<typeof delimitersOf>;
  readonly #images: Map<string, ImageStatus>;
  #renderer: DomRenderer;
  readonly #sections: Sections;
  readonly #tools: BoxTools;
  readonly #closed = new AbortController();

  #text = "";
  #isStreaming = false;
  /** The end of the text that is not settled yet. */
  #tail = "";
  /** How many blocks are settled. */
  #settled = 0;
  #links = noLinks();
  #bracketed: Bracketed[] = [];
  /** Footnotes in settled blocks, by label. */
  #notes = new Map<string, string>();
  #hasNotes = false;
  /** Whether this stream draws a footnote. Marks in a footnote belong to the answer's list. */
  #isNote = false;
  #noteList: FootnoteList | undefined;
  #drawNotes = (_list: FootnoteList) => {};

  /** `images`: the external images that the reader has requested, which are kept when the context changes. */
  constructor(root: HTMLElement, context: StreamContext, images = new Map<string, ImageStatus>()) {
    this.#root = root;
    this.#context = context;
    this.#delimiters = delimitersOf(context.renderers);
    this.#images = images;
    this.#renderer = this.#newRenderer();
    this.#sections = new Sections(root);
    this.#tools = new BoxTools(root, context.strings, this.#closed.signal);
    listenForImages(root, this.#inlineContext(), this.#closed.signal);
  }

  /** Shows `text`, the whole text so far. While it streams, unfinished marks at its end are shown as closed. */
  update(text: string, isStreaming: boolean): void {
    if (text === this.#text && isStreaming === this.#isStreaming) return;
    // A complete text is settled to its last character, so only a streaming one can be continued.
    if (!this.#isStreaming || !text.startsWith(this.#text)) this.#reset();
    this.#isStreaming = isStreaming;
    this.#append(text);
    const blocks = lexBlocks(this.#tail, this.#delimiters);
    const count = isStreaming ? settledBlocks(this.#tail, blocks.tokens) : blocks.tokens.length;
    this.#settle(blocks, count);
    this.#drawUnsettled({ ...blocks, tokens: blocks.tokens.slice(count) });
    if (isStreaming) return;
    // Frees memory: nothing changes any more, and both refer to the whole text.
    this.#bracketed = [];
    this.#renderer = this.#newRenderer();
  }

  /** Stops all timers and drawings that still run. */
  close(): void {
    this.#closed.abort();
  }

  #newRenderer(): DomRenderer {
    const { renderers, headingLevel } = this.#context;
    return new DomRenderer({ ...this.#inlineContext(), renderers, headingLevel }, this.#delimiters);
  }

  #inlineContext(): InlineContext {
    const { strings, images } = this.#context;
    return { strings, images: this.#images, mayLoadImages: images };
  }

  #reset(): void {
    this.#text = "";
    this.#tail = "";
    this.#settled = 0;
    this.#links = noLinks();
    this.#bracketed = [];
    this.#notes.clear();
    this.#hasNotes = false;
    this.#renderer = this.#newRenderer();
  }

  #append(text: string): void {
    // Half a line break or half a character waits for its other half.
    const isHalf = this.#isStreaming && /^[\r\ud800-\udbff]/.test(text.charAt(text.length - 1));
    const whole = isHalf ? text.slice(0, -1) : text;
    const added = whole.slice(this.#text.length).replace(/\r\n?/g, "\n");
    // Required by CommonMark.
    this.#tail += added.replaceAll("\0", "\ufffd");
    this.#text = whole;
    this.#hasNotes ||= !this.#isNote && this.#tail.includes("[^");
  }

  /** Draws the first `count` blocks for the last time. */
  #settle(blocks: LexedBlocks, count: number): void {
    if (count === 0) return;
    const settling = blocks.tokens.slice(0, count);
    this.#define(settling);
    this.#begin(blocks);
    for (const token of settling) {
      this.#tail = this.#tail.slice(token.raw.length);
      if (!DomRenderer.isShown(token)) continue;
      const node = this.#draw(token, this.#settled);
      this.#settled += 1;
      this.#finish(node, token, blocks);
    }
  }

  /** For blocks that only the definition of a link can still change. */
  #finish(node: Element, token: MarkedToken, { inline }: LexedBlocks): void {
    if (this.#isStreaming && token.raw.includes("[")) {
      this.#bracketed.push({ labels: normalizedLabels(token.raw), inline, node, token });
    }
    this.#tools.settle(node);
    this.#runRenderers(node);
  }

  /** Adds link definitions and footnotes. Text that refers to a later definition is drawn again. */
  #define(tokens: readonly MarkedToken[]): void {
    collectNotes(tokens, this.#notes);
    const newLabels = collectLinks(tokens, this.#links);
    if (newLabels.length === 0) return;
    for (const block of this.#bracketed) {
      if (!newLabels.some((label) => block.labels.includes(label))) continue;
      this.#begin(block);
      const node = this.#renderer.block(block.token, block.node);
      if (node !== block.node) block.node.replaceWith(node);
      block.node = node;
    }
  }

  #begin({ inline }: Pick<LexedBlocks, "inline">, links = this.#links, version = ""): void {
    this.#renderer.begin(inline, { links, version: `${Object.keys(this.#links).length}${version}` });
  }

  #draw(token: MarkedToken, index: number): HTMLElement {
    const node = this.#renderer.block(token, this.#sections.at(index));
    this.#sections.put(index, node);
    return node;
  }

  /** Draws the blocks that may still change, without the marks at their end that are not complete yet. */
  #drawUnsettled(blocks: LexedBlocks): void {
    const shown = this.#isStreaming ? trimIncompleteTail(this.#tail, blocks.tokens) : this.#tail;
    const drawn = shown === this.#tail ? blocks : lexBlocks(shown, this.#delimiters);
    const links = Object.assign(noLinks(), this.#links);
    const defined = collectLinks(drawn.tokens, links).map((label) => links[label]);
    this.#begin(drawn, links, defined.length > 0 ? JSON.stringify(defined) : "");
    let index = this.#settled;
    for (const token of drawn.tokens) {
      if (DomRenderer.isShown(token)) this.#tools.watch(this.#draw(token, index++));
    }
    this.#sections.cutAt(index);
    if (this.#hasNotes) this.#drawFootnotes(drawn.tokens, index);
  }

  /** Links the marks of footnotes, and draws the notes after the last block. */
  #drawFootnotes(unsettled: readonly MarkedToken[], index: number): void {
    const notes = new Map(this.#notes);
    collectNotes(unsettled, notes);
    this.#drawNotes = (list) => {
      if (list.draw(notes, this.#isStreaming)) this.#sections.put(index, list.element);
    };
    if (this.#noteList) this.#drawNotes(this.#noteList);
    else void this.#loadFootnotes();
  }

  async #loadFootnotes(): Promise<void> {
    const { signal } = this.#closed;
    const module = await footnoteList.loadEventually(signal);
    if (!module || signal.aborted) return;
    this.#noteList ??= new module.FootnoteList(this.#root, {
      strings: this.#context.strings,
      drawInto: (root) => this.#nested(root),
      isExpected,
      signal,
    });
    this.#drawNotes(this.#noteList);
  }

  /** Returns how to draw a footnote, which is Markdown, too. */
  #nested(root: HTMLElement): (text: string, isStreaming: boolean) => void {
    const stream = new MarkdownStream(root, this.#context, this.#images);
    stream.#isNote = true;
    this.#closed.signal.addEventListener("abort", () => stream.close());
    return (text, isStreaming) => stream.update(text, isStreaming);
  }

  /** Runs the renderers of the blocks in a settled node. */
  #runRenderers(node: Element): void {
    for (const [box, renderable] of this.#renderer.renderables) {
      if (!node.contains(box)) continue;
      this.#renderer.renderables.delete(box);
      void this.#render(box, renderable);
    }
  }

  async #render(box: Element, { text, info, render }: Renderable): Promise<void> {
    const { signal } = this.#closed;
    const { theme, onSources } = this.#context;
    try {
      const rendered = create("div", "rendered");
      // A block between delimiters is a formula, which is announced as written.
      if (info === "") rendered.dataset.source = text;
      rendered.append(await render(text, { info, theme, signal, onSources }));
      if (!signal.aborted && this.#root.contains(box)) this.#renderer.replace(box, rendered);
    } catch (error) {
      console.warn(`<agent-chat>: a renderer failed for this block, which stays as it is written:\n${text}`, error);
    }
  }
}

/** The blocks of an answer, numbered from 0: the first ones are children of the root, the others of its sections. */
class Sections {
  readonly #root: HTMLElement;

  constructor(root: HTMLElement) {
    this.#root = root;
  }

  at(index: number): Element | undefined {
    return this.#parentOf(index)?.children[index % SECTION_SIZE];
  }

  /** Replaces the block with this number, or appends one after the last block. */
  put(index: number, node: Element): void {
    const live = this.at(index);
    if (live === node) return;
    if (live) live.replaceWith(node);
    else (this.#parentOf(index) ?? this.#root.appendChild(create("div", "section"))).append(node);
  }

  /** Removes the blocks from this number on. */
  cutAt(index: number): void {
    const parent = this.#parentOf(index);
    if (!parent) return;
    removeFrom(parent.children[index % SECTION_SIZE] ?? null);
    if (parent === this.#root) return;
    removeFrom(parent.nextSibling);
    if (index % SECTION_SIZE === 0) parent.remove();
  }

  /** The first `SECTION_SIZE` blocks are children of the root itself. */
  #parentOf(index: number): Element | undefined {
    return index < SECTION_SIZE ? this.#root : this.#root.children[SECTION_SIZE - 1 + Math.floor(index / SECTION_SIZE)];
  }
}

/**
 * Adds tools and icons to the boxes of an answer, colours to code, and draws formulas. Without its code, which is
 * loaded later, boxes are complete and can be copied.
 */
class BoxTools {
  readonly #strings: Strings;
  readonly #signal: AbortSignal;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(root: HTMLElement, strings: Strings, signal: AbortSignal) {
    this.#strings = strings;
    this.#signal = signal;
    root.addEventListener("click", ({ target }) => void this.#copy(target as Element), { signal });
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
  }

  /** For a node that no longer changes. */
  settle(node: Element): void {
    void this.#add(node, true);
  }

  /** For nodes that may grow, in order: adds tools at once, so that nothing jumps later, and colours after a pause. */
  watch(node: Element): void {
    clearTimeout(this.#timer);
    if (!hasBox(node)) return;
    this.#timer = setTimeout(() => this.#add(node, true), PAUSE);
    void this.#add(node, false);
  }

  async #add(node: Element, isSettled: boolean): Promise<void> {
    if (!hasBox(node)) return;
    const module = await codeBlocks.loadEventually(this.#signal);
    if (node.isConnected && !this.#signal.aborted) module?.addTools(node, isSettled, this.#strings);
  }

  async #copy(target: Element): Promise<void> {
    const button = target.closest<HTMLButtonElement>("button.copy");
    const code = button?.closest(".code")?.querySelector("code");
    if (!button || !code) return;
    const loaded = await clipboard.load().catch(() => undefined);
    await loaded?.copyFrom(button, loaded.copyText(code.textContent, button), this.#strings);
  }
}

function hasBox(node: Element): boolean {
  return node.matches(BOXES) || node.querySelector(BOXES) !== null;
}
