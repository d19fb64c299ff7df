import type { LitElement, ReactiveController } from "lit";

/** A press sooner than this after a move was meant for whatever was there before. */
const STILL_FOR_MS = 500;

/** How often the position is checked: no event says that the page has moved the part. */
const LOOK_EVERY_MS = 100;

/**
 * Ignores pointer presses on some buttons of a part until the part has not moved for a while. Until then its first
 * child has the attribute `data-settling`. Key presses count at once, as the focus moves with its button.
 */
export class Standstill implements ReactiveController {
  readonly #host: LitElement;
  readonly #buttons: string;
  #box = "";
  #movedAt = 0;
  /** Whether the current press began too early. */
  #isEarly = false;
  #timer: ReturnType<typeof setInterval> | undefined;

  /** `buttons`: CSS selector of the buttons that are protected. */
  constructor(host: LitElement, buttons: string) {
    this.#host = host;
    this.#buttons = buttons;
    host.addController(this);
    host.addEventListener("pointerdown", () => {
      this.#isEarly = !this.#isStill();
    });
    host.addEventListener("click", (event) => this.#clicked(event), { capture: true });
  }

  hostConnected(): void {
    this.#box = "";
    this.#timer = setInterval(() => this.#isStill(), LOOK_EVERY_MS);
  }

  hostUpdated(): void {
    this.#isStill();
  }

  hostDisconnected(): void {
    clearInterval(this.#timer);
  }

  #clicked(event: MouseEvent): void {
    const isEarly = this.#isEarly || !this.#isStill();
    this.#isEarly = false;
    // Keys and assistive technology click without a pointer.
    const isPress = event.detail > 0 && (event.target as Element).closest(this.#buttons);
    if (isPress && isEarly) event.stopPropagation();
  }

  #isStill(): boolean {
    const { x, y, width, height } = this.#host.getBoundingClientRect();
    const box = [x, y, width, height].map(Math.round).join();
    const now = performance.now();
    if (box !== this.#box) this.#movedAt = now;
    this.#box = box;
    const isStill = now - this.#movedAt >= STILL_FOR_MS;
    this.#host.firstElementChild?.toggleAttribute("data-settling", !isStill);
    return isStill;
  }
}
