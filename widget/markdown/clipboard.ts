/** Copying: a text, and a drawn answer as what it looks like. */

import type { Strings } from "../i18n/strings.ts";

/** What of a drawn answer's elements goes with the copy. */
const KEPT_ATTRIBUTES = new Set(["href", "start", "type", "checked", "alt", "src"]);

/** Whether the text was copied. `near` is in the page, and gets the focus. */
export async function copyText(text: string, near: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Absent on plain http and refused in some frames; the old way still works there.
    return copyBySelection(text, near);
  }
}

/** Copies a text so that it is pasted as what it looks like, where that is possible; else the text alone. */
export async function copyDrawn(text: string, drawn: Iterable<Element>, near: HTMLElement): Promise<boolean> {
  try {
    // At once, while the browser knows that a person pressed a button.
    const item = new ClipboardItem({
      "text/plain": new Blob([text], { type: "text/plain" }),
      "text/html": new Blob([richText(drawn)], { type: "text/html" }),
    });
    await navigator.clipboard.write([item]);
    return true;
  } catch {
    // This browser copies no HTML.
    return copyText(text, near);
  }
}

function copyBySelection(text: string, near: HTMLElement): boolean {
  const source = document.createElement("textarea");
  source.className = "visually-hidden";
  source.value = text;
  near.after(source);
  source.select();
  const copied = document.execCommand("copy");
  source.remove();
  near.focus();
  return copied;
}

/** HTML made of copies of elements, never of the model's text: without the chat's own controls, classes and parts. */
function richText(drawn: Iterable<Element>): string {
  // A document without a window asks for no copied image.
  const inert = document.implementation.createHTMLDocument();
  const copy = inert.body;
  for (const element of drawn) copy.append(...inert.importNode(element, true).childNodes);
  for (const control of copy.querySelectorAll("button, .code-header")) control.remove();
  // Boxes, sections and the paragraphs of a tight list's items are the chat's, not the answer's.
  for (const own of ["div", ".tight > li > p:not(.source)"]) {
    for (const box of copy.querySelectorAll(own)) box.replaceWith(...box.childNodes);
  }
  for (const element of copy.querySelectorAll("*")) {
    for (const name of element.getAttributeNames()) {
      if (!KEPT_ATTRIBUTES.has(name)) element.removeAttribute(name);
    }
  }
  return copy.innerHTML;
}

/** How long a button says that it has copied, in milliseconds. */
const COPIED_FOR = 2000;

/** Buttons that say so, with their own labels. */
const pressed = new WeakMap<Element, { readonly label: string; readonly timer: ReturnType<typeof setTimeout> }>();

/** Copies a text, and says on the button that was pressed how that went. */
export async function copyFrom(
  button: HTMLButtonElement,
  text: string,
  strings: Pick<Strings, "copied" | "copyingFailed">,
): Promise<void> {
  const isCopied = await copyText(text, button);
  const before = pressed.get(button);
  clearTimeout(before?.timer);
  const label = before?.label ?? button.textContent;
  button.textContent = isCopied ? strings.copied : strings.copyingFailed;
  const timer = setTimeout(() => {
    pressed.delete(button);
    button.textContent = label;
  }, COPIED_FOR);
  pressed.set(button, { label, timer });
}
