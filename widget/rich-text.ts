/** A drawn answer for the clipboard: its elements without the chat's own controls, classes and parts. */

const KEPT = new Set(["href", "start", "type", "checked", "alt", "src"]);

/** Copies a text that is pasted as what it looks like where that is possible; answers whether it is copied. */
export async function copyDrawn(text: string, drawn: Iterable<Element>): Promise<boolean> {
  try {
    // At once, while the browser knows that a person pressed a button.
    const item = new ClipboardItem({
      "text/plain": new Blob([text], { type: "text/plain" }),
      "text/html": new Blob([richText(drawn)], { type: "text/html" }),
    });
    await navigator.clipboard.write([item]);
    return true;
  } catch {
    // Where there is no such clipboard the text alone is copied.
    return false;
  }
}

/** HTML made of copies of elements, never of the model's text. */
function richText(drawn: Iterable<Element>): string {
  // In a document that nobody sees: there a copied image is not asked for.
  const inert = document.implementation.createHTMLDocument();
  const copy = inert.body;
  for (const element of drawn) copy.append(...inert.importNode(element, true).childNodes);
  for (const control of copy.querySelectorAll("button, .code-header")) control.remove();
  // Boxes, sections, groups and the paragraphs of a tight list's items are the chat's, not the answer's.
  for (const own of ["div", ".tight > li > p:not(.source)"]) {
    for (const box of copy.querySelectorAll(own)) box.replaceWith(...box.childNodes);
  }
  for (const element of copy.querySelectorAll("*")) {
    for (const name of element.getAttributeNames()) {
      if (!KEPT.has(name)) element.removeAttribute(name);
    }
  }
  return copy.innerHTML;
}
