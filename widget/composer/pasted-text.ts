/** Long pasted texts: the composer shows each as a file, so that the question about it stays in view. */

import type { SentFile } from "../conversations/messages.ts";

/** A pasted text, which is sent after the typed text. */
export interface PastedText extends SentFile {
  readonly text: string;
}

/** Shorter texts are pasted into the text field. */
const MIN_CHARACTERS = 5_000;
const MIN_LINES = 100;

/** Number of characters of the first line that are its name. */
const NAME_LENGTH = 60;

/** The text with the line ends of a text field; `undefined` if it is short enough for the field itself. */
export function pastedText(pasted: string): PastedText | undefined {
  const text = pasted.replace(/\r\n?/g, "\n").trimEnd();
  if (text.length < MIN_CHARACTERS && text.split("\n").length < MIN_LINES) return undefined;
  const [first = ""] = /\S.*/.exec(text) ?? [];
  const name = [...first.slice(0, 2 * NAME_LENGTH)].slice(0, NAME_LENGTH).join("");
  return { name, mediaType: "text/plain", size: new Blob([text]).size, text };
}
