/** Enlarges the images of a message, one at a time, and wide tables and programs. Loaded when the first is opened. */

import { html, nothing, render, type TemplateResult } from "lit";
import "../i18n/add-part-texts.ts";
import type { SentFile } from "../conversations/messages.ts";
import type { Strings } from "../i18n/strings.ts";
import { lazy } from "../loading/lazy.ts";
import { adoptSheets } from "../styles/adopt.ts";
import styles from "../styles/lightbox.css";
import { partSheets } from "../styles/part-sheets.ts";
import { iconButton } from "./controls.ts";
import type { FilesElement } from "./files.ts";
import { icons } from "./icons.ts";

const sheets = partSheets(styles);

/** Loaded when needed: a static import would make every first block of code load a third file. */
const codeBlocks = lazy(() => import("../markdown/code-blocks/code-blocks.ts"), "colourCode");

/** How long the copy of a growing box may lag behind it. */
const REDRAW_AFTER_MS = 300;

interface LargeImage {
  readonly name: string;
  readonly src: string;
}

/**
 * `opener` is the pressed button, or an image with its role. `selector` matches all openers in its message.
 */
export function showLarge(opener: Element, selector: string, strings: Strings): void {
  const box = opener.matches(".enlarge") && opener.closest<HTMLElement>(".code, .table");
  if (box) showBox(opener, box, strings);
  else showImages(opener, selector, strings);
}

function showImages(opener: Element, selector: string, strings: Strings): void {
  const all = [...(opener.closest("article")?.querySelectorAll(selector) ?? [])];
  const openers = all.filter((it) => !it.matches(".enlarge"));
  const images = openers.map(imageOf);
  let place = openers.indexOf(opener);
  const go = (by: number) => {
    place = (place + by + images.length) % images.length;
    draw();
  };
  const dialog = openDialog(opener, () => {
    for (const { src } of images) if (src.startsWith("blob:")) URL.revokeObjectURL(src);
  });
  const draw = () => {
    dialog.ariaLabel = images[place]?.name || strings.enlargeImage;
    render(renderImage(images, place, strings, { go, close: () => dialog.close() }), dialog);
  };
  draw();
  dialog.addEventListener("keydown", ({ key }) => {
    const side = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (side !== undefined) go(dialog.matches(":dir(rtl)") ? -side : side);
  });
}

/** Shows a copy of the table or program, and updates it while the original grows. */
function showBox(opener: Element, box: HTMLElement, strings: Strings): void {
  const isTable = box.matches(".table");
  const source = box.querySelector("table, pre") as HTMLElement;
  const name = isTable ? strings.table : (box.querySelector(".code-language")?.textContent ?? strings.code);
  const copy = document.createElement("div");
  copy.className = box.className;
  copy.dir = isTable ? "auto" : "ltr";
  copy.tabIndex = 0;
  copy.autofocus = true;
  copy.role = "group";
  copy.ariaLabel = name;
  copy.toggleAttribute("data-ui-pinned", box.hasAttribute("data-ui-pinned"));
  const draw = () => {
    copy.replaceChildren(copyOf(source));
    // Already loaded, because one of its buttons has opened this.
    void codeBlocks.loadEventually().then((module) => module?.colourCode(copy));
  };
  let timer: ReturnType<typeof setTimeout> | undefined;
  // A timer, not each frame: a change copies and colours the whole box.
  const growth = new MutationObserver(() => {
    timer ??= setTimeout(() => {
      timer = undefined;
      draw();
    }, REDRAW_AFTER_MS);
  });
  const dialog = openDialog(opener, () => {
    growth.disconnect();
    clearTimeout(timer);
  });
  dialog.classList.add("of-box");
  dialog.ariaLabel = name;
  draw();
  growth.observe(source, { childList: true, characterData: true, subtree: true });
  render(
    html`
      <div class="lightbox-bar">
        <p><bdi>${name}</bdi></p>
        ${iconButton("close-image", strings.feedbackClose, icons.close, () => dialog.close())}
      </div>
      <div class="markdown">${copy}</div>
    `,
    dialog,
  );
  copy.focus();
}

/** In the copy, whatever only works in the original, such as a link to a footnote, becomes text. */
function copyOf(source: HTMLElement): Node {
  const copy = source.cloneNode(true) as HTMLElement;
  for (const name of ["tabindex", "role", "aria-label"]) {
    for (const it of [copy, ...copy.querySelectorAll("img")]) it.removeAttribute(name);
  }
  for (const it of copy.querySelectorAll('button, a[href^="#"]')) it.replaceWith(...it.childNodes);
  return copy;
}

/** Opens a modal dialog over the whole window. On closing, the focus returns to the element that has it now. */
function openDialog(opener: Element, onClose: () => void): HTMLDialogElement {
  const dialog = document.createElement("dialog");
  dialog.className = "lightbox";
  dialog.part.add("lightbox");
  // Escape closes the dialog: it neither stops an answer nor closes a panel.
  dialog.addEventListener("keydown", (event) => event.stopPropagation());
  dialog.addEventListener("click", ({ target }) => {
    if (target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    onClose();
  });
  opener.closest(".chat")?.append(dialog);
  adoptSheets(dialog, sheets);
  dialog.showModal();
  return dialog;
}

function renderImage(
  images: readonly LargeImage[],
  place: number,
  { lang, previousImage, nextImage, feedbackClose }: Strings,
  { go, close }: { readonly go: (by: number) => void; readonly close: () => void },
): TemplateResult {
  const { name = "", src = "" } = images[place] ?? {};
  const [number, count] = [place + 1, images.length].map((it) => it.toLocaleString(lang));
  const hasSeveral = images.length > 1;
  return html`
    <div class="lightbox-bar">
      <p aria-live="polite"><bdi>${name}</bdi> ${hasSeveral ? html`<span>${number} / ${count}</span>` : nothing}</p>
      ${
        hasSeveral
          ? html`${iconButton("previous-image", previousImage, icons.previous, () => go(-1))}
            ${iconButton("next-image", nextImage, icons.next, () => go(1))}`
          : nothing
      }
      ${iconButton("close-image", feedbackClose, icons.close, close)}
    </div>
    <img src=${src} alt=${name} referrerpolicy="no-referrer" />
  `;
}

/** The image of an opener. An attached picture needs a new URL, because the one it was shown with has been revoked. */
function imageOf(opener: Element): LargeImage {
  const image = (opener.querySelector("img") ?? opener) as HTMLImageElement;
  const files = opener.closest<FilesElement<SentFile>>("agent-chat-files");
  const place = [...(files?.querySelectorAll("img") ?? [])].indexOf(image);
  const picture = files?.files.filter((file) => file.picture)[place]?.picture;
  return { name: image.alt, src: picture ? URL.createObjectURL(picture) : image.src };
}
