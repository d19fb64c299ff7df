/** What is shown of a tool call: its status, its data, and what distinguishes it from others. */

import type { TemplateResult } from "lit";
import type { ToolStatus } from "../session/messages.ts";
import { icon, icons } from "./icons.ts";

/** Longer data is shown by its beginning, in characters. The rest would hold up the page. */
export const LONG_DATA = 20_000;

/** So much of the arguments stands in the row of a closed call, in characters. */
const HINT_CHARACTERS = 80;

const dash = icon("M7 12h10");

export const statusIcons: Readonly<Record<ToolStatus, TemplateResult>> = {
  running: icons.spinner,
  completed: icons.check,
  failed: icon("M7 7l10 10M17 7L7 17"),
  stopped: dash,
  waiting: dash,
};

/** Distinguishes a call from others of its tool: the words and numbers of its arguments, in one row. */
export function hintOf(input: string): string {
  const words: string[] = [];
  const gather = (value: unknown) => {
    if (typeof value === "object" && value !== null) Object.values(value).forEach(gather);
    else if (typeof value === "string" || typeof value === "number") words.push(String(value));
  };
  try {
    gather(input.length > LONG_DATA ? input.slice(0, LONG_DATA) : JSON.parse(input));
  } catch {
    words.push(input);
  }
  const text = words.join(", ").replace(/\s+/g, " ").trim();
  if (text.length <= HINT_CHARACTERS) return text;
  // Not through the middle of a character.
  return `${text.slice(0, HINT_CHARACTERS).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** JSON with line breaks; any other text as it is. */
export function formatData(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // It only looked like JSON.
    return text;
  }
}
