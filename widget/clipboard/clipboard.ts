/** Copies a text, or a drawn answer with its formatting. */

import type { Failure } from "../conversations/messages.ts";
import type { Strings } from "../i18n/strings.ts";

/** Absent until its code has been loaded. */
type SourcesElement = Element & { readonly footnoted?: () => string };

/** The attributes of a drawn answer's elements that are copied. */
const KEPT_ATTRIBUTES = new Set(["href", "start", "type", "checked", "alt", "src"]);

/** Resolves with whether the text was copied. `near` is in the page, and may get the focus. */
export async function copyText(text: string, near: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Absent on plain http and refused in some frames; the old way still works there.
    return copyBySelection(text, near);
  }
}

/** Copies what the site's owner needs to find a failure: nothing that was said, and nothing that may be a key. */
export function copyFailure({ code, reference = "", at = Date.now() }: Failure, near: HTMLElement): Promise<boolean> {
  const page = location.origin + location.pathname;
  const time = new Date(at).toISOString();
  return copyText(`Reference: ${reference}\nCode: ${code}\nTime: ${time}\nPage: ${page}`, near);
}

/** Copies a text with its formatting, if that is possible; otherwise the text alone. */
export async function copyDrawn(text: string, drawn: Iterable<Element>, near: HTMLElement): Promise<boolean> {
  // The element of the answer's sources, where it has some.
  const sources = near.closest(".message")?.querySelector<SourcesElement>("agent-chat-sources");
  const plain = sources?.footnoted?.() ?? text;
  try {
    // Without waiting: browsers only allow this right after a press.
    const item = new ClipboardItem({
      "text/plain": new Blob([plain], { type: "text/plain" }),
      "text/html": new Blob([richText([...drawn, ...(sources?.querySelectorAll("details") ?? [])])], {
        type: "text/html",
      }),
    });
    await navigator.clipboard.write([item]);
    return true;
  } catch {
    // This browser copies no HTML.
    return copyText(plain, near);
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
  // A document without a window does not load the images of the copy.
  const inert = document.implementation.createHTMLDocument();
  const copy = inert.body;
  for (const element of drawn) copy.append(...inert.importNode(element, true).childNodes);
  for (const mark of copy.querySelectorAll(".source-mark")) {
    const raised = inert.createElement("sup");
    raised.append(mark.textContent);
    mark.replaceWith(raised);
  }
  // A formula also contains its TeX, which is copied in place of the drawing.
  for (const own of copy.querySelectorAll("button, .code-header, math, :scope > summary")) own.remove();
  const comments = inert.createNodeIterator(copy, NodeFilter.SHOW_COMMENT);
  for (let node = comments.nextNode(); node; node = comments.nextNode()) (node as Comment).remove();
  // Boxes, sections, links to notes and the paragraphs of a tight list's items are the chat's, not the answer's.
  for (const own of ["div", ".tight > li > p:not(.source)", "section", 'a[href^="#"]', "span"]) {
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

/** Buttons with a temporary label, and how to restore the label. */
const said = new WeakMap<Element, { readonly restore: () => void; readonly timer: ReturnType<typeof setTimeout> }>();

/** Shows on the pressed button whether copying succeeded, and resolves with that. */
export async function copyFrom(
  button: HTMLElement,
  copying: Promise<boolean>,
  { copied, copyFailed }: Pick<Strings, "copied" | "copyFailed">,
): Promise<boolean> {
  const isCopied = await copying;
  const before = said.get(button);
  clearTimeout(before?.timer);
  before?.restore();
  const restore = say(button, isCopied ? copied : copyFailed);
  button.classList.toggle("copied", isCopied);
  const timer = setTimeout(() => {
    said.delete(button);
    button.classList.remove("copied");
    restore();
  }, COPIED_FOR);
  said.set(button, { restore, timer });
  return isCopied;
}

/** Gives a button another label. Returns a function that restores the old one, unless the label has changed since. */
function say(button: HTMLElement, label: string): () => void {
  const isIcon = button.title !== "";
  const show = (text: string) => {
    if (isIcon) {
      button.title = text;
      button.setAttribute("aria-label", text);
    } else button.textContent = text;
  };
  const current = () => (isIcon ? button.title : button.textContent);
  const own = current();
  show(label);
  return () => {
    if (current() === label) show(own);
  };
}
