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

/** English texts of lazy parts, also needed when a page replaces one of them, or to explain a failure. */
export const partTexts = lazy(() => import("./add-part-texts.ts"));

/** Like `failureText`, but loads the text first if it is missing. Never rejects. */
export async function explain(failure: Refusal, strings: Strings): Promise<string> {
  if (!(failure.code in failures)) await partTexts.load().catch(() => undefined);
  return failureText(failure, strings);
}

/**
 * The texts for a language tag such as `de-CH`; English if there is no translation, or when the signal aborts. Loading
 * is retried until it succeeds; `onFailure` is called after each failed attempt.
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
