/** A text of the agent's author in a language tag, else in a wider one (`de` for `de-CH`), in English, or the first one. */
export function textFor(text: unknown, tag: string): string {
  if (typeof text !== "object" || !text) return String(text);
  const texts = text as Record<string, string>;
  for (let wider = tag; wider; wider = wider.slice(0, Math.max(wider.lastIndexOf("-"), 0))) {
    const text = texts[wider];
    if (text) return text;
  }
  return texts.en ?? Object.values(texts)[0] ?? "";
}
