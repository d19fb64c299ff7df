import { formatSeconds, formatUnit } from "./format.ts";

/** "1.2s", "2m 5s": durations of at least a second. */
export function formatDuration(milliseconds: number, lang: string): string {
  if (milliseconds < 9950) return formatUnit(milliseconds / 1000, "second", lang, 1);
  return formatSeconds(milliseconds / 1000, lang);
}
