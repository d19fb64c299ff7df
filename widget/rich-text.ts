/** A drawn answer for the clipboard: its elements without the chat's own controls, classes and parts. */

const KEPT = new Set(["href", "start", "type", "checked", "alt", "src"]);

/** HTML made of copies of elements, never of the model's text. */
export function richText(drawn: Iterable<Element>): string {
  // In a document that nobody sees: there a copied image is not asked for.
  const inert = document.implementation.createHTMLDocument();
  const copy = inert.body;
  for (const element of drawn) copy.append(...inert.importNode(element, true).childNodes);
  for (const control of copy.querySelectorAll("button, .code-header")) control.remove();
  for (const element of copy.querySelectorAll("*")) {
    for (const name of element.getAttributeNames()) {
      if (!KEPT.has(name)) element.removeAttribute(name);
    }
  }
  return copy.innerHTML;
}
