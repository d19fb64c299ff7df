/** Attributes that take one of a few words, and what a page is told that uses another one. */

/** The first word is the default. */
export const CHOICES = {
  theme: ["auto", "light", "dark"],
  density: ["normal", "compact", "spacious"],
  corners: ["round", "soft", "sharp"],
  position: ["bottom-end", "bottom-start", "top-end", "top-start"],
  icon: ["chat", "spark", "question"],
  size: ["medium", "small", "large"],
} as const;

export type Choice<Name extends keyof typeof CHOICES> = (typeof CHOICES)[Name][number];

/** Tells the page's author of a wrong value; the page's visitors must not suffer from it. */
export function reportAttribute(
  element: Element,
  name: string,
  value: unknown,
  expected: string,
): void {
  console.error(`<${element.localName}> ${name} must be ${expected}, not "${value}"`);
}

/** The value, if it is one of the words that the attribute takes, and the default otherwise. */
export function checkedChoice<Name extends keyof typeof CHOICES>(
  element: Element,
  name: Name,
  value: unknown,
): Choice<Name> {
  const words: readonly string[] = CHOICES[name];
  if (words.includes(value as string)) return value as Choice<Name>;
  // Without a value it was taken away, which is no mistake.
  if (value) reportAttribute(element, name, value, `one of ${words.join(", ")}`);
  return words[0] as Choice<Name>;
}
