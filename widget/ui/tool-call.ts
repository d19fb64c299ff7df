/** What is shown of a tool call: its status, its data, and what distinguishes it from others. */

import type { TemplateResult } from "lit";
import type { Strings } from "../i18n/strings.ts";
import type { ToolStatus } from "../session/messages.ts";
import { icons } from "./icons.ts";

/** Longer data is shown by its beginning, in characters. The rest would hold up the page. */
export const LONG_DATA = 20_000;

/** Of the arguments, in characters, in the row of a closed call. */
const HINT_CHARACTERS = 80;

export function statusIcon(status: ToolStatus): TemplateResult {
  const { spinner, check, cross, dash } = icons;
  return { running: spinner, completed: check, failed: cross, stopped: dash, waiting: dash }[status];
}

/** The status of a tool call in words. */
export function toolStatus(status: ToolStatus, strings: Strings): string {
  const { toolRunning, toolCompleted, toolFailed, toolStopped, toolWaiting } = strings;
  return {
    running: toolRunning,
    completed: toolCompleted,
    failed: toolFailed,
    stopped: toolStopped,
    waiting: toolWaiting,
  }[status];
}

/** Distinguishes a call from others of its tool: the words and numbers of its arguments, in one row. */
export function hintOf(input: string): string {
  const words: string[] = [];
  const gather = (value: unknown) => {
    if (typeof value === "object" && value !== null) Object.values(value).forEach(gather);
    else if (typeof value === "string" || typeof value === "number") words.push(String(value));
  };
  try {
    gather(input.length > LONG_DATA ? input : JSON.parse(input));
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
