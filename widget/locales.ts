/** The languages beside English. Each is a chunk: nobody pays for what he does not read. */

import { loadChunk } from "./lazy-chunk.ts";
import { english, type Locale } from "./strings.ts";

/** Their codes, with commas. */
declare const PARLEY_LOCALES: string;

/**
 * The texts for a language tag such as `de-CH`: English where there is no such chunk, or where it cannot be loaded; then
 * `again` is called when it is time to ask once more.
 */
export async function loadLocale(tag: string, again: () => unknown): Promise<Locale> {
  const code = tag.toLowerCase().split("-")[0];
  if (!code || !PARLEY_LOCALES.split(",").includes(code)) return english;
  const chunk = await loadChunk(`locale-${code}` as "locale-de", again);
  return chunk?.locale ?? english;
}
