/**
 * Source marks: each follows the text that its source supports, never inside code, a link or a Markdown delimiter.
 * `read` converts a position in the answer to one in a block's text; `withMarks` adds a token there, which is drawn.
 */

import type { Links, MarkedToken, Token, Tokens } from "marked";
import type { Strings } from "../i18n/strings.ts";
import { create } from "../styles/elements.ts";
import type { RuleToken } from "./inline-rules.ts";
import type { MarkdownText } from "./markdown-text.ts";
import type { Delimiter } from "./renderers.ts";

/** The chat's Markdown functions, without importing them: see `MarkdownText.tools`. */
export const tools = (): typeof MarkdownText.tools =>
  (customElements.get("agent-chat-markdown") as typeof MarkdownText).tools;

/** A source at a place in a text, in UTF-16 units. */
export interface Mark {
  readonly at: number;
  readonly number: number;
  /** Accessible name. */
  readonly label: string;
  /** Identifies the drawn mark, as its attribute `data-mark`. */
  readonly id: string;
}

/** A mark in the inline text of a block. */
interface Placed extends Mark {
  /** Position in that text. */
  place: number;
}

/** A block with inline text, or one without, such as code, which is followed by its marks. */
interface Leaf {
  readonly inline: string | undefined;
  /** Where its lines begin in the answer (`from`) and in its own text (`offset`), and how long they are. */
  readonly lines: { readonly from: number; readonly offset: number; readonly length: number }[];
  readonly marks: Placed[];
  /** The pieces of the inline text, with tokens of marks. Empty without marks. */
  pieces: readonly Token[][];
}

/** The elements of leaves, except for those that match `OWN`. */
const LEAVES = "p:not(.alert-title), h1, h2, h3, h4, h5, h6, td, th, summary, .code, .rendered";
const OWN = ".rendered *, .code *, .footnotes *, .source-marks";

interface Nested {
  readonly type?: string;
  readonly raw?: string;
  readonly tokens?: Token[];
  readonly summary?: Token[];
  readonly header?: Tokens.TableCell[];
  readonly rows?: Tokens.TableCell[][];
  readonly items?: Token[];
}

/** A token's leaves, in the order in which they are drawn. */
function* leavesOf(token: Nested): Generator<Pick<Nested, "tokens" | "raw">> {
  const { type = "cell", raw = "", tokens = [], summary, header, rows = [], items } = token;
  if (/^(?:space|def|footnote|checkbox|hr)$/.test(type)) return;
  if (summary) yield { tokens: summary };
  if (header) for (const cell of [...header, ...rows.flat()]) yield* leavesOf({ tokens: cell.tokens });
  else if (/^(?:list|list_item|blockquote|details)$/.test(type))
    for (const inner of items ?? tokens) yield* leavesOf(inner as Nested);
  else yield /^(?:paragraph|text|heading|cell)$/.test(type) ? { tokens } : { raw };
}

/** The leaves of an answer with their marks. A mark belongs to the last line that begins before it. */
function read(answer: string, all: readonly Mark[], delimiters: readonly Delimiter[]) {
  const source = answer.replace(/\r\n?/g, "\n");
  const { tokens, inline } = tools().lexBlocks(source, delimiters);
  const links: Links = Object.create(null);
  tools().collectLinks(tokens, links);
  const leaves: Leaf[] = [];
  let start = 0;
  for (const token of tokens) {
    let cursor = 0;
    for (const { tokens, raw = "" } of leavesOf(token as Nested)) {
      const leaf: Leaf = { inline: tokens && (inline.get(tokens) ?? ""), lines: [], marks: [], pieces: [] };
      let offset = 0;
      for (const line of (leaf.inline ?? raw).split("\n")) {
        const words = line.trim();
        const { length } = words;
        const found = words === "" ? -1 : token.raw.indexOf(words, cursor);
        if (found >= 0) {
          leaf.lines.push({ from: start + found, offset: offset + line.indexOf(words), length });
          cursor = found + length;
        }
        offset += line.length + 1;
      }
      leaves.push(leaf);
    }
    start += token.raw.length;
  }
  for (const mark of all) {
    const at = mark.at - (answer.slice(0, mark.at).match(/\r\n/g)?.length ?? 0);
    const leaf = leaves.findLast(({ lines: [first] }) => first && first.from < at);
    const line = leaf?.lines.findLast(({ from }) => from < at);
    if (!leaf || !line || mark.at > answer.length) continue;
    // After code, one mark for each source is enough.
    if (leaf.inline === undefined && leaf.marks.some(({ number }) => number === mark.number)) continue;
    leaf.marks.push({ ...mark, place: line.offset + Math.min(at - line.from, line.length) });
  }
  for (const leaf of leaves) {
    const { inline, marks } = leaf;
    marks.sort((a, b) => a.place - b.place);
    if (inline === undefined || marks.length === 0) continue;
    let offset = 0;
    leaf.pieces = tools()
      .inlinePieces(inline)
      .flat()
      .map((piece) => {
        offset += piece.length;
        return withMarks(tools().lexInline(piece, links), marks, offset - piece.length);
      });
  }
  return { source, leaves };
}

/** The tokens of a text that begins at `start`, with tokens for its marks, which move to where a mark is allowed. */
function withMarks(tokens: readonly Token[], marks: readonly Placed[], start: number): MarkedToken[] {
  let offset = start;
  return tokens.flatMap((token): Token[] => {
    const from = offset;
    const { raw, type, text = "", tokens: inner = [] } = token as Tokens.Strong | Tokens.Generic;
    offset += raw.length;
    const own = marks.filter(({ place }) => place > from && place <= offset);
    if (own.length === 0) return [token];
    if (type === "text" && text === raw) return split(token as Tokens.Text, own, from);
    const side = /^(?:strong|em|del)$/.test(type) ? (raw.length - text.length) / 2 : raw.length;
    const within = own.filter(({ place }) => place > from + side && place < offset - side);
    const behind = own.filter((mark) => !within.includes(mark));
    for (const mark of behind) mark.place = offset;
    const whole = within.length > 0 ? { ...token, tokens: withMarks(inner, within, from + side) } : token;
    return [whole, ...behind.map(ruleOf)];
  }) as MarkedToken[];
}

/** A plain text, split where its marks are allowed. */
function split(token: Tokens.Text, marks: readonly Placed[], start: number): Token[] {
  let from = 0;
  const upTo = (end: number): Token[] => {
    const text = token.raw.slice(from, end);
    from = end;
    return text === "" ? [] : [{ ...token, raw: text, text }];
  };
  const cut = marks.flatMap((mark) => {
    const end = fittingPlace(token.raw, mark.place - start);
    mark.place = start + end;
    return [...upTo(end), ruleOf(mark)];
  });
  return [...cut, ...upTo(token.raw.length)];
}

/** The nearest allowed place: before white space, and after a whole grapheme or character reference. */
function fittingPlace(text: string, place: number): number {
  const end = text.slice(0, place).trimEnd().length;
  const entities = [...text.matchAll(/&#?\w+;/g)].map(({ index, 0: segment }) => ({ index, segment }));
  const character = new Intl.Segmenter().segment(text).containing(end) ?? { index: end, segment: "" };
  const { index, segment } = entities.find((it) => it.index < end && end < it.index + it.segment.length) ?? character;
  return index < end ? index + segment.length : end;
}

function ruleOf(mark: Mark): RuleToken {
  const rule = { open: "", pattern: /(?!)/y, unfinished: /(?!)/y, draw: () => drawMark(mark) };
  return { type: "rule", raw: "", text: "", rule };
}

function drawMark({ number, label, id }: Mark): HTMLElement {
  const mark = create("button", "source-mark");
  mark.setAttribute("type", "button");
  mark.setAttribute("part", "source-mark");
  mark.setAttribute("aria-haspopup", "dialog");
  mark.setAttribute("aria-label", label);
  mark.dataset.mark = id;
  mark.textContent = String(number);
  // The style of `source-at` prevents a line break before the mark.
  const box = create("span", "source-at");
  box.append(mark);
  return box;
}

/** Inserts marks into a drawn text, whose nodes stay. From then on, growing text is drawn with its marks. */
export class SourceMarks {
  #drawn = "";
  #count = 0;

  /** `isEnd`: the text is complete, so all places are final. */
  draw(
    root: HTMLElement,
    text: string,
    isEnd: boolean,
    all: readonly Mark[],
    strings: Strings,
    delimiters: readonly Delimiter[],
  ): void {
    const key = JSON.stringify([isEnd, all]);
    if (key === this.#drawn && root.getElementsByClassName("source-mark").length === this.#count) return;
    this.#drawn = key;
    const { leaves } = read(text, all, delimiters);
    const elements = [...root.querySelectorAll<HTMLElement>(LEAVES)].filter((it) => !it.matches(OWN));
    const focused = (root.getRootNode() as Partial<ShadowRoot>).activeElement?.getAttribute("data-mark");
    // A mark in text that is not drawn yet comes with the next drawing.
    this.#count = all.filter(({ at }) => at > text.length).length;
    leaves.forEach((leaf, index) => {
      this.#count += leaf.marks.length;
      const element = elements[index];
      if (element) drawMarks(element, leaf, strings);
    });
    if (focused) root.querySelector<HTMLElement>(`[data-mark="${focused}"]`)?.focus({ preventScroll: true });
  }
}

function drawMarks(element: HTMLElement, { inline, marks, pieces }: Leaf, strings: Strings): void {
  const { appendInline, lexers, lexInline } = tools();
  if (inline === undefined) {
    element.querySelector(":scope > .source-marks")?.remove();
    if (marks.length > 0) element.appendChild(create("span", "source-marks")).append(...marks.map(drawMark));
    return;
  }
  if (marks.length === 0 && !lexers.has(element)) return;
  const copy = document.createDocumentFragment();
  const context = { strings, images: new Map(), mayLoadImages: undefined };
  for (const tokens of pieces) appendInline(copy, tokens, context);
  insertMarks(copy, element);
  const beginning = inline.slice(0, 64);
  lexers.set(element, (piece, links) => {
    const tokens = lexInline(piece, links);
    const copies = marks.map((it) => ({ ...it }));
    return piece.startsWith(beginning) ? withMarks(tokens, copies, 0) : tokens;
  });
}

/** Moves the marks of `copy` to the same places in `live`. Except for marks, both have the same nodes. */
function insertMarks(copy: ParentNode & Node, live: Element): void {
  for (const old of live.querySelectorAll(".source-at")) old.remove();
  live.normalize();
  let next: ChildNode | null = live.firstChild;
  // The checkbox of a task.
  if (next instanceof HTMLInputElement) next = next.nextSibling;
  let done = 0;
  for (const node of [...copy.childNodes]) {
    if (node instanceof Element && node.matches(".source-at")) {
      if (next instanceof Text && done > 0) next = done < next.length ? next.splitText(done) : next.nextSibling;
      done = 0;
      live.insertBefore(node, next);
    } else if (node instanceof Text) done += node.length;
    else {
      if (next instanceof Text) next = next.nextSibling;
      done = 0;
      if (next instanceof Element && node instanceof Element && node.querySelector(".source-at"))
        insertMarks(node, next);
      next = next?.nextSibling ?? null;
    }
  }
}

/** The Markdown of an answer with footnote references in place of its source marks. */
export function withFootnotes(answer: string, marks: readonly Mark[], label: (number: number) => string): string {
  const { source, leaves } = read(answer, marks, []);
  const notes = leaves.flatMap(({ inline, lines, marks }) =>
    marks.map(({ number, place }) => {
      const isBehind = inline === undefined;
      const line = lines.findLast(({ offset }) => isBehind || offset < place) ?? lines[0];
      const { from = 0, offset = 0, length = 0 } = line ?? {};
      if (isBehind) return { end: from + length, note: `\n\n${label(number)}\n` };
      return { end: from + place - offset, note: label(number) };
    }),
  );
  return notes
    .reverse()
    .sort((a, b) => b.end - a.end)
    .reduce((all, { end, note }) => all.slice(0, end) + note + all.slice(end), source);
}
