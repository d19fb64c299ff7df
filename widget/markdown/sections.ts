import { removeFrom } from "./patch-dom.ts";
import { element } from "./render-inline.ts";

/**
 * Blocks of one section. A browser looks through all children of an element of which one grows, with each frame, and lays
 * out all that is in view. So the blocks of a long answer stand in sections behind the first ones.
 */
const SIZE = 32;

/** The blocks of an answer, numbered from 0: the first ones are children of the root, the others of its sections. */
export class Sections {
  readonly #root: HTMLElement;

  constructor(root: HTMLElement) {
    this.#root = root;
  }

  at(index: number): Element | undefined {
    return this.#parentOf(index)?.children[index % SIZE];
  }

  /** Puts a block into the place of the one with this number, or behind the last one. */
  put(index: number, node: Element): void {
    const live = this.at(index);
    if (live === node) return;
    if (live) live.replaceWith(node);
    else (this.#parentOf(index) ?? this.#add()).append(node);
  }

  /** Removes the blocks from this number on. */
  removeFrom(index: number): void {
    const parent = this.#parentOf(index);
    if (!parent) return;
    removeFrom(parent.children[index % SIZE] ?? null);
    if (parent === this.#root) return;
    removeFrom(parent.nextSibling);
    if (index % SIZE === 0) parent.remove();
    for (const section of [...this.#root.children].slice(-2)) {
      if (section.matches(".passed")) section.classList.remove("passed");
    }
  }

  /** The first blocks stand in the root itself. */
  #parentOf(index: number): Element | undefined {
    return index < SIZE ? this.#root : this.#root.children[SIZE - 1 + Math.floor(index / SIZE)];
  }

  #add(): Element {
    // Not the section before: it is in view, and would be left out and taken in again in one frame.
    const before = this.#root.lastElementChild?.previousElementSibling;
    if (before?.matches(".section")) before.classList.add("passed");
    const section = element("div", "section");
    this.#root.append(section);
    return section;
  }
}
