import { type Lazy, lazy } from "../loading/lazy.ts";
import { en, type Locale } from "./strings.ts";

/** Every language but English is loaded when it is first needed. */
const locales: Readonly<Record<string, Lazy<{ readonly locale: Locale }>>> = {
  ar: lazy(() => import("./locales/ar.ts")),
  de: lazy(() => import("./locales/de.ts")),
  es: lazy(() => import("./locales/es.ts")),
  fr: lazy(() => import("./locales/fr.ts")),
  it: lazy(() => import("./locales/it.ts")),
  ja: lazy(() => import("./locales/ja.ts")),
  pt: lazy(() => import("./locales/pt.ts")),
  zh: lazy(() => import("./locales/zh.ts")),
};

/**
 * The texts for a language tag such as `de-CH`; English where there is no translation. Resolves when they are there,
 * however often that has to be tried, and to English when the signal aborts. `onFailure` is called when they could not
 * be loaded.
 */
export async function loadLocale(tag: string, signal?: AbortSignal, onFailure?: () => void): Promise<Locale> {
  const [code = ""] = tag.toLowerCase().split("-");
  const locale = Object.hasOwn(locales, code) ? locales[code] : undefined;
  return (await locale?.loadEventually(signal, onFailure))?.locale ?? en;
}
