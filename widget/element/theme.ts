import type { LitElement, ReactiveController } from "lit";
import { recall, remember } from "../storage/storage.ts";

/** `auto` follows the `color-scheme` around the element. */
type Theme = "auto" | "light" | "dark";

/** Followed by the site's theme, unless that is `auto`: one chat may be dark by default, and another one light. */
const STORAGE_NAME = "agent-chat-theme";

/** The CSS property that `styles/screen.css` sets to black in a light element, and to white in a dark one. */
const PROBE = "column-rule-color";

/** The watchers of all elements in the page. */
const watchers = new Set<ThemeWatcher>();

/**
 * Knows whether an element is dark, no matter whether its theme, the site's style sheets or the system decided that.
 * The user's choice applies to all elements of this origin for which the site sets the same theme, also in other frames
 * and tabs and on later visits.
 */
export class ThemeWatcher implements ReactiveController {
  readonly #host: LitElement & { theme: Theme };
  #isDark = false;
  #seenTheme: Theme | undefined;
  #storageName = STORAGE_NAME;
  #chosen: Theme | undefined;
  /** The theme that `auto` resulted in when the user chose another one. */
  #around: Theme = "light";

  constructor(host: LitElement & { theme: Theme }) {
    this.#host = host;
    host.addController(this);
  }

  get theme(): "light" | "dark" {
    const { theme } = this.#host;
    if (theme !== "auto") return theme;
    return this.#isDark ? "dark" : "light";
  }

  /** The theme that `toggle` chooses: the other one, or after both of them `auto` if that is the site's theme. */
  get next(): Theme {
    const { theme } = this;
    if (this.#chosen && theme === this.#around && this.#storageName === STORAGE_NAME) return "auto";
    return theme === "dark" ? "light" : "dark";
  }

  /** Stores the next theme as the user's choice, and applies it. */
  toggle(): void {
    remember(this.#storageName, this.next);
    for (const watcher of watchers) watcher.#takeChoice({ key: this.#storageName });
  }

  hostConnected(): void {
    this.#followSite();
    this.#takeChoice({ key: this.#storageName });
    watchers.add(this);
    window.addEventListener("storage", this.#takeChoice);
    // Only a transition event reports that the colours have changed.
    this.#host.renderRoot.addEventListener("transitionrun", this.#look);
    this.#look();
  }

  hostUpdated(): void {
    if (this.#host.theme === this.#seenTheme) return;
    this.#followSite();
    this.#look();
  }

  hostDisconnected(): void {
    watchers.delete(this);
    window.removeEventListener("storage", this.#takeChoice);
  }

  /** Applies the user's stored choice, if `key` is its name. */
  readonly #takeChoice = ({ key }: Pick<StorageEvent, "key">): void => {
    const value = key === this.#storageName && recall(key);
    if (value !== "light" && value !== "dark" && value !== "auto") return;
    if (!this.#chosen) this.#around = this.#isDarkNow ? "dark" : "light";
    this.#chosen = value === "auto" ? undefined : value;
    this.#host.theme = value;
  };

  /** Finds the name under which the choice for the site's theme is stored. */
  #followSite(): void {
    const { theme } = this.#host;
    if (theme === this.#chosen) return;
    this.#chosen = undefined;
    this.#storageName = theme === "auto" ? STORAGE_NAME : `${STORAGE_NAME}-${theme}`;
  }

  readonly #look = (event?: Event): void => {
    if (event && (event as TransitionEvent).propertyName !== PROBE) return;
    this.#seenTheme = this.#host.theme;
    const isDark = this.#isDarkNow;
    if (isDark === this.#isDark) return;
    this.#isDark = isDark;
    this.#host.requestUpdate();
  };

  get #isDarkNow(): boolean {
    return getComputedStyle(this.#host).getPropertyValue(PROBE) === "rgb(255, 255, 255)";
  }
}
