/**
 * Keeps a long table quick. A chunk: it is loaded with the first such table.
 *
 * A browser sizes the columns by all cells, so with each new one it lays out all rows again. Here
 * the columns are given, and each body of rows is a box of its own that nothing outside of it changes.
 *
 * The columns are those that the table would have without this, at any width: each body is measured when it is full, and
 * the last one when it rests or needs more room.
 */

import { columnWidth, longTableSheet, mostColumns } from "./long-table.styles.ts";
import { BoxObserver } from "./skipped-parts.ts";

/** Bodies that are measured in one frame. */
const atOnce = 4;

/** The last body rests when nothing has come for so long, in milliseconds. */
const pause = 300;

const kinds = ["narrowest", "widest"] as const;

interface Columns {
  /** Their texts' widths in `em`, with as many line breaks as may be and with none. So they hold for another size of text. */
  readonly narrowest: number[];
  readonly widest: number[];
  /** What a cell has besides, and how much an `em` was, in pixels. */
  padding: number;
  em: number;
  /** How many are measured of the table's head and its full bodies. */
  measured: number;
  frame: number;
  timer: ReturnType<typeof setTimeout> | undefined;
}

const known = new WeakMap<HTMLTableElement, Columns>();

const observer = new BoxObserver((table) => look(table as HTMLTableElement));

/** From now on the table's rows are laid out body by body. */
export function keepQuick(table: HTMLTableElement): void {
  if ((table.rows[0]?.cells.length ?? 0) > mostColumns) return;
  const root = table.getRootNode();
  if (root instanceof ShadowRoot && !root.adoptedStyleSheets.includes(longTableSheet)) {
    root.adoptedStyleSheets.push(longTableSheet);
  }
  observer.observe(table);
}

/** The table has another size, so it may have got rows. */
function look(table: HTMLTableElement): void {
  const columns = columnsOf(table);
  clearTimeout(columns.timer);
  columns.timer = setTimeout(fit, pause, table, columns, true);
  const overflows = isTooNarrow(table.lastElementChild);
  if (overflows || columns.measured < table.children.length - 1) fitSoon(table, columns, overflows);
}

function columnsOf(table: HTMLTableElement): Columns {
  const columns = known.get(table);
  const { length } = table.rows[0]?.cells ?? [];
  // Another text's table may have taken its place.
  const isSame = columns?.measured === 0 || columns?.widest.length === length;
  if (columns && isSame && columns.measured < table.children.length) return columns;
  const fresh: Columns = {
    narrowest: [],
    widest: [],
    padding: 0,
    em: 1,
    measured: 0,
    frame: 0,
    timer: undefined,
  };
  known.set(table, fresh);
  return fresh;
}

function cellsOf(group: Element | null): HTMLElement[] {
  return [...(group?.querySelectorAll<HTMLElement>("th, td") ?? [])];
}

function isTooNarrow(body: Element | null): boolean {
  return cellsOf(body).some((cell) => cell.scrollWidth > cell.clientWidth);
}

/** Changes the layout before the next frame and not after this one's, where it would be reported as a loop. */
function fitSoon(table: HTMLTableElement, columns: Columns, withLast: boolean): void {
  cancelAnimationFrame(columns.frame);
  columns.frame = requestAnimationFrame(() => fit(table, columns, withLast));
}

/** Gives the table its columns, after those of its bodies are measured that are not yet. */
function fit(table: HTMLTableElement, columns: Columns, withLast: boolean): void {
  // What is not shown has no sizes; it comes here again when it has.
  if (table.offsetWidth === 0) return;
  const groups = [...table.children];
  const end = Math.min(columns.measured + atOnce, groups.length - 1);
  const rest = groups.length - 1 - end;
  const next = groups.slice(columns.measured, withLast && rest === 0 ? undefined : end);
  columns.measured = end;
  if (next.length > 0) measure(table, next, columns);
  for (const group of next) label(group);
  table.setAttribute("role", "table");
  write(table, columns);
  table.parentElement?.setAttribute("data-ui-columns", "");
  if (rest > 0) fitSoon(table, columns, withLast);
}

/** Boxes that are laid out as none of a table's are not told of as such by every browser. */
function label(group: Element): void {
  group.setAttribute("role", "rowgroup");
  for (const row of group.children) row.setAttribute("role", "row");
  for (const cell of cellsOf(group)) {
    cell.setAttribute("role", cell.localName === "th" ? "columnheader" : "cell");
  }
}

/** Measures copies, so that nothing on the screen has another size meanwhile, which would move a reader who is at the end. */
function measure(table: HTMLTableElement, groups: readonly Element[], columns: Columns): void {
  columns.em = px(getComputedStyle(table).fontSize);
  const probe = document.createElement("div");
  probe.className = "probe";
  const copy = document.createElement("table");
  copy.append(...groups.map((group) => group.cloneNode(true)));
  probe.append(copy);
  table.after(probe);
  for (const kind of kinds) {
    copy.className = kind;
    for (const [index, cell] of [...(copy.rows[0]?.cells ?? [])].entries()) {
      const { width, paddingLeft, paddingRight } = getComputedStyle(cell);
      columns.padding = px(paddingLeft) + px(paddingRight);
      // Rounded up, or a word might not fit by a hair.
      const wide = Math.ceil(((px(width) - columns.padding) / columns.em) * 1000) / 1000;
      columns[kind][index] = Math.max(columns[kind][index] ?? 0, wide);
    }
  }
  probe.remove();
}

/**
 * A browser's own rule for a table's columns, at whatever width: the narrowest and a share of the room that is left, in
 * proportion to what each could use; beyond the widest, in proportion to that.
 */
function write(table: HTMLTableElement, { narrowest, widest, padding, em }: Columns): void {
  const least = `(${sum(narrowest)}em + ${padding * narrowest.length}px)`;
  const room = sum(widest) - sum(narrowest);
  const most = sum(widest) + (padding * widest.length) / em;
  const set = (name: string, value: string) => {
    if (table.style.getPropertyValue(name) !== value) table.style.setProperty(name, value);
  };
  set("--_narrowest", `calc${least}`);
  for (const [index, narrow] of narrowest.entries()) {
    const wide = widest[index] ?? narrow;
    const used = `${(wide - narrow) / (room || 1)} * clamp(0px, 100cqi - ${least}, ${room}em)`;
    const share = (wide + padding / em) / most;
    const beyond = `${share} * max(0px, 100cqi - ${least} - ${room}em)`;
    set(columnWidth(index), `calc(${narrow}em + ${padding}px + ${used} + ${beyond})`);
  }
}

function px(value: string): number {
  return Number.parseFloat(value);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
