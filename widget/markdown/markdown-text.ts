/** `<agent-chat-markdown>`: Markdown that may still grow. */

import { type PropertyValues, ReactiveElement } from "lit";
import { inlinePieces } from "./inline-pieces.ts";
import { collectLinks, lexBlocks, lexers, lexInline } from "./lexer.ts";
import { appendInline, type ImageStatus } from "./render-inline.ts";
import { delimitersOf, hasRenderers, type SourcesListener } from "./renderers.ts";
import { type MarkdownContext, MarkdownStream } from "./stream.ts";

/** Milliseconds that a drawing may take without a pause before the next one. */
const FRAME = 16;

/** Characters of a long text that are drawn without a pause: some 10 ms of work, and 50 on a phone. */
const CHARACTERS_AT_A_TIME = 4_000;

/** Longer pieces of a stream, in characters, would appear abruptly: they are drawn within `SPREAD` milliseconds. */
const COARSE = 80;
const SPREAD = 250;

/** Its children belong to the stream, so this element has no template. */
export class MarkdownText extends ReactiveElement {
  /** For `source-marks.ts`, which is loaded later. An import there would make the build split this code in two. */
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
  /** Whether more text may follow: unfinished marks at the end are then not shown. */
  isStreaming = false;
  /** Called after each drawing, with the text so far. */
  onDrawn: ((text: string) => void) | undefined;
  /** Listeners of renderers, each with the last source that it was called with. */
  readonly listeners = new Map<SourcesListener, unknown>();
  readonly #images = new Map<string, ImageStatus>();
  #stream: MarkdownStream | undefined;
  #drawnWith: MarkdownContext | undefined;
  /** How long the last drawing took, in milliseconds. */
  #duration = 0;
  /** How much of the text is drawn, in characters. */
  #drawn = 0;
  #hasMore = false;
  /** Characters per millisecond while a coarse piece is drawn, else 0. */
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

  /** Aborts the renderers, once it is certain that the element was not just moved. */
  override disconnectedCallback(): void {
    super.disconnectedCallback();
    queueMicrotask(() => {
      if (this.isConnected || !hasRenderers(this.context.renderers)) return;
      this.#stream?.close();
      this.#stream = undefined;
    });
  }

  /** The end of an answer is drawn without a pause: `aria-busy` of its message tells when it is complete. */
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
        // The pause ends with the next frame, or soon after in a tab that was hidden meanwhile.
        setTimeout(resolve, isHeavy ? this.#duration : SPREAD);
        if (!isHeavy) requestAnimationFrame(resolve);
      });
    }
    super.scheduleUpdate();
  }

  /** Whether the text is complete, and its rest is drawn at once. */
  get #isEnd(): boolean {
    return !this.isStreaming && !this.#isLong;
  }

  /** Whether much text is left to draw, in tasks of its own; not in a hidden page, whose timers are slow. */
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

  /** The end of the text that is drawn next, in characters. */
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

  /** Draws everything again, for another language, theme or renderer. */
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
  // Only renderers need to know the theme: everything else follows the style sheet.
  const isTheme = a.theme === b?.theme || !hasRenderers(a.renderers);
  const isLevel = a.headingLevel === b?.headingLevel;
  return a.strings === b?.strings && a.renderers === b.renderers && a.images === b.images && isTheme && isLevel;
}
