/** Attributes that take one of a few words, and what a page is told that uses another one. */

import { STEP_MODES } from "./step-modes.ts";

/** The first word is the default. */
export const CHOICES = {
  theme: ["auto", "light", "dark"],
  density: ["normal", "compact", "spacious"],
  corners: ["round", "soft", "sharp"],
  persist: ["session", "none"],
  thinking: STEP_MODES,
  tools: STEP_MODES,
  actions: ["all", "none", "copy", "retry", "edit", "code", "table"],
} as const;

/** Tells the page's author of a wrong value; the page's visitors must not suffer from it. */
export function reportAttribute(element: Element, name: string, value: unknown, expected: string): void {
  console.error(`<${element.localName}> ${name} must be ${expected}, not "${value}"`);
}

/**
 * Puts the default, the first of the words, in the place of a property's value that is none of them. Where `all` is the
 * default the value is a list of them.
 */
export function checkChoice(element: Element, name: string, words: readonly string[]): void {
  const value = Reflect.get(element, name);
  const isList = words[0] === "all" && value;
  const chosen = isList ? (String(value).match(/\S+/g) ?? []) : [value];
  if (chosen.every((word) => words.includes(word))) return;
  // Without a value it was taken away, which is no mistake.
  if (value) reportAttribute(element, name, value, `${isList ? "words out of" : "one of"} ${words.join(", ")}`);
  Reflect.set(element, name, words[0]);
}
