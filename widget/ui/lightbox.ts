/** Shows the images of a message large, one after the other. Loaded with the first one that is opened. */

import { html, nothing, render, type TemplateResult } from "lit";
import type { Strings } from "../i18n/strings.ts";
import type { SentFile } from "../session/messages.ts";
import { adoptSheet, sheetOf } from "../styles/adopt.ts";
import styles from "../styles/lightbox.css";
import { iconButton } from "./controls.ts";
import type { FilesElement } from "./files.ts";
import { icon, icons } from "./icons.ts";

const previous = icon("M14.5 6.5L9 12l5.5 5.5");
const next = icon("M9.5 6.5L15 12l-5.5 5.5");

const sheet = sheetOf(styles);

interface LargeImage {
  readonly name: string;
  readonly src: string;
}

/** `opener` is the button that was pressed, or an image that is one, and `selector` finds all of them in its message. */
export function showImage(opener: Element, selector: string, strings: Strings): void {
  const openers = [...(opener.closest("article")?.querySelectorAll(selector) ?? [])];
  const images = openers.map(imageOf);
  const dialog = document.createElement("dialog");
  dialog.className = "lightbox";
  dialog.part.add("lightbox");
  let place = openers.indexOf(opener);
  const go = (by: number) => {
    place = (place + by + images.length) % images.length;
    draw();
  };
  const draw = () => {
    dialog.ariaLabel = images[place]?.name || strings.enlargeImage;
    render(renderImage(images, place, strings, { go, close: () => dialog.close() }), dialog);
  };
  draw();
  dialog.addEventListener("keydown", (event) => {
    // Escape closes the dialog: it neither stops an answer nor closes a panel.
    event.stopPropagation();
    const side = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (side !== undefined) go(dialog.matches(":dir(rtl)") ? -side : side);
  });
  dialog.addEventListener("click", ({ target }) => {
    if (target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    for (const { src } of images) if (src.startsWith("blob:")) URL.revokeObjectURL(src);
  });
  opener.closest(".chat")?.append(dialog);
  adoptSheet(dialog, sheet);
  // The focus returns from there to what has it now.
  dialog.showModal();
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
          ? html`${iconButton("previous-image", previousImage, previous, () => go(-1))}
            ${iconButton("next-image", nextImage, next, () => go(1))}`
          : nothing
      }
      ${iconButton("close-image", feedbackClose, icons.close, close)}
    </div>
    <img src=${src} alt=${name} referrerpolicy="no-referrer" />
  `;
}

/** What a button shows, or an image that is one. The address of a picture that was attached has been given up. */
function imageOf(opener: Element): LargeImage {
  const image = (opener.querySelector("img") ?? opener) as HTMLImageElement;
  const files = opener.closest<FilesElement<SentFile>>("agent-chat-files");
  const place = [...(files?.querySelectorAll("img") ?? [])].indexOf(image);
  const picture = files?.files.filter((file) => file.picture)[place]?.picture;
  return { name: image.alt, src: picture ? URL.createObjectURL(picture) : image.src };
}
