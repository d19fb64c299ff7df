/**
 * Boxes that scroll sideways can be scrolled by keyboard, and have a name there, as long as there is something to scroll. Those
 * that show all they have are no stops on the way through an answer.
 */

const labels = new WeakMap<Element, string>();

const observer = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const box = labels.has(target) ? target : target.parentElement;
    if (box) reach(box, box.scrollWidth > box.clientWidth);
  }
});

/** To be called again for a box that was drawn anew, which has made it a stop once more. Its size and that of its content decide. */
export function watchScroll(box: HTMLElement | null, label: string): void {
  if (!box?.firstElementChild) return;
  labels.set(box, label);
  // Of a box that is observed already nothing would be heard.
  observer.unobserve(box);
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
