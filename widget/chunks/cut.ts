/**
 * Settles the finished parts of a block that goes on. A chunk: it is loaded for an answer with a long block. Without it such a
 * block is drawn as well, but each piece takes longer than the one before.
 */

import type { Token, Tokens } from "marked";
import type { codeChunks } from "../markdown/draw-block.ts";
import type { inlinePieces } from "../markdown/inline-pieces.ts";
import type { InlineSources, LexedBlocks } from "../markdown/markdown-lexer.ts";
import type { childrenOf, OpenBlocks, Step } from "../markdown/open-block.ts";
import type { settledCount } from "../markdown/settle.ts";

/** What the script has of this and lends. */
export interface CutTools {
  readonly childrenOf: typeof childrenOf;
  readonly codeChunks: typeof codeChunks;
  readonly inlinePieces: typeof inlinePieces;
  readonly settledCount: typeof settledCount;
}

/** Where a source is cut: what is before is final, and the rest is lexed alone from now on. */
export interface Cut {
  /** The whole first, and each block in the one before it. */
  readonly steps: readonly Step[];
  /** What is lexed from now on: the rest, and before it what the lexer needs to read it as it was. */
  readonly rest: string;
}

/** Stands for the final text of a paragraph that goes on. No source has this character. */
const settledText = "\0";

/** A line of a paragraph that begins with final text, and looks like a table's head because of the line under it. */
export const isTableHead = new RegExp(`${settledText}.*\\n[ \\t>]*[|:-][|:\\- \\t]*(?:\\n|$)`);

/** A quote or an item that the cut may go through. */
interface Container {
  readonly depth: number;
  readonly raw: readonly string[];
  readonly text: readonly string[];
  /** The line of the source where it begins, and that line up to its text. */
  readonly line: number;
  readonly margin: string;
}

/**
 * Cuts a source in front of what may still change, however deep that is in lists and quotes. A quote or an item that is
 * cut is read on behind its own marker and an empty heading, which no line can continue: so every line after it is read
 * as it was.
 */
export function cutOf(source: string, blocks: LexedBlocks, open: OpenBlocks, tools: CutTools): Cut | undefined {
  const cutter = new Cutter(source, blocks.inline, tools);
  cutter.descend(blocks, source, 0, open);
  return cutter.cut;
}

class Cutter {
  cut: Cut | undefined;
  readonly #lines: readonly string[];
  readonly #inline: InlineSources;
  readonly #tools: CutTools;
  readonly #steps: Step[] = [];
  readonly #containers: Container[] = [];

  constructor(source: string, inline: InlineSources, tools: CutTools) {
    this.#lines = source.split("\n");
    this.#inline = inline;
    this.#tools = tools;
  }

  /** Cuts a block whose text begins at a line of the source. */
  descend(token: Token, text: string, start: number, open: OpenBlocks): void {
    const known = open[0]?.skip ?? 0;
    const parts = this.#tools.childrenOf(token);
    const count = Math.max(known, this.#tools.settledCount(text, parts));
    const offset = parts.slice(0, count).reduce((length, { raw }) => length + raw.length, 0);
    const line = start + linesIn(text.slice(0, offset));
    const rest = text.slice(offset);
    const child = parts[count];
    const margin = this.#marginOf(line, rest);
    if (child === undefined || margin === undefined || !this.#isFree(line)) return;
    this.#steps.push({ token, count, skip: 0 });
    if (count > known) this.#cutAt(line, [], line);
    const inner = count > known ? [] : open.slice(1);
    if (child.type === "list") this.descend(child, rest, line, inner);
    else if (child.type === "blockquote" || (child.type === "list_item" && !child.task)) {
      this.#enter(child, line, inner);
    } else if (child.type === "table") {
      // Its head is a part as well, with which the rest begins again.
      const rows = child.rows.length;
      if (rows > 1) this.#cutLeaf(child, rows, line, 2, line + 1 + rows, 1);
    } else if (child.type === "code" && child.codeBlockStyle !== "indented") {
      // Its last line may still turn out to be the fence.
      const text = child.text.slice(0, child.text.lastIndexOf("\n"));
      const chunks = this.#tools.codeChunks(text).slice(0, -1);
      this.#cutLeaf(child, chunks.length, line, 1, line + 1 + linesIn(chunks.join("")));
    } else if (child.type === "paragraph" || child.type === "text") {
      this.#cutText(child, line, margin);
    }
  }

  #enter(token: Tokens.Blockquote | Tokens.ListItem, line: number, open: OpenBlocks): void {
    const { raw, text } = token;
    const margin = this.#marginOf(line, text);
    if (margin === undefined) return;
    this.#containers.push({
      depth: this.#steps.length,
      raw: raw.split("\n"),
      text: text.split("\n"),
      line,
      // Behind a marker alone, the text begins after one space.
      margin: /^.*\S/.test(text) ? margin : `${margin.trimEnd()} `,
    });
    this.descend(token, text, line, open);
  }

  #cutLeaf(token: Token, count: number, line: number, head: number, from: number, skip = 0): void {
    if (count < 1 || !this.#isFree(from)) return;
    this.#steps.push({ token, count, skip });
    this.#cutAt(line, this.#lines.slice(line, line + head), from);
  }

  /** Long text is lexed in pieces, of which only the last one grows. */
  #cutText(token: Tokens.Paragraph | Tokens.Text, line: number, margin: string): void {
    const { inlinePieces } = this.#tools;
    const source = this.#inline.get(token.tokens ?? []) ?? "";
    const known = source.startsWith(settledText) ? settledText.length : 0;
    const pieces = inlinePieces(source.slice(known));
    const count = pieces.length - 1;
    const settled = source.slice(0, known) + pieces.slice(0, count).flat().join("");
    const from = line + linesIn(settled);
    const rest = token.raw.slice(settled.length);
    const begin = settledText + rest.trimEnd();
    // What begins like this may still turn out to be a definition or raw HTML.
    if (count < 1 || /^\s*[[<]|\n[ \t]*<.*$/.test(settled) || isTableHead.test(begin)) return;
    const isLine = token.raw.startsWith(settled) && this.#marginOf(from, rest) !== undefined;
    if (!isLine || !this.#isFree(from)) return;
    this.#steps.push({ token, count, skip: 0, begin });
    this.#cutAt(line, [margin + settledText + rest.split("\n", 1)], from + 1);
  }

  /** What stands in a line before a text that begins in it. */
  #marginOf(line: number, text: string): string | undefined {
    const whole = this.#lines[line] ?? "";
    const own = text.split("\n", 1).join();
    return whole.endsWith(own) ? whole.slice(0, whole.length - own.length) : undefined;
  }

  /** May the rest begin at this line? What is in a container by laziness is counted there, so it stays together. */
  #isFree(line: number): boolean {
    return this.#containers.every((container) =>
      container.raw
        .slice(0, line - container.line + 1)
        .every((raw, index) => raw !== container.text[index] || raw.trim() === ""),
    );
  }

  /** Cuts behind the steps so far, where the block begins that goes on: the rest is its head and the lines from one on. */
  #cutAt(line: number, head: readonly string[], from: number): void {
    const begun = this.#containers.filter((container) => container.line < line);
    const cut = begun.filter((container, index) => begun[index + 1]?.line !== container.line);
    this.cut = {
      steps: this.#steps.map((step, depth) => ({
        ...step,
        loose: areLoose(step, this.#steps[depth + 1]?.count ?? 0),
        skip: cut.some((container) => container.depth === depth) ? 1 : step.skip,
      })),
      rest: [...cut.map(({ margin }) => `${margin}#`), ...head, ...this.#lines.slice(from)].join("\n"),
    };
  }
}

function linesIn(text: string): number {
  return text.split("\n").length - 1;
}

/**
 * Do the final items of a list make it loose, or the first `inside` blocks of the next item, which are final, too? A
 * blank line between two items does, and one between two blocks of an item.
 */
function areLoose({ token, count }: Step, inside: number): boolean {
  if (token.type !== "list") return false;
  return (token as Tokens.List).items.slice(0, count + 1).some(({ raw, tokens }, index) => {
    const isFinal = index < count;
    const blocks = isFinal ? tokens : tokens.slice(0, inside);
    const isApart = blocks.some((token) => token.type === "space" && /\n.*\n/.test(token.raw));
    return isApart || (isFinal && /\n[ \t]*\n[ \t]*$/.test(raw));
  });
}
