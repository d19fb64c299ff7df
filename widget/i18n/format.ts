/** Sizes, times and counted things, as people read them in a language. */

type PluralForms = Partial<Record<Intl.LDMLPluralRule, string>> & { readonly other: string };

/** A function that picks the form for a number, and puts the number in the place of `#`. */
export function pluralsOf(lang: string): (count: number, forms: PluralForms) => string {
  const rules = new Intl.PluralRules(lang);
  return (count, forms) => (forms[rules.select(count)] ?? forms.other).replace("#", count.toLocaleString(lang));
}

/** "20 MB", "512 bytes", in the binary units that the limits are given in. */
export function formatBytes(bytes: number, lang: string): string {
  if (bytes < 1024) return formatUnit(bytes, "byte", lang);
  const kilobytes = bytes / 1024;
  return kilobytes < 1024 ? formatUnit(kilobytes, "kilobyte", lang) : formatUnit(kilobytes / 1024, "megabyte", lang);
}

/** "3s", "2m 5s". */
export function formatSeconds(seconds: number, lang: string): string {
  const whole = Math.round(seconds);
  const rest = formatUnit(whole % 60, "second", lang);
  return whole < 60 ? rest : `${formatUnit(Math.floor(whole / 60), "minute", lang)} ${rest}`;
}

/** "14:02", of a time in milliseconds. */
export function formatTime(time: number, lang: string): string {
  return new Date(time).toLocaleTimeString(lang, { timeStyle: "short" });
}

/** Calendar days since a time in milliseconds. */
export function daysSince(time: number): number {
  const today = new Date().setHours(0, 0, 0, 0);
  return Math.max(0, Math.round((today - new Date(time).setHours(0, 0, 0, 0)) / 86_400_000));
}

/** "26 November 2026 at 14:02". */
export function formatMoment(time: number, lang: string): string {
  return new Date(time).toLocaleString(lang, { dateStyle: "long", timeStyle: "short" });
}

/** "today 14:02", "yesterday 14:02", or the date. */
export function formatRecent(time: number, lang: string): string {
  const days = daysSince(time);
  if (days > 1) return formatMoment(time, lang);
  return `${new Intl.RelativeTimeFormat(lang, { numeric: "auto" }).format(-days, "day")} ${formatTime(time, lang)}`;
}

/** At most one fraction digit, and at least `digits`. Times have the narrow form, except in Japanese, which has none. */
export function formatUnit(value: number, unit: string, lang: string, digits = 0): string {
  return value.toLocaleString(lang, {
    style: "unit",
    unit,
    unitDisplay: unit === "byte" ? "long" : /byte|ja/.test(unit + lang) ? "short" : "narrow",
    minimumFractionDigits: digits,
    maximumFractionDigits: 1,
  });
}
