import type { TextType } from "../../server/protocol/attachments.ts";

/** File name extensions of text files: for the picker, which does not know all types, and to find a file's type. */
export const ENDINGS: Readonly<Record<TextType, readonly string[]>> = {
  "text/plain": [".txt", ".log"],
  "text/markdown": [".md", ".markdown"],
  "text/csv": [".csv"],
  "application/json": [".json"],
};
