import { strings, useStrings } from "../strings.ts";
import { failedImage, type ImageStatus, imageElement } from "./draw-inline.ts";
import { safeImage } from "./safe-url.ts";

const copiedMilliseconds = 2000;

/** What buttons that copy say when they have not copied anything lately. */
const labels = new WeakMap<Element, string>();

/**
 * Answers the buttons inside rendered Markdown: copy a code block, load an external image. To be called while drawing: later
 * `strings` may be the table of another element.
 */
export function listenForActions(root: HTMLElement, images: Map<string, ImageStatus>, words = strings): void {
  root.addEventListener("click", (event) => {
    // Clicks are those of elements.
    const button = (event.target as Element).closest("button");
    if (button?.matches(".copy")) {
      const code = button.closest(".code")?.querySelector("code");
      void copyFrom(button, code?.textContent ?? "", words);
    }
    if (button?.matches(".image")) loadImage(button, images);
  });
  // A failure to load does not bubble, but it can be caught on its way down.
  const replace = ({ target }: Event) => {
    useStrings(words);
    replaceFailed(target, images);
  };
  root.addEventListener("error", replace, true);
}

/** Copies a text, and says on the button that asked for it how that went. */
export async function copyFrom(button: HTMLButtonElement, text: string, words: typeof strings): Promise<void> {
  const label = labels.get(button) ?? button.textContent;
  labels.set(button, label);
  const copied = await writeClipboard(text, button);
  button.textContent = copied ? words.copied : words.copyingFailed;
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
