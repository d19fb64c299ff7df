/** Sizes, times and lists, as people read them in the language of the element. */

import { strings } from "./strings.ts";

/** "20 MB", "512B", in the binary units that the limits are given in. */
export function formatBytes(bytes: number): string {
  if (bytes < 1024) return format(bytes, "byte");
  return bytes >= 1024 * 1024 ? format(bytes / 1024 / 1024, "megabyte") : format(bytes / 1024, "kilobyte");
}

/** "340ms", "1.2s", "2m 5s". */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1000) return format(Math.round(milliseconds), "millisecond");
  const seconds = milliseconds / 1000;
  if (seconds < 9.95) return format(seconds, "second", 1);
  const whole = Math.round(seconds);
  const rest = format(whole % 60, "second");
  return whole < 60 ? rest : `${format(Math.floor(whole / 60), "minute")} ${rest}`;
}

/** One digit after the point at most, and `digits` at least. Sizes keep their space, times are written closely. */
function format(value: number, unit: string, digits = 0): string {
  return value.toLocaleString(strings.lang, {
    style: "unit",
    unit,
    unitDisplay: /.byte/.test(unit) ? "short" : "narrow",
    minimumFractionDigits: digits,
    maximumFractionDigits: 1,
  });
}
