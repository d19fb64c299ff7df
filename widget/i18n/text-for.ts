/** A text of the agent's author for a reader of this language: their own, else the one of a wider tag, English, or the first. */
export function textFor(text: unknown, tag: string): string {
  if (typeof text !== "object" || !text) return String(text);
  const texts = text as Record<string, string>;
  for (let wider = tag; wider; wider = wider.slice(0, Math.max(wider.lastIndexOf("-"), 0))) {
    const text = texts[wider];
    if (text) return text;
  }
  return texts.en ?? Object.values(texts)[0] ?? "";
}
