/** Makes texts fit to be shown to people in one line. */

export const MAX_TEXT_CHARS = 1_000;

/** Control characters, line breaks and bidirectional control characters. */
export const UNFIT = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]+/gu;

/** A text that a function made, perhaps from a model's words: in one line, without characters that mislead a reader. */
export function plainText(text: string): string {
  const line = text
    .slice(0, 10 * MAX_TEXT_CHARS)
    .toWellFormed()
    .replace(/\p{Bidi_Control}/gu, "")
    .replace(UNFIT, " ")
    .trim();
  return cutLine(line, MAX_TEXT_CHARS);
}

/** The line, cut to at most `max` characters. */
export function cutLine(line: string, max: number): string {
  return line.length > max ? `${line.slice(0, max - 1).toWellFormed()}…` : line;
}
