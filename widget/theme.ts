/** Light or dark: as around the element, or as the site asks, until the person chooses. */

import type { LitElement, ReactiveController } from "lit";
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

/** Sees whether an element is dark, whatever decided it: its theme, the site's style sheets or the system. */
export class ThemeWatcher implements ReactiveController {
  readonly #host: LitElement & { readonly theme: Theme };
  #dark = false;
  #seen: Theme | undefined;

  constructor(host: LitElement & { readonly theme: Theme }) {
    this.#host = host;
    host.addController(this);
  }

  get isDark(): boolean {
    const { theme } = this.#host;
    return theme === "auto" ? this.#dark : theme === "dark";
  }

  hostConnected(): void {
    // Nothing but a transition tells of a change.
    this.#host.renderRoot.addEventListener("transitionrun", this.#look);
    this.#look();
  }

  hostUpdated(): void {
    if (this.#host.theme !== this.#seen) this.#look();
  }

  readonly #look = (event?: Event): void => {
    if (event && (event as TransitionEvent).propertyName !== PROBE) return;
    this.#seen = this.#host.theme;
    const dark = getComputedStyle(this.#host).getPropertyValue(PROBE) === "rgb(255, 255, 255)";
    if (dark === this.#dark) return;
    this.#dark = dark;
    this.#host.requestUpdate();
  };
}
