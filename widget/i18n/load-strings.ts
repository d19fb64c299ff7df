import type { Refusal } from "../conversations/messages.ts";
import { type Lazy, lazy } from "../loading/lazy.ts";
import { en, failures, failureText, type Locale, type Strings } from "./strings.ts";

/** Every language but English is loaded when it is first needed. */
const locales: Readonly<Record<string, Lazy<{ readonly locale: Locale }>>> = {
  ar: lazy(() => import("./locales/ar.ts"), "locale"),
  de: lazy(() => import("./locales/de.ts"), "locale"),
  es: lazy(() => import("./locales/es.ts"), "locale"),
  fr: lazy(() => import("./locales/fr.ts"), "locale"),
  it: lazy(() => import("./locales/it.ts"), "locale"),
  ja: lazy(() => import("./locales/ja.ts"), "locale"),
  pt: lazy(() => import("./locales/pt.ts"), "locale"),
  zh: lazy(() => import("./locales/zh.ts"), "locale"),
};

/** English texts of parts, for a page that has its own in place of some of them, and for what the server says of failures. */
export const partTexts = lazy(() => import("./add-part-texts.ts"));

/** See `failureText`. Resolves when the text is there, or cannot be loaded. */
export async function explain(failure: Refusal, strings: Strings): Promise<string> {
  if (!(failure.code in failures)) await partTexts.load().catch(() => undefined);
  return failureText(failure, strings);
}

/**
 * The texts for a language tag such as `de-CH`; English where there is no translation. Resolves when they are there,
 * however often that has to be tried, and to English when the signal aborts. `onFailure` is called when they could not
 * be loaded.
 */
export async function loadLocale(tag: string, signal?: AbortSignal, onFailure?: () => void): Promise<Locale> {
  // Readers of traditional characters get English rather than simplified ones.
  const [code = ""] = tag
    .toLowerCase()
    .replace(/^zh-(tw|hk|mo|hant)\b/, "")
    .split("-");
  const locale = Object.hasOwn(locales, code) ? locales[code] : undefined;
  return (await locale?.loadEventually(signal, onFailure))?.locale ?? en;
}
