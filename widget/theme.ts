/** Light or dark: what the site asks for, until the person chooses. */

import { recall, remember } from "./storage.ts";

/** `auto` follows the system. */
export type Theme = "auto" | "light" | "dark";

const STORAGE_NAME = "agent-chat-theme";

/** The person's own choice from an earlier visit. */
export function rememberedTheme(): "light" | "dark" | undefined {
  const value = recall(STORAGE_NAME);
  return value === "light" || value === "dark" ? value : undefined;
}

export function rememberTheme(theme: "light" | "dark"): void {
  remember(STORAGE_NAME, theme);
}

/** What the system asks for; tells by `change` when that changes. */
export const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

/** What a theme looks like right now. */
export function isDark(theme: Theme): boolean {
  return theme === "auto" ? systemIsDark.matches : theme === "dark";
}
