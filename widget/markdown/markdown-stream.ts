import { drawParts, partsOf } from "./draw-block.ts";
import type { Drawing, ImageStatus } from "./draw-inline.ts";
import { LateParts } from "./late-parts.ts";
import { cutBehind, cutGrowing, loadLongBlocks, longBlocks } from "./long-blocks.ts";
import { listenForActions } from "./markdown-actions.ts";
import { collectLinks, InlineLexer, type LexedBlocks, lexBlocks, noLinks, normalizedLabels } from "./markdown-lexer.ts";
import { childrenOf, goesOn, newBlock, type OpenBlocks, type Step, toOpen } from "./open-block.ts";
import { partAt } from "./part-groups.ts";
import { adoptParts, bodyOf, isKin, place } from "./patch-dom.ts";
import { presentable } from "./presentable.ts";

/** A tail so long, in characters, holds a long block, of which the finished parts had better be settled. */
const longTail = 2048;

/** Settled content that names a label in brackets, and so looks different once that label is defined. */
interface Redrawable {
  readonly labels: string;
  /** Answers false when only drawing everything again would do. */
  readonly redraw: () => boolean;
}

/**
 * Renders Markdown that arrives piece by piece into an element whose children it owns.
 *
 * Only the unsettled tail of the text is lexed again. Blocks that nothing can change any more, and such parts of a block
 * that goes on, are drawn once from their own source and left alone, so that the final DOM is that of the whole text
 * rendered at once, and the cost of a piece does not grow with the message.
 */
export class MarkdownStream {
  readonly #root: HTMLElement;
  readonly #images = new Map<string, ImageStatus>();
  readonly #late = new LateParts();

  #text = "";
  #streaming = false;
  /** Has it had a long block while it grew? */
  #isLong = false;
  /** What is not settled yet, as it is lexed. */
  #tail = "";
  #links = noLinks();
  #inline = new InlineLexer(this.#links);
  #open: OpenBlocks = [newBlock];
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
    // Text of which pieces are settled became a heading or a table, or a label in it was defined: then all is read again.
    if (!this.#draw()) {
      this.#reset();
      this.#take(text);
      this.#draw();
    }
    // Nothing is defined any more, and they hold all that was read.
    if (!streaming) this.#redrawables = [];
  }

  #reset(): void {
    this.#text = "";
    this.#tail = "";
    this.#links = noLinks();
    this.#inline = new InlineLexer(this.#links);
    this.#open = [newBlock];
    this.#redrawables = [];
  }

  #take(text: string): void {
    // Half a line break or half a character waits for its other half.
    const isHalf = this.#streaming && /^[\r\ud800-\udbff]/.test(text.charAt(text.length - 1));
    const whole = isHalf ? text.slice(0, -1) : text;
    const added = whole.slice(this.#text.length).replace(/\r\n?/g, "\n");
    // As CommonMark has it; and so that the character is free to stand for settled text: see `chunks/cut.ts`.
    this.#tail += added.replaceAll("\0", "\ufffd");
    this.#text = whole;
  }

  /** Answers false when what is settled is not right any more. */
  #draw(): boolean {
    let blocks = lexBlocks(this.#tail);
    if (!goesOn(blocks, this.#open) || longBlocks.chunk?.isTableHead.test(this.#tail)) return false;
    if (this.#streaming && this.#tail.length > longTail && !this.#isLong) {
      this.#isLong = true;
      void loadLongBlocks();
    }
    const cut = this.#streaming
      ? cutGrowing(this.#tail, blocks, this.#open)
      : cutBehind(this.#tail, blocks, blocks.tokens.length);
    const rest = cut && lexBlocks(cut.rest);
    // What would be read otherwise without the text before it stays with that.
    if (cut && rest && goesOn(rest, cut.steps.map(toOpen))) {
      if (!this.#define(cut.steps)) return false;
      this.#open = this.#settle(this.#root, blocks, cut.steps, this.#open);
      this.#tail = cut.rest;
      blocks = rest;
    }
    this.#drawTail(blocks);
    this.#late.watch(partAt(this.#root, this.#open[0]?.done ?? 0));
    return true;
  }

  /** Takes in the definitions in what is settled now. One may come long after the text that refers to it. */
  #define(steps: readonly Step[]): boolean {
    const settling = steps.flatMap(({ token, count }) => childrenOf(token).slice(0, count));
    const newLabels = collectLinks(settling, this.#links);
    if (newLabels.length === 0) return true;
    const named = this.#redrawables.filter(({ labels }) => newLabels.some((label) => labels.includes(label)));
    return named.every(({ redraw }) => redraw());
  }

  /** Draws for good the parts of a block that are final, and those of the part that goes on. */
  #settle(body: Node, blocks: LexedBlocks, [step, ...deeper]: readonly Step[], open: OpenBlocks): OpenBlocks {
    if (step === undefined) return open;
    const { token, count, loose = false } = step;
    const [block = newBlock, ...known] = open;
    let { done } = block;
    let inner: OpenBlocks = known;
    const sources: string[] = [];
    const parts = partsOf(token, this.#drawing(blocks, this.#inline, sources));
    for (const draw of parts.slice(block.skip, count)) {
      const fresh = draw();
      if (fresh === undefined) continue;
      const part = inner;
      inner = [];
      for (const node of fresh instanceof DocumentFragment ? [...fresh.childNodes] : [fresh]) {
        const settled = place(body, partAt(body, done), node, part);
        if (body === this.#root) this.#late.add(settled);
        done += 1;
        this.#keepRedrawable(sources.splice(0), () => {
          const again = draw();
          // Pieces of text may come to be more nodes or fewer.
          if (!(again instanceof HTMLElement)) return false;
          place(body, settled, again, part);
          return true;
        });
      }
    }
    if (deeper.length > 0) {
      const fresh = parts[count]?.();
      let live = partAt(body, done);
      // So little of it may be shown that it is not there yet.
      if (fresh instanceof HTMLElement && !isKin(live, fresh)) {
        live = place(body, live, fresh, inner);
      }
      if (live) inner = this.#settle(bodyOf(live), blocks, deeper, inner);
    }
    return [{ ...toOpen(step), done, loose: block.loose || loose }, ...inner];
  }

  #keepRedrawable(sources: readonly string[], redraw: () => boolean): void {
    const bracketed = sources.filter((source) => source.includes("["));
    if (bracketed.length === 0) return;
    this.#redrawables.push({ labels: normalizedLabels(bracketed.join("\n")), redraw });
  }

  /** Draws what may still change. */
  #drawTail(blocks: LexedBlocks): void {
    const shown = presentable(this.#tail, blocks.tokens);
    const healed = shown === this.#tail ? blocks : lexBlocks(shown);
    // What is open goes on, however little of it may be shown.
    const shownBlocks = goesOn(healed, this.#open) ? healed : blocks;
    const links = Object.assign(noLinks(), this.#links);
    const inline = collectLinks(shownBlocks.tokens, links).length > 0 ? new InlineLexer(links) : this.#inline;
    const drawing = this.#drawing(shownBlocks, inline, []);
    const fresh = drawParts(document.createDocumentFragment(), shownBlocks, drawing);
    adoptParts(this.#root, fresh, this.#open);
  }

  #drawing(blocks: LexedBlocks, inline: InlineLexer, sources: string[]): Drawing {
    return {
      images: this.#images,
      inline: (tokens) => {
        const source = (blocks.inline.get(tokens) ?? "").replace("\0", "");
        sources.push(source);
        return inline.lex(source);
      },
    };
  }
}
