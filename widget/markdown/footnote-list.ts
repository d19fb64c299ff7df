/** The numbers of footnotes, their links, and the list of notes at an answer's end. Loaded with the first footnote. */

import "../i18n/add-part-texts.ts";
import type { Strings } from "../i18n/strings.ts";
import { adoptSheet, sheetOf } from "../styles/adopt.ts";
import styles from "../styles/footnotes.css";
import type { Footnotes } from "./footnotes.ts";
import { setAttribute } from "./patch-dom.ts";

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

const sheet = sheetOf(styles);

/** More notes are drawn once, with the answer's end: each drawing walks through all of them. */
const MOST_WHILE_STREAMING = 300;

/** So much of an answer names its notes. */
const FIRST_WORDS = 8;
const FIRST_CHARACTERS = 80;

/** Makes the names of answers' notes differ. */
let lists = 0;

export class FootnoteList {
  readonly #root: HTMLElement;
  readonly #options: FootnoteListOptions;
  readonly #name: string;
  readonly #list = document.createElement("ol");
  readonly #notes = new Map<string, Note>();
  /** Behind the answer's last block, as long as there are notes. */
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
    this.element.setAttribute("role", "doc-endnotes");
    this.element.append(heading, this.#list);
    adoptSheet(root, sheet);
    root.addEventListener("click", (event) => this.#follow(event), { signal });
  }

  /** Numbers the marks in the order in which they stand, and draws the notes. Returns whether there is one. */
  draw(notes: Footnotes, isStreaming: boolean): boolean {
    if (isStreaming && notes.size > MOST_WHILE_STREAMING) return this.#list.hasChildNodes();
    const known = (label: string) => notes.has(label) || (isStreaming && this.#options.isExpected(label));
    const marks = [...this.#root.querySelectorAll<HTMLElement>(".footnote")];
    const inText = marks.filter((mark) => !this.element.contains(mark)).map(labelOf);
    const labels = new Set(inText.filter(known));
    // A note may refer to another one, and one that nothing refers to is shown all the same.
    for (const label of labels) for (const other of labelsIn(notes.get(label))) if (known(other)) labels.add(other);
    for (const label of notes.keys()) labels.add(label);
    const numbers = new Map([...labels].map((label, index) => [label, index + 1]));
    let place = this.#list.firstElementChild;
    let before = 0;
    for (const [label, number] of numbers) {
      const text = notes.get(label);
      if (text === undefined) continue;
      const item = this.#note(label, number, text, isStreaming);
      // Only behind a gap: with a number for each, Chromium takes minutes to lay out thousands of notes.
      if (number === before + 1) item.removeAttribute("value");
      else item.setAttribute("value", String(number));
      before = number;
      if (item === place) place = item.nextElementSibling;
      else this.#list.insertBefore(item, place);
    }
    while (place) {
      const gone: Element = place;
      place = gone.nextElementSibling;
      gone.remove();
    }
    this.#link(numbers, notes);
    setAttribute(this.element, "aria-label", this.#label);
    return this.#list.hasChildNodes();
  }

  /** The answers of a conversation have notes with the same title: their first words tell them apart. */
  get #label(): string {
    const [first] = this.#root.children;
    const parts = first === this.element ? [] : [...(first?.childNodes ?? [])];
    const text = parts.map((part) => (part instanceof Element && part.matches(".footnote") ? "" : part.textContent));
    const words = text.join("").trim().split(/\s+/, FIRST_WORDS).join(" ").slice(0, FIRST_CHARACTERS);
    const { footnotes } = this.#options.strings;
    return words === "" ? footnotes : `${footnotes}: ${words}`;
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
  #link(numbers: ReadonlyMap<string, number>, notes: Footnotes): void {
    const counts = new Map<string, number>();
    const marks = [...this.#root.querySelectorAll<HTMLElement>(".footnote"), ...this.#marksInDetachedNotes()];
    for (const mark of marks) {
      const label = labelOf(mark);
      const number = numbers.get(label);
      if (number === undefined || mark.closest("a")) show(mark, `[^${mark.dataset.label}]`);
      else if (!notes.has(label)) show(mark, number);
      else {
        const count = (counts.get(label) ?? 0) + 1;
        counts.set(label, count);
        show(mark, number, `${this.#name}-${number}`, `${this.#name}-${number}-from-${count}`);
      }
    }
    for (const [label, number] of numbers) this.#linkBack(label, number, counts.get(label) ?? 0);
  }

  #marksInDetachedNotes(): Iterable<HTMLElement> {
    return this.element.isConnected ? [] : this.element.querySelectorAll<HTMLElement>(".footnote");
  }

  #linkBack(label: string, number: number, count: number): void {
    const item = this.#notes.get(label)?.item;
    if (!item) return;
    const last = [...item.children].findLast((child) => !child.matches(".back"));
    const end = last?.localName === "p" ? last : item;
    const known = item.querySelectorAll(".back");
    for (let index = 0; index < Math.max(count, known.length); index += 1) {
      const back = known[index] ?? document.createElement("a");
      if (index >= count) back.remove();
      else if (back.parentElement !== end) end.append(back);
      back.className = "back";
      back.setAttribute("role", "doc-backlink");
      back.setAttribute("href", `#${this.#name}-${number}-from-${index + 1}`);
      back.setAttribute("aria-label", this.#options.strings.backToText(number));
    }
  }

  /** A link of the page finds nothing inside of an element, and the page has an address of its own. */
  #follow(event: MouseEvent): void {
    const link = (event.target as Element).closest<HTMLAnchorElement>('.footnote a, a[role="doc-backlink"]');
    if (!link || !this.#root.contains(link)) return;
    event.preventDefault();
    const target = this.#root.querySelector<HTMLElement>(`[id="${link.hash.slice(1)}"]`);
    // The transcript, which follows its end, learns from this that the reader is here.
    target?.dispatchEvent(new Event("toggle", { bubbles: true }));
    target?.scrollIntoView({ block: "nearest" });
    target?.focus({ preventScroll: true });
  }
}

function labelOf(mark: HTMLElement): string {
  return mark.dataset.label?.toLowerCase() ?? "";
}

function labelsIn(text = ""): string[] {
  return [...text.matchAll(/\[\^([^\]\s^]+)\]/g)].map(([, label = ""]) => label.toLowerCase());
}

/** Shows a text in place of a mark, or a number that may be a link. What is shown already stays. */
function show(mark: HTMLElement, shown: string | number, to = "", id = ""): void {
  const link = mark.querySelector("a");
  const isLink = to !== "";
  const isSame = mark.textContent === String(shown) && isLink === (link !== null) && (link?.id ?? "") === id;
  if (isSame && (typeof shown === "number") === (mark.querySelector("sup") !== null)) return;
  if (typeof shown === "string") {
    mark.replaceChildren(shown);
    return;
  }
  const number = document.createElement("sup");
  const target = isLink ? number.appendChild(document.createElement("a")) : number;
  target.append(String(shown));
  if (isLink) {
    target.id = id;
    target.setAttribute("href", `#${to}`);
    target.setAttribute("role", "doc-noteref");
  }
  mark.replaceChildren(number);
}
