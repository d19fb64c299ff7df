/**
 * Tools of code blocks and tables: wrap lines, fold what is long, copy a table, keep its first column in view, enlarge
 * what is wide, scroll by keyboard, colours of code.
 * Loaded with the first such box; without them it is whole.
 *
 * Tools stand last in the element that they belong to, with the class `tools`, and their attributes begin with
 * `data-ui-`.
 */

import "../../i18n/add-part-texts.ts";
import { copyFrom, copyText } from "../../clipboard/clipboard.ts";
import { COPIED, COPY } from "../../clipboard/copying.ts";
import type { Strings } from "../../i18n/strings.ts";
import { lazy } from "../../loading/lazy.ts";
import { adoptSheets, sheetOf } from "../../styles/adopt.ts";
import styles from "../../styles/code-blocks.css";
import { create, svgIcon } from "../../styles/elements.ts";
import { setAttribute } from "../patch-dom.ts";

/** Longer code is folded at this line, a longer table at the same height. */
const MAX_LINES = 40;
const MAX_ROWS = 100;

/** A first column that takes no more than this part of the width stays in view. */
const PINNED_PART = 0.4;

/** Icons on a grid of 24 by 24. */
const WRAP = "M4 6h16M4 12h13.5a3 3 0 0 1 0 6H12m2.5-2.5L12 18l2.5 2.5M4 18h4";
const GRID =
  "M5.5 5h13A1.5 1.5 0 0 1 20 6.5v11a1.5 1.5 0 0 1-1.5 1.5h-13A1.5 1.5 0 0 1 4 17.5v-11A1.5 1.5 0 0 1 5.5 5zM4 10h16M4 14.5h16M10 5v14";
const ENLARGE = "M14 4.5h5.5V10m0-5.5l-6 6M10 19.5H4.5V14m0 5.5l6-6";

/** How often the lines of code that still grows are counted again, in milliseconds. */
const COUNT_AGAIN = 250;

const BOXES = ".code, .table";

const sheet = sheetOf(styles);

/** Boxes that have their tools, with what counts their lines or rows again. */
const countAgain = new WeakMap<Element, (isSettled: boolean) => void>();

/** Boxes that have their tools, with what they are called where they scroll. */
const names = new WeakMap<Element, () => string>();

/** The buttons of boxes that are there only while something is too wide. */
const wideButtons = new WeakMap<Element, readonly HTMLButtonElement[]>();

/**
 * Adds what is missing to the boxes in a node, itself included, and colours to code that does not change any more. To
 * be called again when they have grown.
 */
export function addTools(node: Element, isSettled: boolean, strings: Strings): void {
  adoptSheets(node, [sheet]);
  for (const box of [node, ...node.querySelectorAll(BOXES)] as HTMLElement[]) {
    if (!countAgain.has(box)) box.closest("details")?.addEventListener("toggle", () => lookAgain(box));
    if (!countAgain.has(box) && box.matches(".code")) addCodeTools(box, strings);
    if (!countAgain.has(box) && box.matches(".table")) addTableTools(box, strings);
    countAgain.get(box)?.(isSettled);
  }
  lookAgain(node);
  if (isSettled) void colourCode(node);
}

function addCodeTools(box: HTMLElement, strings: Strings): void {
  const header = box.querySelector(".code-header") as HTMLElement;
  const pre = box.querySelector("pre") as HTMLElement;
  const code = box.querySelector("code") as HTMLElement;
  const tools = addToolsTo(header);
  const wrap = addIconButton(tools, WRAP, strings.wrapLines);
  wrap.setAttribute("aria-pressed", "false");
  wrap.hidden = true;
  wideButtons.set(box, [wrap, addEnlarge(tools, strings)]);
  wrap.addEventListener("click", () => {
    wrap.setAttribute("aria-pressed", String(box.toggleAttribute("data-ui-wrap")));
    lookAgain(box);
  });
  foldLong(box, pre, {
    count: () => code.textContent.split("\n").length,
    most: MAX_LINES,
    showAll: strings.showAllLines,
    showFewer: strings.showFewerLines,
  });
  names.set(box, () => header.querySelector(".code-language")?.textContent ?? "");
}

function addTableTools(box: HTMLElement, strings: Strings): void {
  const table = box.querySelector("table") as HTMLTableElement;
  const tools = addToolsTo(box);
  wideButtons.set(box, [addEnlarge(tools, strings)]);
  for (const [icon, word, label, textOf] of [
    [COPY, "Markdown", strings.copyAsMarkdown, tableAsMarkdown],
    [GRID, "CSV", strings.copyAsCsv, tableAsCsv],
  ] as const) {
    const button = addIconButton(tools, icon, label, word);
    button.firstElementChild?.after(svgIcon(COPIED));
    button.addEventListener("click", () => void copyFrom(button, copyText(textOf(table), button), strings));
  }
  foldLong(box, box, {
    count: () => table.rows.length - 1,
    most: MAX_ROWS,
    showAll: strings.showAllRows,
    showFewer: strings.showFewerRows,
  });
  names.set(box, () => strings.table);
}

function addToolsTo(parent: Element): HTMLElement {
  const tools = create("div", "tools");
  parent.append(tools);
  return tools;
}

function addButton(tools: Element, text: string): HTMLButtonElement {
  const button = create("button");
  button.type = "button";
  button.textContent = text;
  tools.append(button);
  return button;
}

/** A button with an icon, and on touch a word beside it: there is no pointer that could ask what the icon means. */
function addIconButton(tools: Element, icon: string, label: string, word = label): HTMLButtonElement {
  const button = addButton(tools, "");
  const shown = create("span");
  shown.textContent = word;
  button.append(svgIcon(icon), shown);
  button.title = label;
  button.setAttribute("aria-label", label);
  return button;
}

/** What it does is no matter of Markdown: the chat hears the click. */
function addEnlarge(tools: Element, strings: Strings): HTMLButtonElement {
  const button = addIconButton(tools, ENLARGE, strings.enlarge);
  button.className = "enlarge";
  button.setAttribute("aria-haspopup", "dialog");
  button.hidden = true;
  return button;
}

interface Length {
  readonly count: () => number;
  /** A box with more is folded. */
  readonly most: number;
  readonly showAll: (count: number) => string;
  readonly showFewer: string;
}

/**
 * Folds a box as soon as it has too many lines or rows: while it still grows, so that nothing jumps later. `clipped`
 * shows the beginning of its content.
 */
function foldLong(box: HTMLElement, clipped: HTMLElement, length: Length): void {
  let update: (() => void) | undefined;
  let isWaiting = false;
  const updateNow = () => {
    isWaiting = false;
    update?.();
  };
  countAgain.set(box, (isSettled) => {
    if (!update) {
      if (length.count() > length.most) update = fold(box, clipped, length);
    } else if (isSettled) update();
    else if (!isWaiting) {
      isWaiting = true;
      setTimeout(updateNow, COUNT_AGAIN);
    }
  });
}

/** Returns how to write the number of lines again. */
function fold(box: HTMLElement, clipped: HTMLElement, { count, showAll, showFewer }: Length): () => void {
  const tools = box.querySelector(":scope > .tools") ?? addToolsTo(box);
  const button = addButton(tools, "");
  tools.prepend(button);
  const isClosed = () => box.getAttribute("data-ui-fold") === "closed";
  const label = () => {
    button.textContent = isClosed() ? showAll(count()) : showFewer;
    button.setAttribute("aria-expanded", String(!isClosed()));
  };
  const set = (state: "open" | "closed") => {
    box.setAttribute("data-ui-fold", state);
    label();
    // The transcript, which follows its end, learns from this that the reader is here.
    box.dispatchEvent(new Event("toggle", { bubbles: true }));
  };
  box.setAttribute("data-ui-fold", "closed");
  label();
  button.addEventListener("click", () => {
    const opens = isClosed();
    set(opens ? "open" : "closed");
    // The button is far up again, and has to stay where the reader looks.
    if (!opens) button.scrollIntoView({ block: "nearest" });
  });
  // The part that is folded away can be scrolled to only by finding it in the page, by a selection or by a screen
  // reader.
  clipped.addEventListener("scroll", () => {
    const { scrollTop } = clipped;
    if (scrollTop === 0) return;
    set("open");
    // The box does not scroll any more, and the text that was found stays in view.
    box.closest(".scroller")?.scrollBy(0, scrollTop);
  });
  return label;
}

/** The parents of blocks with boxes, with the width for which those were looked at. */
const widths = new WeakMap<Element, number>();

/**
 * Looks at boxes when they are drawn, and with each other width of their blocks' parent. Not at each box by itself: a
 * browser asks for the size of everything that is observed at every frame.
 */
const sizes = new ResizeObserver((entries) => {
  const boxes = entries.flatMap(({ target, contentRect }) => {
    if (widths.get(target) === contentRect.width) return [];
    widths.set(target, contentRect.width);
    return [...target.querySelectorAll<HTMLElement>(BOXES)].filter((box) => parentOf(box) === target);
  });
  // All are read before any is written: else the page is laid out for each.
  const wide = boxes.filter(overflows);
  const pinned = wide.filter(hasNarrowFirstColumn);
  for (const box of boxes) {
    nameIfScrollable(box, wide.includes(box) || scrollerOf(box).matches(":focus"));
    box.toggleAttribute("data-ui-pinned", pinned.includes(box));
    for (const button of wideButtons.get(box) ?? []) {
      if (!button.matches(":focus")) button.hidden = !wide.includes(box) && !box.hasAttribute("data-ui-wrap");
    }
  }
});

/** Has the boxes looked at that stand beside a node. Observing an element again reports it again. */
function lookAgain(node: Element): void {
  const parent = parentOf(node);
  if (!parent) return;
  widths.delete(parent);
  sizes.unobserve(parent);
  sizes.observe(parent);
}

function parentOf(node: Element): Element | null {
  return node.closest(".section, .markdown");
}

function overflows(box: HTMLElement): boolean {
  const { scrollWidth, clientWidth } = scrollerOf(box);
  return scrollWidth > clientWidth;
}

function hasNarrowFirstColumn(box: HTMLElement): boolean {
  const first = box.querySelector("th");
  return !!first && first.offsetWidth <= box.clientWidth * PINNED_PART;
}

/**
 * A box that scrolls sideways can be scrolled by keyboard, and has a name there, as long as there is something to
 * scroll, or the reader is in it. One that shows all it has is no stop on the way through an answer.
 */
function nameIfScrollable(box: HTMLElement, isScrollable: boolean): void {
  const label = names.get(box)?.() ?? "";
  for (const [name, value] of Object.entries({ tabindex: "0", role: "group", "aria-label": label })) {
    setAttribute(scrollerOf(box), name, isScrollable ? value : undefined);
  }
}

/** The code of a block, whose header stays; a table's box. */
function scrollerOf(box: HTMLElement): HTMLElement {
  return box.querySelector<HTMLElement>(":scope > pre") ?? box;
}

/** A drawn table as CSV (RFC 4180). A cell that a spreadsheet would run as a formula is marked as text. */
function tableAsCsv(table: HTMLTableElement): string {
  return cellsOf(table)
    .map((row) => row.map(csvCell).join(","))
    .join("\r\n");
}

function csvCell(text: string): string {
  const safe = /^[=@\t]|^[+-](?![\d.,\s]*%?$)/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** A drawn table as Markdown of GitHub's kind, with its alignment, without marks inside of cells. */
function tableAsMarkdown(table: HTMLTableElement): string {
  const [head = [], ...body] = cellsOf(table);
  const rule = [...(table.tHead?.rows[0]?.cells ?? [])].map((cell) => {
    const align = cell.className.replace("align-", "");
    return `${/left|center/.test(align) ? ":" : ""}---${/right|center/.test(align) ? ":" : ""}`;
  });
  const cells = (row: readonly string[]) => row.map((text) => text.replace(/[\\|]/g, "\\$&").replace(/\s*\n\s*/g, " "));
  return [cells(head), rule, ...body.map(cells)].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

function cellsOf(table: HTMLTableElement): string[][] {
  return [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
}

/** With its grammars, loaded for the first code in a language that there is. */
const highlighter = lazy(() => import("./highlight.ts"), "highlight");

/** The grammars that there are, each with the other names that authors write after a fence. */
const LANGUAGES =
  "bash:sh,shell,zsh,console c:h,cpp,c++,cc,hpp css:scss,less diff:patch docker:dockerfile go:golang html:htm,vue,svelte " +
  "ini:conf,properties java js:javascript,jsx,mjs,cjs json:jsonc,json5,jsonl lua py:python,python3 rs:rust " +
  "sql:mysql,postgresql,sqlite toml ts:typescript,tsx,mts,cts xml:svg yaml:yml";

const grammars = new Map(
  LANGUAGES.split(" ").flatMap((entry) => {
    const names = entry.split(/[:,]/);
    return names.map((name) => [name, names[0]] as const);
  }),
);

/** The grammar of an element with code, by its class; undefined for unknown languages: none is guessed. */
export function grammarOf(code: Element): string | undefined {
  return grammars.get(code.className.replace("language-", ""));
}

/** Colours the code in a node. */
export async function colourCode(node: Element): Promise<void> {
  // Browsers that paint no ranges show code in one colour.
  if (typeof Highlight === "undefined") return;
  for (const code of node.querySelectorAll<HTMLElement>("pre > code[class]")) {
    const grammar = grammarOf(code);
    if (grammar === undefined) continue;
    const module = await highlighter.loadEventually();
    if (code.isConnected) module?.highlight(code, grammar);
  }
}
