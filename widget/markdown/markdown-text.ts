/** `<agent-chat-markdown>`: Markdown that may still grow. */

import { type PropertyValues, ReactiveElement } from "lit";
import { inlinePieces } from "./inline-pieces.ts";
import { collectLinks, lexBlocks, lexers, lexInline } from "./lexer.ts";
import { appendInline, type ImageStatus } from "./render-inline.ts";
import { delimitersOf, hasRenderers, type SourcesListener } from "./renderers.ts";
import { type MarkdownContext, MarkdownStream } from "./stream.ts";

/** Milliseconds that a drawing may take without a pause before the next one. */
const FRAME = 16;

/** So much of a text that is there at once is drawn without a pause, in characters: some 10 ms of work, and 50 on a phone. */
const CHARACTERS_AT_A_TIME = 4_000;

/** A piece of a stream with so many characters would pop up: it is drawn within so many milliseconds. */
const COARSE = 80;
const SPREAD = 250;

/** Its children belong to the stream, so this element has no template. */
export class MarkdownText extends ReactiveElement {
  /** For the marks of sources, whose code comes later. An import of theirs would cut this code in two. */
  static readonly tools = {
    appendInline,
    collectLinks,
    delimitersOf,
    inlinePieces,
    lexBlocks,
    lexers,
    lexInline,
  };
  static override properties = {
    context: { attribute: false },
    text: { attribute: false },
    isStreaming: { attribute: false },
  };
  context!: MarkdownContext;
  /** The whole text so far. */
  text = "";
  /** Whether more may come: then unfinished marks at the end are not shown. */
  isStreaming = false;
  /** Called after each drawing, with the text so far. */
  onDrawn: ((text: string) => void) | undefined;
  /** Listeners of renderers, each with the last source that it has got. */
  readonly listeners = new Map<SourcesListener, unknown>();
  readonly #images = new Map<string, ImageStatus>();
  #stream: MarkdownStream | undefined;
  #drawnWith: MarkdownContext | undefined;
  /** How long the last drawing took, in milliseconds. */
  #duration = 0;
  /** How much of the text was drawn last. */
  #drawn = 0;
  #hasMore = false;
  /** Characters in a millisecond, while a coarse piece is drawn. */
  #pace = 0;
  #drawnAt = 0;
  /** Ends a pause before the next drawing. */
  #drawNow: ((value?: unknown) => void) | undefined;

  protected override createRenderRoot(): this {
    return this;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.requestUpdate();
  }

  /** Ends what renderers have begun, once it is certain that the element is not only moved. */
  override disconnectedCallback(): void {
    super.disconnectedCallback();
    queueMicrotask(() => {
      if (this.isConnected || !hasRenderers(this.context.renderers)) return;
      this.#stream?.close();
      this.#stream = undefined;
    });
  }

  /** The end of an answer waits for nothing: `aria-busy` of its message says that it is whole. */
  override requestUpdate(...what: Parameters<ReactiveElement["requestUpdate"]>): void {
    super.requestUpdate(...what);
    // Lit calls this in the constructor, too, before there are private members.
    if (this.hasUpdated && this.#isEnd) this.#drawNow?.();
  }

  /** Huge blocks are drawn less often, and long texts in pieces, so that the page stays usable. */
  protected override async scheduleUpdate(): Promise<void> {
    const isHeavy = this.#isLong || this.#duration > FRAME;
    if (!this.#isEnd && (isHeavy || this.#pace > 0)) {
      await new Promise<unknown>((resolve) => {
        this.#drawNow = resolve;
        // It is drawn with the next frame, or soon in a tab that was hidden meanwhile.
        setTimeout(resolve, isHeavy ? this.#duration : SPREAD);
        if (!isHeavy) requestAnimationFrame(resolve);
      });
    }
    super.scheduleUpdate();
  }

  /** Whether nothing more comes, and what is left is drawn in one go. */
  get #isEnd(): boolean {
    return !this.isStreaming && !this.#isLong;
  }

  /** A long text that is there at once is drawn in tasks of its own, but not in a hidden page, whose timers are slow. */
  get #isLong(): boolean {
    return this.text.length > this.#drawn + CHARACTERS_AT_A_TIME && !document.hidden;
  }

  protected override update(changed: PropertyValues<this>): void {
    super.update(changed);
    const start = performance.now();
    if (!this.#stream || !isSame(this.context, this.#drawnWith)) this.#begin();
    this.#drawn = this.#nextEnd(start);
    this.#drawnAt = start;
    this.#hasMore = this.#drawn < this.text.length;
    if (!this.#hasMore) this.#pace = 0;
    this.#stream?.update(this.text.slice(0, this.#drawn), this.isStreaming || this.#hasMore);
    this.#duration = performance.now() - start;
  }

  protected override updated(): void {
    this.onDrawn?.(this.text.slice(0, this.#drawn));
    if (this.#hasMore) this.requestUpdate();
  }

  /** How much of the text is drawn next. */
  #nextEnd(now: number): number {
    const { length } = this.text;
    const line = this.#isLong ? this.text.indexOf("\n", this.#drawn + CHARACTERS_AT_A_TIME) : -1;
    if (line !== -1) return line;
    const backlog = length - this.#drawn;
    const isCoarse = backlog > COARSE || this.#pace > 0;
    if (!this.isStreaming || !isCoarse || this.#drawn === 0 || document.hidden || prefersCalm()) return length;
    const elapsed = this.#pace > 0 ? now - this.#drawnAt : FRAME;
    this.#pace = Math.max(this.#pace, backlog / SPREAD);
    return Math.min(length, this.#drawn + Math.ceil(this.#pace * elapsed));
  }

  /** Another language, theme or renderer draws everything again. */
  #begin(): void {
    this.#stream?.close();
    this.replaceChildren();
    this.#drawnWith = this.context;
    this.listeners.clear();
    const onSources = (listener: SourcesListener) => {
      this.listeners.set(listener, undefined);
      this.requestUpdate();
    };
    this.#stream = new MarkdownStream(this, { ...this.context, onSources }, this.#images);
  }
}

function prefersCalm(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

function isSame(a: MarkdownContext, b: MarkdownContext | undefined): boolean {
  // Only a renderer has to know the theme: everything else follows the style sheet.
  const isTheme = a.theme === b?.theme || !hasRenderers(a.renderers);
  const isLevel = a.headingLevel === b?.headingLevel;
  return a.strings === b?.strings && a.renderers === b.renderers && a.images === b.images && isTheme && isLevel;
}
