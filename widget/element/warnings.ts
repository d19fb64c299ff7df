/** Console warnings about wrong property values, for the author of a page. Loaded with the first warning. */

import type { Row } from "./properties.ts";

/** Warns of "[object Object]" in an attribute: a framework writes it if it draws before the element is defined. */
export function warnOfText({ localName }: Element, name: string, text: string): void {
  console.warn(`<${localName}> ${name} must be set as a property once the element is defined, not "${text}"`);
}

/** Warns of a wrong value, which the initial value replaces. */
export function warnOfValue({ localName }: Element, name: string, { kind, choices }: Row, value: unknown): void {
  const list = `${kind === "words" ? "words out of" : "one of"} ${choices?.join(", ")}`;
  const expected = kind === "time" ? "a time in milliseconds" : kind === "color" ? "a CSS colour" : list;
  console.warn(`<${localName}> ${name} must be ${expected}, not "${String(value)}"`);
}
