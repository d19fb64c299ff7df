/**
 * Tools of code blocks and tables: wrap lines, fold long code, copy a table, scroll by keyboard; who keeps a long table quick,
 * and who needs colours. A chunk: it is loaded with the first such box.
 *
 * What it adds to a drawn box is marked, so that drawing leaves it alone: elements with the class `tools`, which stand last in
 * their parent, and attributes that begin with `data-ui-`.
 */

import type { Strings } from "../strings.ts";
import { colourCode, type LoadHighlighter } from "./colour-code.ts";
import { watchScroll } from "./scroll-reach.ts";
import { BoxObserver } from "./skipped-parts.ts";
import { tableAsCsv, tableAsMarkdown } from "./table-text.ts";
import { toolsSheet } from "./tools.styles.ts";

export { boxToolTexts as texts } from "../texts/tools.ts";

/** Lines of code that are shown before the rest is folded away. */
const shownLines = 40;

/** How often the lines of code that goes on are counted anew, in milliseconds. */
const countAgain = 250;

/** From so many bodies of rows on a table is long. */
const longTable = 3;

/** Copies a text and says on the button how that went. */
type Copy = (button: HTMLButtonElement, text: string) => Promise<void>;

/** Brings the chunk that keeps a long table quick, or nothing. */
type LoadLongTable = (
  name: "long-table",
  again: () => unknown,
) => Promise<{ keepQuick(table: HTMLTableElement): void } | undefined>;

/**
 * Adds what is missing to the boxes in a node, itself included, and colours to code that rests. May be called again when they
 * have grown.
 */
export function addTools(
  node: HTMLElement,
  rests: boolean,
  strings: Readonly<Strings>,
  copy: Copy,
  load: LoadLongTable & LoadHighlighter,
): void {
  const root = node.getRootNode();
  if (root instanceof ShadowRoot && !root.adoptedStyleSheets.includes(toolsSheet)) {
    root.adoptedStyleSheets.push(toolsSheet);
  }
  for (const box of boxesIn(node, ".code")) {
    wrapTool(box, strings);
    foldTool(box, strings);
    watchScroll(box.querySelector("pre"), box.querySelector(".code-language")?.textContent ?? "");
  }
  for (const box of boxesIn(node, ".table")) {
    tableTools(box, strings, copy);
    watchScroll(box, strings.table);
    watchTable(box, load);
  }
  if (rests) void colourCode(node, load);
}

function boxesIn(node: HTMLElement, selector: string): HTMLElement[] {
  const inside = [...node.querySelectorAll<HTMLElement>(selector)];
  return node.matches(selector) ? [node, ...inside] : inside;
}

/** The place for tools at the end of an element; undefined when it is there already. */
function newTools(parent: Element | null): HTMLElement | undefined {
  if (parent === null || parent.querySelector(":scope > .tools") !== null) return undefined;
  const tools = document.createElement("div");
  tools.className = "tools";
  parent.append(tools);
  return tools;
}

function addButton(tools: HTMLElement, text: string): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  tools.append(button);
  return button;
}

function wrapTool(box: HTMLElement, strings: Readonly<Strings>): void {
  const tools = newTools(box.querySelector(".code-header"));
  if (tools === undefined) return;
  const button = addButton(tools, strings.wrapLines);
  button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", () => {
    button.setAttribute("aria-pressed", String(box.toggleAttribute("data-ui-wrap")));
  });
}

function foldTool(box: HTMLElement, strings: Readonly<Strings>): void {
  const code = box.querySelector("code");
  update.get(box)?.();
  if (code === null || watched.has(code)) return;
  // While code streams in it grows, and is folded at the line where it gets too long: nothing jumps later.
  let counting = false;
  watched.set(code, () => {
    const count = update.get(box);
    if (count && !counting) {
      counting = true;
      setTimeout(() => {
        counting = false;
        count();
      }, countAgain);
    } else if (!count && box.isConnected && linesOf(code) > shownLines) fold(box, code, strings);
  });
  sizes.observe(code);
}

/** What is to be done about another size, by box. */
const watched = new WeakMap<Element, () => void>();

const sizes = new BoxObserver((box) => watched.get(box)?.());

/** How to write the number of lines anew, by box. */
const update = new WeakMap<Element, () => void>();

function linesOf(code: HTMLElement): number {
  return code.textContent.split("\n").length;
}

function fold(box: HTMLElement, code: HTMLElement, strings: Readonly<Strings>): void {
  const tools = newTools(box);
  if (tools === undefined) return;
  const button = addButton(tools, "");
  const show = () => {
    const folded = box.getAttribute("data-ui-fold") === "closed";
    button.textContent = folded ? strings.showAllLines(linesOf(code)) : strings.showFewerLines;
    button.setAttribute("aria-expanded", String(!folded));
  };
  box.setAttribute("data-ui-fold", "closed");
  update.set(box, show);
  show();
  const set = (state: "open" | "closed") => {
    box.setAttribute("data-ui-fold", state);
    show();
    // Whoever keeps the end of the transcript in view is told that the reader is here.
    box.dispatchEvent(new Event("toggle", { bubbles: true }));
  };
  button.addEventListener("click", () => {
    const opens = box.getAttribute("data-ui-fold") === "closed";
    set(opens ? "open" : "closed");
    // The button is far up again: what was read last must not be.
    if (!opens) button.scrollIntoView({ block: "nearest" });
  });
  // What is folded away can be scrolled to only by finding it in the page, by a selection or by a screen reader.
  const pre = code.closest("pre");
  pre?.addEventListener("scroll", () => {
    const { scrollTop } = pre;
    if (scrollTop === 0) return;
    set("open");
    // The box has no place of its own any more, and what was found stays in view.
    box.closest(".scroller")?.scrollBy(0, scrollTop);
  });
}

function tableTools(box: HTMLElement, strings: Readonly<Strings>, copy: Copy): void {
  const table = box.querySelector("table");
  const tools = table === null ? undefined : newTools(box);
  if (tools === undefined || table === null) return;
  for (const [text, textOf] of [
    [strings.copyAsMarkdown, tableAsMarkdown],
    [strings.copyAsCsv, tableAsCsv],
  ] as const) {
    const button = addButton(tools, text);
    button.addEventListener("click", () => void copy(button, textOf(table)));
  }
}

function watchTable(box: HTMLElement, load: LoadLongTable): void {
  const table = box.querySelector("table");
  if (table === null || watched.has(table)) return;
  watched.set(table, () => {
    if (table.tBodies.length < longTable) return;
    sizes.unobserve(table);
    void keepQuick(table, load);
  });
  sizes.observe(table);
}

async function keepQuick(table: HTMLTableElement, load: LoadLongTable): Promise<void> {
  const chunk = await load("long-table", () => table.isConnected && keepQuick(table, load));
  chunk?.keepQuick(table);
}
