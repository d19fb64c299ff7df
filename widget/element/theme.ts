import type { LitElement, ReactiveController } from "lit";
import { recall, remember } from "../storage/storage.ts";

/** `auto` follows the `color-scheme` around the element. */
type Theme = "auto" | "light" | "dark";

/** Followed by what the site asks for, if that is not `auto`: of two chats, one may be dark and the other light. */
const STORAGE_NAME = "agent-chat-theme";

/** Set by `styles/screen.css`: black in a light element, white in a dark one. */
const PROBE = "column-rule-color";

/** The watchers of all elements in the page. */
const watchers = new Set<ThemeWatcher>();

/**
 * Knows whether an element is dark, whatever decided it: its theme, the site's style sheets or the system. What the
 * person chooses holds for all elements of this origin of which the site asks the same, in other frames and tabs as
 * well, and on later visits.
 */
export class ThemeWatcher implements ReactiveController {
  readonly #host: LitElement & { theme: Theme };
  #isDark = false;
  #seenTheme: Theme | undefined;
  #storageName = STORAGE_NAME;
  #chosen: Theme | undefined;
  /** What `auto` was when it was left. */
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

  /** What `toggle` chooses: the other theme, and after both of them `auto`, where the site asks for that. */
  get next(): Theme {
    const { theme } = this;
    if (this.#chosen && theme === this.#around && this.#storageName === STORAGE_NAME) return "auto";
    return theme === "dark" ? "light" : "dark";
  }

  /** Remembers the next one as the person's choice. */
  toggle(): void {
    remember(this.#storageName, this.next);
    for (const watcher of watchers) watcher.#takeChoice({ key: this.#storageName });
  }

  hostConnected(): void {
    this.#followSite();
    this.#takeChoice({ key: this.#storageName });
    watchers.add(this);
    window.addEventListener("storage", this.#takeChoice);
    // Only a transition reports the change.
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

  /** Takes the person's choice, if it is the one that a `storage` event is about. */
  readonly #takeChoice = ({ key }: Pick<StorageEvent, "key">): void => {
    const value = key === this.#storageName && recall(key);
    if (value !== "light" && value !== "dark" && value !== "auto") return;
    if (!this.#chosen) this.#around = this.#isDarkNow ? "dark" : "light";
    this.#chosen = value === "auto" ? undefined : value;
    this.#host.theme = value;
  };

  /** Finds the choice that belongs to what the site asks for. */
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
