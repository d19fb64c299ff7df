import type { ReactiveController, ReactiveControllerHost } from "lit";

/** Keeps a chat that fills the page above a phone's keyboard, which on iOS covers a page without making it smaller. */
export class VisualViewportController implements ReactiveController {
  readonly #frame: () => HTMLElement | null;
  #listeners = new AbortController();

  /** `frame` is what is made smaller. */
  constructor(host: ReactiveControllerHost, frame: () => HTMLElement | null) {
    this.#frame = frame;
    host.addController(this);
  }

  hostConnected(): void {
    this.#listeners = new AbortController();
    const { signal } = this.#listeners;
    for (const type of ["resize", "scroll"]) window.visualViewport?.addEventListener(type, this.#fit, { signal });
  }

  hostDisconnected(): void {
    this.#listeners.abort();
  }

  /** What is left of the page is the visual viewport; zoomed by two fingers it is a detail, and nothing changes. */
  readonly #fit = (): void => {
    const frame = this.#frame();
    // Elsewhere the site or the launcher sees to it, and a change in the middle of a resize would lose the layout.
    const style = frame?.matches(":host([page]) *") ? frame.style : undefined;
    const { visualViewport } = window;
    if (!style || !visualViewport || visualViewport.scale > 1.01) return;
    style.setProperty("--_top", `${visualViewport.offsetTop}px`);
    style.setProperty("--_height", `${visualViewport.height}px`);
  };
}
