/**
 * Boxes that scroll sideways can be scrolled by keyboard, and have a name there, as long as there is something to scroll. Those
 * that show all they have are no stops on the way through an answer.
 */

import { BoxObserver } from "./skipped-parts.ts";

const labels = new WeakMap<Element, string>();

const observer = new BoxObserver((target) => {
  const box = labels.has(target) ? target : target.parentElement;
  if (box) reach(box, box.scrollWidth > box.clientWidth);
});

/** The size of the box and that of its content decide. May be called again with what it is called now. */
export function watchScroll(box: HTMLElement | null, label: string): void {
  if (!box?.firstElementChild || labels.get(box) === label) return;
  labels.set(box, label);
  observer.observe(box);
  observer.observe(box.firstElementChild);
}

function reach(box: Element, scrolls: boolean): void {
  // The focus is not taken away from where somebody has just read on.
  const isStop = scrolls || box.matches(":focus");
  for (const [name, value] of [
    ["tabindex", "0"],
    ["role", "group"],
    ["aria-label", labels.get(box) ?? ""],
  ] as const) {
    if (!isStop) box.removeAttribute(name);
    else if (box.getAttribute(name) !== value) box.setAttribute(name, value);
  }
}
