/** The languages beside English. Each is a chunk: nobody pays for what he does not read. */

import { loadChunk } from "./lazy-chunk.ts";
import { english, type Locale } from "./strings.ts";

/** The texts for a language tag such as `de-CH`: English where there is no such chunk, or where it cannot be loaded. */
export async function loadLocale(tag: string): Promise<Locale> {
  const code = tag.toLowerCase().split("-")[0];
  // Whether there is one, the build knows.
  const chunk = await loadChunk(`locale-${code}` as "locale-de");
  return chunk?.locale ?? english;
}
