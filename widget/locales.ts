import type { Strings } from "./strings.ts";
export async function loadLocale(_tag: string): Promise<Strings | undefined> {
  return undefined;
}
