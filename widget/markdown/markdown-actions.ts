import { imageElement } from "./draw-inline.ts";
import type { MarkdownStrings } from "./markdown-strings.ts";

const copiedMilliseconds = 2000;

/** Answers the buttons inside rendered Markdown: copy a code block, load an external image. */
export function listenForActions(
  root: HTMLElement,
  strings: MarkdownStrings,
  requestedImages: Set<string>,
): void {
  root.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button") : null;
    if (button === null || !root.contains(button)) return;
    if (button.classList.contains("copy")) void copyCode(button, strings);
    if (button.classList.contains("image")) loadImage(button, strings, requestedImages);
  });
}

async function copyCode(button: HTMLButtonElement, strings: MarkdownStrings): Promise<void> {
  const code = button.closest(".code")?.querySelector("code")?.textContent ?? "";
  const copied = await writeClipboard(code, button);
  button.textContent = copied ? strings.copied : strings.copyFailed;
  setTimeout(() => {
    button.textContent = strings.copy;
  }, copiedMilliseconds);
}

async function writeClipboard(text: string, near: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Absent on plain http and refused in some frames; the old way still works there.
    return copyBySelection(text, near);
  }
}

function copyBySelection(text: string, near: HTMLElement): boolean {
  const source = near.ownerDocument.createElement("textarea");
  source.className = "copy-source";
  source.value = text;
  near.after(source);
  source.select();
  const copied = near.ownerDocument.execCommand("copy");
  source.remove();
  near.focus();
  return copied;
}

function loadImage(
  button: HTMLButtonElement,
  strings: MarkdownStrings,
  requestedImages: Set<string>,
): void {
  const { src = "", alt = "" } = button.dataset;
  requestedImages.add(src);
  const image = imageElement(src, alt, { document: button.ownerDocument });
  image.addEventListener("error", () => {
    image.replaceWith(alt === "" ? strings.imageFailed : `${alt} (${strings.imageFailed})`);
  });
  button.replaceWith(image);
}
