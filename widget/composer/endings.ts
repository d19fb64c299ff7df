import type { TextType } from "../../server/protocol/attachments.ts";

/** Endings of the names of text files: for the picker, which does not know all of them, and to find the type of a file. */
export const ENDINGS: Readonly<Record<TextType, readonly string[]>> = {
  "text/plain": [".txt", ".log"],
  "text/markdown": [".md", ".markdown"],
  "text/csv": [".csv"],
  "application/json": [".json"],
};
