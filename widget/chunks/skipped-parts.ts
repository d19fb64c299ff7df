/**
 * What a browser observes, and what it paints by ranges, it looks at in each frame, even where it skips the rest as too far from
 * view (`content-visibility: auto`). So that a frame at the end of a long answer costs no more than one at its start, that work
 * rests for what is in such a part.
 */

import type { SkipChange, SkippablePart } from "../skip-notes.ts";

/**
 * Answers what is to be called with each root in question. From then on the listener hears of every part in there that the
 * browser begins to skip, or skips no longer; of none where browsers do not tell, and of none when it is the style that changes.
 */
export function skipListener(listener: (part: Element, skips: boolean) => void): (root: Node) => void {
  const tell = (event: Event) => {
    const { target, skipped } = event as SkipChange;
    listener(target, skipped);
  };
  // The same function twice is added once. In Firefox the event does not bubble.
  return (root) => root.addEventListener("contentvisibilityautostatechange", tell, true);
}

/** As the style sheets have it. What has become the last message still bears its note: of that no browser tells. */
const SKIPPABLE = ".message:not(:last-child), .passed";

/**
 * Whether it stands in a part that is skipped: what comes into view can have parts in it that are skipped still. To ask
 * `checkVisibility` would have all of the page laid out, and what is skipped, too.
 */
function inSkippedPart(element: Element): boolean {
  for (let part: SkippablePart | null = element; part; part = part.parentElement) {
    if (part.isSkipped && part.matches(SKIPPABLE)) return true;
  }
  return false;
}

/** Tells the size of code and tables, at first and when it changes, as long as they are not skipped. */
export class BoxObserver {
  readonly #targets = new WeakSet<Element>();
  readonly #observer: ResizeObserver;
  readonly #listen = skipListener((part, skips) => {
    for (const box of part.querySelectorAll("pre, code, .table, table")) {
      if (!this.#targets.has(box)) continue;
      if (skips) this.#observer.unobserve(box);
      else this.#watch(box);
    }
  });

  constructor(resized: (box: Element) => void) {
    this.#observer = new ResizeObserver((entries) => {
      for (const { target } of entries) resized(target);
    });
  }

  /** Of a box that is observed already its size is told once more. */
  observe(box: Element): void {
    this.#listen(box.getRootNode());
    this.unobserve(box);
    this.#targets.add(box);
    this.#watch(box);
  }

  #watch(box: Element): void {
    if (!inSkippedPart(box)) this.#observer.observe(box);
  }

  unobserve(box: Element): void {
    this.#targets.delete(box);
    this.#observer.unobserve(box);
  }
}
