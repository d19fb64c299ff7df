/** A drawn answer for the clipboard: its elements without the chat's own controls, classes and parts. */

const KEPT = new Set(["href", "start", "type", "checked", "alt", "src"]);

/** HTML made of copies of elements, never of the model's text. */
export function richText(drawn: Iterable<Element>): string {
  const copy = document.createElement("div");
  for (const element of drawn) copy.append(...element.cloneNode(true).childNodes);
  for (const control of copy.querySelectorAll("button, .code-header")) control.remove();
  for (const element of copy.querySelectorAll("*")) {
    for (const name of element.getAttributeNames()) {
      if (!KEPT.has(name)) element.removeAttribute(name);
    }
  }
  return copy.innerHTML;
}
