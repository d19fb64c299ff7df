/**
 * Tools of code blocks and tables: wrap lines, fold long ones, copy a table, keep its first column in view, enlarge wide
 * ones, scroll by keyboard, colour code; and the icons of alerts. Also draws formulas.
 * Loaded with the first such box or formula, which is complete without it.
 *
 * The tools of a table are in an element with the class `tools` at its top, those of code beside its button to copy.
 * Their attributes begin with `data-ui-`.
 */

import "../../i18n/add-part-texts.ts";
import { copyFrom, copyText } from "../../clipboard/clipboard.ts";
import { COPIED, COPY } from "../../clipboard/copying.ts";
import type { Strings } from "../../i18n/strings.ts";
import { lazy } from "../../loading/lazy.ts";
import { adoptSheets, sheetOf } from "../../styles/adopt.ts";
import styles from "../../styles/code-blocks.css";
import { boxButton, create, svgIcon } from "../../styles/elements.ts";
import { setAttribute } from "../patch-dom.ts";

/** Code with more lines is folded at this line, and a table with more rows at the same height. */
const MAX_LINES = 40;
const MAX_ROWS = 100;

/** A first column that takes no more than this part of the width stays in view. */
const PINNED_PART = 0.4;

/** Icons on a grid of 24 by 24. */
const WRAP = "M4 6h16M4 12h13.5a3 3 0 0 1 0 6H12m2.5-2.5L12 18l2.5 2.5M4 18h4";
const ENLARGE = "M14 4.5h5.5V10m0-5.5l-6 6M10 19.5H4.5V14m0 5.5l6-6";

/** By the class of an alert. */
const ALERT_ICONS = {
  note: "M12 11v5m0-8.2v.1M12 3.5a8.5 8.5 0 1 1 0 17a8.5 8.5 0 0 1 0-17z",
  tip: "M9.5 17.5h5m-4 3h3M12 3.5a6 6 0 0 0-3.7 10.7c.8.7 1.2 1.5 1.2 2.3v1h5v-1c0-.8.4-1.6 1.2-2.3A6 6 0 0 0 12 3.5z",
  important:
    "M5.5 4h13A1.5 1.5 0 0 1 20 5.5v10a1.5 1.5 0 0 1-1.5 1.5H13l-4 3.5V17H5.5A1.5 1.5 0 0 1 4 15.5v-10A1.5 1.5 0 0 1 5.5 4zM12 7.5v3.5m0 2.6v.1",
  warning: "M12 4l8.8 15.5H3.2zM12 10v4m0 2.6v.1",
  caution: "M8.5 3.5h7l5 5v7l-5 5h-7l-5-5v-7zM12 8v5m0 2.9v.1",
};

/** Interval at which the lines of growing code are counted again, in milliseconds. */
const COUNT_AGAIN = 250;

const BOXES = ".code, .table, .alert";

/** The boxes, and drawn formulas. */
const SCROLLERS = `${BOXES}, .math`;

const mathematics = lazy(() => import("../mathematics.ts"), "drawFormulas");

const sheet = sheetOf(styles);

/** For boxes that have their tools: counts their lines or rows again. */
const countAgain = new WeakMap<Element, (isSettled: boolean) => void>();

/** For boxes that have their tools: returns their accessible name, used if they scroll. */
const names = new WeakMap<Element, () => string>();

/** The buttons of a box that are shown only while its content is too wide. */
const wideButtons = new WeakMap<Element, readonly HTMLButtonElement[]>();

/**
 * Adds missing tools to the boxes in a node, itself included, and colours to settled code. To be called again when they
 * have grown.
 */
export function addTools(node: Element, isSettled: boolean, strings: Strings): void {
  if (node.querySelector(".tex")) void addFormulas(node, strings);
  // A growing box is checked again, but not one above it, and not a block that contains one.
  const isKnown = countAgain.has(node) && node.nextElementSibling !== null;
  if (!isSettled && (!node.matches(BOXES) || isKnown)) return;
  adoptSheets(node, [sheet]);
  for (const box of [node, ...node.querySelectorAll(BOXES)] as HTMLElement[]) {
    if (!countAgain.has(box)) box.closest("details")?.addEventListener("toggle", () => lookAgain(box));
    if (!countAgain.has(box) && box.matches(".code")) addCodeTools(box, strings);
    if (!countAgain.has(box) && box.matches(".table")) addTableTools(box, strings);
    if (box.matches(".alert") && !box.querySelector(":scope > .alert-title > .icon")) addAlertIcon(box);
    countAgain.get(box)?.(isSettled);
  }
  lookAgain(node);
  if (isSettled) void colourCode(node);
}

async function addFormulas(node: Element, strings: Strings): Promise<void> {
  const module = await mathematics.loadEventually();
  const drawn = (await module?.drawFormulas(node)) ?? [];
  for (const box of drawn) names.set(box, () => strings.formula);
  if (drawn.length > 0) lookAgain(node);
}

function addAlertIcon(box: HTMLElement): void {
  const kind = box.className.replace("alert alert-", "") as keyof typeof ALERT_ICONS;
  box.firstElementChild?.prepend(svgIcon(ALERT_ICONS[kind]));
}

function addCodeTools(box: HTMLElement, strings: Strings): void {
  const header = box.querySelector(".code-header") as HTMLElement;
  const pre = box.querySelector("pre") as HTMLElement;
  const code = box.querySelector("code") as HTMLElement;
  const wrap = boxButton("wrap", strings.wrapLines, WRAP);
  wrap.setAttribute("aria-pressed", "false");
  const enlarge = enlargeButton(strings);
  header.querySelector(".copy")?.before(wrap, enlarge);
  addWideButtons(box, [wrap, enlarge]);
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
  const tools = create("div", "tools");
  const enlarge = enlargeButton(strings);
  const copy = boxButton("copy", `${strings.copy}: ${strings.table}`, COPY, COPIED);
  const forms = create("div", "forms");
  forms.popover = "auto";
  // Otherwise the direction of the menu's words would become that of the table.
  forms.dir = "auto";
  copy.popoverTargetElement = forms;
  for (const [label, textOf] of [
    [strings.copyAsMarkdown, tableAsMarkdown],
    [strings.copyAsCsv, tableAsCsv],
  ] as const) {
    addButton(forms, "small-button", label).addEventListener("click", () => {
      forms.hidePopover();
      void copyFrom(copy, copyText(textOf(table), copy), strings);
    });
  }
  forms.addEventListener("toggle", () => placeBelow(copy, forms));
  // The focus would be lost with the closed menu.
  forms.addEventListener("beforetoggle", () => {
    if (forms.matches(":focus-within")) copy.focus();
  });
  // Escape closes the menu, and must not stop the answer.
  tools.addEventListener("keydown", (event) => {
    if (forms.matches(":popover-open")) event.stopPropagation();
  });
  tools.append(enlarge, copy, forms);
  box.prepend(tools);
  addWideButtons(box, [enlarge]);
  foldLong(box, box, {
    count: () => table.rows.length - 1,
    most: MAX_ROWS,
    showAll: strings.showAllRows,
    showFewer: strings.showFewerRows,
  });
  names.set(box, () => strings.table);
}

/** Places a menu below its button, aligned with the button's end and inside of the window. */
function placeBelow(button: HTMLElement, opened: HTMLElement): void {
  const { left, right, bottom } = button.getBoundingClientRect();
  const start = button.matches(":dir(rtl)") ? left : right - opened.offsetWidth;
  const top = Math.min(bottom, innerHeight - opened.offsetHeight);
  Object.assign(opened.style, { top: `${top}px`, left: `${start}px` });
}

function addButton(parent: Element, className: string, text = ""): HTMLButtonElement {
  const button = create("button", className);
  button.type = "button";
  button.textContent = text;
  parent.append(button);
  return button;
}

/** Has no listener of its own: the chat handles the click. */
function enlargeButton(strings: Strings): HTMLButtonElement {
  const button = boxButton("enlarge", strings.enlarge, ENLARGE);
  button.setAttribute("aria-haspopup", "dialog");
  return button;
}

function addWideButtons(box: Element, buttons: readonly HTMLButtonElement[]): void {
  for (const button of buttons) button.hidden = true;
  wideButtons.set(box, buttons);
}

interface Length {
  readonly count: () => number;
  /** A box with more is folded. */
  readonly most: number;
  readonly showAll: (count: number) => string;
  readonly showFewer: string;
}

/**
 * Folds a box as soon as it has too many lines or rows, even while it grows, so that nothing jumps later. `clipped`
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

/** Returns a function that updates the number of lines. */
function fold(box: HTMLElement, clipped: HTMLElement, { count, showAll, showFewer }: Length): () => void {
  const button = addButton(box, "unfold");
  const isClosed = () => box.getAttribute("data-ui-fold") === "closed";
  const label = () => {
    button.textContent = isClosed() ? showAll(count()) : showFewer;
    button.setAttribute("aria-expanded", String(!isClosed()));
  };
  const set = (state: "open" | "closed") => {
    box.setAttribute("data-ui-fold", state);
    label();
    // Tells the transcript, which follows its end, that the reader is here.
    box.dispatchEvent(new Event("toggle", { bubbles: true }));
  };
  box.setAttribute("data-ui-fold", "closed");
  label();
  button.addEventListener("click", () => {
    const opens = isClosed();
    set(opens ? "open" : "closed");
    // The button is now further up, and has to stay in view.
    if (!opens) button.scrollIntoView({ block: "nearest" });
  });
  // Only a search in the page, a selection or a screen reader can scroll to the folded part.
  clipped.addEventListener("scroll", () => {
    const { scrollTop } = clipped;
    if (scrollTop === 0) return;
    set("open");
    // The box no longer scrolls; the text that was found has to stay in view.
    box.closest(".scroller")?.scrollBy(0, scrollTop);
  });
  return label;
}

/** The parents of blocks with boxes, with the width at which these were last checked. */
const widths = new WeakMap<Element, number>();

/**
 * Checks boxes when they are drawn, and when the width of their blocks' parent changes. Boxes are not observed
 * themselves: browsers measure every observed element in each frame.
 */
const sizes = new ResizeObserver((entries) => {
  // On paper nothing scrolls.
  if (matchMedia("print").matches) return;
  const boxes = entries.flatMap(({ target, contentRect }) => {
    if (widths.get(target) === contentRect.width) return [];
    widths.set(target, contentRect.width);
    return [...target.querySelectorAll<HTMLElement>(SCROLLERS)].filter((box) => parentOf(box) === target);
  });
  // All reads come before the first write: otherwise the page would be laid out for each box.
  const wide = boxes.filter(overflows);
  const pinned = wide.filter(hasNarrowFirstColumn);
  const parts = new Map(wide.map((box) => [box, letterPart(box)]));
  for (const box of boxes) {
    box.style.setProperty("--_letter-part", parts.get(box) ?? null);
    nameIfScrollable(box, wide.includes(box) || scrollerOf(box).matches(":focus"));
    box.toggleAttribute("data-ui-pinned", pinned.includes(box));
    for (const button of wideButtons.get(box) ?? []) {
      if (!button.matches(":focus")) button.hidden = !wide.includes(box) && !box.hasAttribute("data-ui-wrap");
    }
  }
});

/** Has the boxes beside a node checked again: a new observation of an element reports it. */
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
  const { scrollWidth, clientWidth, lastElementChild: math } = scrollerOf(box);
  // Accents and bars may protrude from a formula that has enough room.
  if (math?.localName === "math") return math.getBoundingClientRect().width > clientWidth + 1;
  return scrollWidth > clientWidth;
}

/** The ratio of a formula's font size to its width, by which it is printed as wide as the paper. */
function letterPart(box: HTMLElement): string | undefined {
  const math = box.matches(".math") && box.lastElementChild;
  return math
    ? `${Number.parseFloat(getComputedStyle(math).fontSize) / math.getBoundingClientRect().width}`
    : undefined;
}

function hasNarrowFirstColumn(box: HTMLElement): boolean {
  const first = box.querySelector("th");
  return !!first && first.offsetWidth <= box.clientWidth * PINNED_PART;
}

/**
 * Makes a box that scrolls sideways focusable, with a name, while there is something to scroll or the focus is in it.
 * Other boxes are no tab stops.
 */
function nameIfScrollable(box: HTMLElement, isScrollable: boolean): void {
  const label = names.get(box)?.() ?? "";
  for (const [name, value] of Object.entries({ tabindex: "0", role: "group", "aria-label": label })) {
    setAttribute(scrollerOf(box), name, isScrollable ? value : undefined);
  }
}

/** The element that scrolls: the code of a block, whose header stays, or a table's box. */
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

/** A drawn table as GitHub's Markdown, with its alignment, without marks inside of cells. */
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
  const copy = table.cloneNode(true) as HTMLTableElement;
  // A formula also contains its TeX, which stays.
  for (const drawn of copy.querySelectorAll("math")) drawn.remove();
  return [...copy.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
}

/** Includes the grammars. Loaded for the first code in a known language. */
const highlighter = lazy(() => import("./highlight.ts"), "highlight");

/** The known grammars, each with the other names that authors write after a fence. */
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
  // Browsers without the Custom Highlight API show code in one colour.
  if (typeof Highlight === "undefined") return;
  for (const code of node.querySelectorAll<HTMLElement>("pre > code[class]")) {
    const grammar = grammarOf(code);
    if (grammar === undefined) continue;
    const module = await highlighter.loadEventually();
    if (code.isConnected) module?.highlight(code, grammar);
  }
}
