/** For the author of a page, on the console: which property has a value that it does not take. Loaded with the first one. */

import type { Row } from "./properties.ts";

/** Warns of "[object Object]" in an attribute, as a framework writes it that draws before the element is defined. */
export function warnOfText({ localName }: Element, name: string, text: string): void {
  console.warn(`<${localName}> ${name} must be set as a property once the element is defined, not "${text}"`);
}

/** Warns the page's author of a wrong value; the visitors must not suffer from it. */
export function warnOfValue({ localName }: Element, name: string, { kind, choices }: Row, value: unknown): void {
  const list = `${kind === "words" ? "words out of" : "one of"} ${choices?.join(", ")}`;
  const expected = kind === "time" ? "a time in milliseconds" : kind === "color" ? "a CSS colour" : list;
  console.warn(`<${localName}> ${name} must be ${expected}, not "${String(value)}"`);
}
