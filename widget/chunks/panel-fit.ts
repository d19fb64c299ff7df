/** How the launcher's panel stands on the screen: beside the page, or over all of it, and above a keyboard. */

import type { LauncherHost } from "./launcher-view.ts";

/** Where the panel fills the screen, and is modal: too small for a page beside it. */
export const smallScreen = matchMedia("(width <= 480px), (height <= 480px) and (pointer: coarse)");

export class PanelFit {
  readonly #host: LauncherHost;
  readonly #isOpen: () => boolean;

  constructor(host: LauncherHost, isOpen: () => boolean) {
    this.#host = host;
    this.#isOpen = isOpen;
  }

  get panel(): HTMLDialogElement | null {
    return this.#host.renderRoot.querySelector("dialog");
  }

  /** Follows the screen until it is told to end. */
  listen(signal: AbortSignal): void {
    smallScreen.addEventListener("change", () => this.apply(), { signal });
    visualViewport?.addEventListener("resize", () => this.#fitKeyboard(), { signal });
    visualViewport?.addEventListener("scroll", () => this.#fitKeyboard(), { signal });
  }

  /** Beside the page the panel is an ordinary dialog; where it fills the screen, the page behind it is out of reach. */
  apply(): void {
    const { panel } = this;
    if (!panel) return;
    const isOpen = this.#isOpen();
    const modal = smallScreen.matches;
    const hadFocus = isOpen && document.activeElement === this.#host;
    if (panel.open && !(isOpen && panel.matches(":modal") === modal)) panel.close();
    if (isOpen && !panel.open) {
      if (modal) panel.showModal();
      // Not `show()`, which moves the focus.
      else panel.open = true;
      if (hadFocus) this.#host.chat?.focusComposer();
    }
    this.#fitKeyboard();
  }

  /** A phone's keyboard covers a page without making it smaller; what is left is the visual viewport. */
  #fitKeyboard(): void {
    const style = this.panel?.style;
    // Zoomed by two fingers, the visual viewport is a detail of the page.
    if (!style || !visualViewport || visualViewport.scale > 1.01) return;
    style.setProperty("--_top", `${visualViewport.offsetTop}px`);
    style.setProperty("--_height", `${visualViewport.height}px`);
  }
}
