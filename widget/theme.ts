/** Light or dark: as around the element, or as the site asks, until the person chooses. */

import { recall, remember } from "./storage.ts";

/** `auto` follows the `color-scheme` around the element. */
export type Theme = "auto" | "light" | "dark";

const STORAGE_NAME = "agent-chat-theme";

/** Set by styles/tokens.styles.ts: black in a light element, white in a dark one. */
const PROBE = "column-rule-color";

/** The person's own choice from an earlier visit. */
export function rememberedTheme(): "light" | "dark" | undefined {
  const value = recall(STORAGE_NAME);
  return value === "light" || value === "dark" ? value : undefined;
}

export function rememberTheme(theme: "light" | "dark"): void {
  remember(STORAGE_NAME, theme);
}

/** What an element looks like right now, whatever decided it: its theme, the site's style sheets or the system. */
export function isDark(element: Element): boolean {
  return getComputedStyle(element).getPropertyValue(PROBE) === "rgb(255, 255, 255)";
}

/** Calls back when what is below `root` turned light or dark. Nothing but a transition tells of it. */
export function watchTheme(root: Node, onChange: () => void): void {
  root.addEventListener("transitionrun", (event) => {
    if ((event as TransitionEvent).propertyName === PROBE) onChange();
  });
}
