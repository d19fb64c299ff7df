/** Keeps a chat that fills the page above a phone's keyboard, which covers a page without making it smaller on iOS. */

import type { ReactiveController, ReactiveControllerHost } from "lit";

export class KeyboardRoom implements ReactiveController {
  readonly #find: () => HTMLElement | null;

  constructor(host: ReactiveControllerHost, findFrame: () => HTMLElement | null) {
    this.#find = findFrame;
    host.addController(this);
  }

  hostConnected(): void {
    for (const type of ["resize", "scroll"]) window.visualViewport?.addEventListener(type, this.#fit);
  }

  hostDisconnected(): void {
    for (const type of ["resize", "scroll"]) window.visualViewport?.removeEventListener(type, this.#fit);
  }

  /** What is left of the page is the visual viewport; zoomed by two fingers it is a detail, and nothing changes. */
  readonly #fit = (): void => {
    const frame = this.#find();
    // Elsewhere it is the site's or the launcher's affair, and a change in the middle of a resize would lose the layout.
    const style = frame?.matches(":host([page]) *") ? frame.style : undefined;
    const { visualViewport } = window;
    if (!style || !visualViewport || visualViewport.scale > 1.01) return;
    style.setProperty("--_top", `${visualViewport.offsetTop}px`);
    style.setProperty("--_height", `${visualViewport.height}px`);
  };
}
