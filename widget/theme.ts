/** Light or dark: as around the element, or as the site asks, until the person chooses. */

import type { LitElement, ReactiveController } from "lit";
import { recall, remember } from "./storage.ts";

/** `auto` follows the `color-scheme` around the element. */
export type Theme = "auto" | "light" | "dark";

/** Followed by what the site asks for, if that is not `auto`: of two chats of which one is to be dark, the other may be light. */
const STORAGE_NAME = "agent-chat-theme";

/** Set by styles/tokens.styles.ts: black in a light element, white in a dark one. */
const PROBE = "column-rule-color";

/** Those of all elements in the page. */
const watchers = new Set<ThemeWatcher>();

/**
 * Sees whether an element is dark, whatever decided it: its theme, the site's style sheets or the system. What the person chooses
 * holds for all elements of this origin of which the site asks the same, in other frames and tabs as well, and on later visits.
 */
export class ThemeWatcher implements ReactiveController {
  readonly #host: LitElement & { theme: Theme };
  #dark = false;
  #seen: Theme | undefined;
  #place = STORAGE_NAME;
  #chosen: Theme | undefined;

  constructor(host: LitElement & { theme: Theme }) {
    this.#host = host;
    host.addController(this);
  }

  get isDark(): boolean {
    const { theme } = this.#host;
    return theme === "auto" ? this.#dark : theme === "dark";
  }

  /** Remembers the other one as the person's choice. */
  toggle(): void {
    remember(this.#place, this.isDark ? "light" : "dark");
    for (const { takeUp } of watchers) takeUp({ key: this.#place });
  }

  hostConnected(): void {
    this.#heedSite();
    this.takeUp({ key: this.#place });
    watchers.add(this);
    window.addEventListener("storage", this.takeUp);
    // Nothing but a transition tells of a change.
    this.#host.renderRoot.addEventListener("transitionrun", this.#look);
    this.#look();
  }

  hostUpdated(): void {
    if (this.#host.theme === this.#seen) return;
    this.#heedSite();
    this.#look();
  }

  hostDisconnected(): void {
    watchers.delete(this);
    window.removeEventListener("storage", this.takeUp);
  }

  /** Takes the person's choice, if it is the one that a `storage` event tells of. */
  readonly takeUp = ({ key }: Pick<StorageEvent, "key">): void => {
    const value = key === this.#place && recall(key);
    if (value === "light" || value === "dark") this.#chosen = this.#host.theme = value;
  };

  #heedSite(): void {
    const { theme } = this.#host;
    if (theme === this.#chosen) return;
    this.#chosen = undefined;
    this.#place = theme === "auto" ? STORAGE_NAME : `${STORAGE_NAME}-${theme}`;
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
