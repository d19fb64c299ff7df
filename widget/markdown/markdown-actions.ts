import { strings } from "../strings.ts";
import { failedImage, type ImageStatus, imageElement } from "./draw-inline.ts";
import { safeImage } from "./safe-url.ts";

const copiedMilliseconds = 2000;

/** What buttons that copy say when they have not copied anything lately. */
const labels = new WeakMap<Element, string>();

/** Answers the buttons inside rendered Markdown: copy a code block, load an external image. */
export function listenForActions(root: HTMLElement, images: Map<string, ImageStatus>): void {
  root.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button") : null;
    if (button === null || !root.contains(button)) return;
    if (button.classList.contains("copy")) {
      void copyFrom(button, button.closest(".code")?.querySelector("code")?.textContent ?? "");
    }
    if (button.classList.contains("image")) loadImage(button, images);
  });
  // A failure to load does not bubble, but it can be caught on its way down.
  root.addEventListener("error", (event) => replaceFailed(event.target, images), true);
}

/** Copies a text, and says on the button that asked for it how that went. */
export async function copyFrom(button: HTMLButtonElement, text: string): Promise<void> {
  const label = labels.get(button) ?? button.textContent;
  labels.set(button, label);
  const copied = await writeClipboard(text, button);
  button.textContent = copied ? strings.copied : strings.copyingFailed;
  setTimeout(() => {
    button.textContent = label;
  }, copiedMilliseconds);
}

/** Whether the text was copied. `near` is in the page, and gets the focus. */
export async function writeClipboard(text: string, near: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Absent on plain http and refused in some frames; the old way still works there.
    return copyBySelection(text, near);
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

function loadImage(button: HTMLButtonElement, images: Map<string, ImageStatus>): void {
  const { src = "", alt = "" } = button.dataset;
  images.set(src, "requested");
  // An image takes no focus: the box that scrolls has it then.
  const box = button.matches(":focus") && button.closest<HTMLElement>("[tabindex]");
  button.replaceWith(imageElement(src, alt));
  if (box) box.focus({ preventScroll: true });
}

function replaceFailed(target: EventTarget | null, images: Map<string, ImageStatus>): void {
  if (!(target instanceof HTMLImageElement)) return;
  const image = safeImage(target.src);
  if (image === undefined || !images.has(image.src)) return;
  images.set(image.src, "failed");
  target.replaceWith(failedImage(image, target.alt));
}
