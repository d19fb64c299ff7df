import type { ReactiveController, ReactiveControllerHost } from "lit";

/** Keeps what fills the page above a phone's keyboard, which on iOS covers a page without making it smaller. */
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
    for (const type of ["resize", "scroll"])
      window.visualViewport?.addEventListener(type, () => this.fit(), { signal });
  }

  hostDisconnected(): void {
    this.#listeners.abort();
  }

  /** What is left of the page is the visual viewport; zoomed by two fingers it is a detail, and nothing changes. */
  fit(): void {
    const { visualViewport } = window;
    const style = this.#frame()?.style;
    if (!style || !visualViewport || visualViewport.scale > 1.01) return;
    style.setProperty("--_top", `${visualViewport.offsetTop}px`);
    style.setProperty("--_height", `${visualViewport.height}px`);
  }
}
