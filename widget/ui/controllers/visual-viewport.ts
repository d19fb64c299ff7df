import type { ReactiveController, ReactiveControllerHost } from "lit";

/** Keeps a full-page element above the on-screen keyboard, which on iOS covers the page without resizing it. */
export class VisualViewportController implements ReactiveController {
  readonly #frame: () => HTMLElement | null;
  #listeners = new AbortController();

  /** `frame`: the element that is made smaller. */
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

  /** Fits `frame` to the visual viewport, unless the user has zoomed in: then that is only a detail of the page. */
  fit(): void {
    const { visualViewport } = window;
    const style = this.#frame()?.style;
    if (!style || !visualViewport || visualViewport.scale > 1.01) return;
    style.setProperty("--_top", `${visualViewport.offsetTop}px`);
    style.setProperty("--_height", `${visualViewport.height}px`);
  }
}
