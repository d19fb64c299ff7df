/** The numbers of footnotes, their links, and the list of notes at an answer's end. Loaded with the first footnote. */

import "../i18n/add-part-texts.ts";
import type { Strings } from "../i18n/strings.ts";
import { adoptSheets, sheetOf } from "../styles/adopt.ts";
import styles from "../styles/footnotes.css";
import type { Footnotes } from "./footnotes.ts";
import { patchChildren, removeFrom } from "./patch-dom.ts";

/** Draws Markdown that may grow into an element. */
export type DrawInto = (root: HTMLElement) => (text: string, isStreaming: boolean) => void;

export interface FootnoteListOptions {
  readonly strings: Strings;
  readonly drawInto: DrawInto;
  readonly isExpected: (label: string) => boolean;
  readonly signal: AbortSignal;
}

interface Note {
  readonly item: HTMLLIElement;
  readonly draw: ReturnType<DrawInto>;
}

/** More notes are drawn only at the answer's end, because each drawing walks through all of them. */
const MOST_WHILE_STREAMING = 300;

const sheet = sheetOf(styles);

/** Counts the lists, so that the ids of their notes differ. */
let lists = 0;

export class FootnoteList {
  readonly #root: HTMLElement;
  readonly #options: FootnoteListOptions;
  readonly #name: string;
  readonly #list = document.createElement("ol");
  readonly #notes = new Map<string, Note>();
  /** After the answer's last block, as long as there are notes. */
  readonly element = document.createElement("section");

  constructor(root: HTMLElement, options: FootnoteListOptions) {
    lists += 1;
    this.#name = `note-${lists}`;
    this.#root = root;
    this.#options = options;
    const { strings, signal } = options;
    const heading = document.createElement("h2");
    heading.className = "visually-hidden";
    heading.textContent = strings.footnotes;
    this.element.className = "footnotes";
    this.element.append(heading, this.#list);
    root.addEventListener("click", (event) => this.#follow(event), { signal });
  }

  /** Numbers the marks in their order, and draws the notes. Returns whether there are any. */
  draw(notes: Footnotes, isStreaming: boolean): boolean {
    adoptSheets(this.#root, [sheet]);
    if (isStreaming && notes.size > MOST_WHILE_STREAMING) return this.#list.hasChildNodes();
    const known = (label: string) => notes.has(label) || (isStreaming && this.#options.isExpected(label));
    const marks = [...this.#root.querySelectorAll<HTMLElement>(".footnote")].filter((it) => !this.element.contains(it));
    // No text of the model is dropped: notes without a reference follow the others.
    const labels = new Set([...marks.map(labelOf).filter(known), ...notes.keys()]);
    const numbers = new Map([...labels].map((label, index) => [label, index + 1]));
    let place = this.#list.firstElementChild;
    for (const [label, number] of numbers) {
      const text = notes.get(label);
      if (text === undefined) continue;
      const item = this.#note(label, number, text, isStreaming);
      if (item === place) place = item.nextElementSibling;
      else this.#list.insertBefore(item, place);
    }
    removeFrom(place);
    this.#link(marks, numbers, notes);
    return this.#list.hasChildNodes();
  }

  #note(label: string, number: number, text: string, isStreaming: boolean): HTMLElement {
    const item = this.#notes.get(label)?.item ?? document.createElement("li");
    const note = this.#notes.get(label) ?? { item, draw: this.#options.drawInto(item) };
    this.#notes.set(label, note);
    item.id = `${this.#name}-${number}`;
    item.tabIndex = -1;
    item.dir = "auto";
    note.draw(text, isStreaming);
    return item;
  }

  /** Makes the marks links to their notes, and the notes' ends links back to each of their marks. */
  #link(marks: readonly HTMLElement[], numbers: ReadonlyMap<string, number>, notes: Footnotes): void {
    const counts = new Map<string, number>();
    for (const mark of marks) {
      const label = labelOf(mark);
      const number = numbers.get(label);
      if (number === undefined || mark.closest("a")) {
        patchChildren(mark, [new Text(`[^${mark.dataset.label}]`)]);
        continue;
      }
      const raised = document.createElement("sup");
      if (notes.has(label)) {
        const count = (counts.get(label) ?? 0) + 1;
        counts.set(label, count);
        const link = raised.appendChild(document.createElement("a"));
        link.id = `${this.#name}-${number}-from-${count}`;
        link.setAttribute("href", `#${this.#name}-${number}`);
        link.setAttribute("role", "doc-noteref");
      }
      (raised.firstElementChild ?? raised).append(String(number));
      patchChildren(mark, [raised]);
    }
    for (const [label, number] of numbers) this.#linkBack(label, number, counts.get(label) ?? 0);
  }

  #linkBack(label: string, number: number, count: number): void {
    const item = this.#notes.get(label)?.item;
    if (!item) return;
    const last = [...item.children].findLast((child) => !child.matches(".back"));
    const end = last?.localName === "p" ? last : item;
    const known = item.querySelectorAll<HTMLElement>(".back");
    for (let index = 0; index < Math.max(count, known.length); index += 1) {
      const back = known[index] ?? document.createElement("a");
      if (index >= count) back.remove();
      else if (back.parentElement !== end) end.append(back);
      back.className = "back";
      back.setAttribute("role", "doc-backlink");
      back.setAttribute("href", `#${this.#name}-${number}-from-${index + 1}`);
      // As on GitHub, the first link back has no number.
      const nth = index === 0 ? "" : String(index + 1);
      back.dataset.nth = nth;
      back.setAttribute("aria-label", this.#options.strings.backToText(`${number}${nth && "-"}${nth}`));
    }
  }

  /** By script: a fragment link finds no target in a shadow root, and would change the page's URL. */
  #follow(event: MouseEvent): void {
    const link = (event.target as Element).closest<HTMLAnchorElement>('.footnote a, a[role="doc-backlink"]');
    if (!link || !this.#root.contains(link)) return;
    event.preventDefault();
    const target = this.#root.querySelector<HTMLElement>(`[id="${link.hash.slice(1)}"]`);
    // Tells the transcript, which follows its end, that the reader is here.
    target?.dispatchEvent(new Event("toggle", { bubbles: true }));
    target?.scrollIntoView({ block: "nearest" });
    target?.focus({ preventScroll: true });
  }
}

function labelOf(mark: HTMLElement): string {
  return mark.dataset.label?.toLowerCase() ?? "";
}
