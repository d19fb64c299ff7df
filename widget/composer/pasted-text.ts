/** Long texts that are pasted: in the composer each stands as a file, so that what is asked of it stays in view. */

import type { SentFile } from "../conversations/messages.ts";

/** One that goes with the message, behind what is written. */
export interface PastedText extends SentFile {
  readonly text: string;
}

/** Shorter ones are read in the text field. */
const MIN_CHARACTERS = 5_000;
const MIN_LINES = 100;

/** How many characters of its first line name it. */
const NAME_LENGTH = 60;

/** The text with the line ends of a field; none where it is short enough for the field. */
export function pastedText(pasted: string): PastedText | undefined {
  const text = pasted.replace(/\r\n?/g, "\n").trimEnd();
  if (text.length < MIN_CHARACTERS && text.split("\n").length < MIN_LINES) return undefined;
  const [first = ""] = /\S.*/.exec(text) ?? [];
  const name = [...first.slice(0, 2 * NAME_LENGTH)].slice(0, NAME_LENGTH).join("");
  return { name, mediaType: "text/plain", size: new Blob([text]).size, text };
}
