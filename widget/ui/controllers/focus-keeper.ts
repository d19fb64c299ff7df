import type { ReactiveController, ReactiveControllerHost } from "lit";

export interface FocusHost extends ReactiveControllerHost, HTMLElement {
  readonly renderRoot: HTMLElement | DocumentFragment;
  /** Resolves once the parts have been drawn as well. */
  readonly updateComplete: Promise<boolean>;
  readonly page: boolean;
  readonly embed: boolean;
  /** Whether the form that asks for a key is shown in place of the text field. */
  readonly asksForKey: boolean;
  focusComposer(): void;
}

/**
 * New content never moves the focus, and removed content never loses it: the text field gets it then, or the
 * conversation if the field would open an on-screen keyboard. The focus is never taken from another element of the
 * page.
 */
export class FocusKeeper implements ReactiveController {
  readonly #host: FocusHost;
  /** The element last focused in the chat or in slotted content of the page; absent once the user has left it. */
  #focused: Element | undefined;
  #askedForKey: boolean | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(host: FocusHost) {
    this.#host = host;
    host.addController(this);
    // A part may be redrawn without the element, and the pressed button may be gone.
    host.addEventListener("click", () => void host.updateComplete.then(() => this.#keep()));
  }

  hostConnected(): void {
    // Focus events that stay inside the shadow root do not reach the element itself.
    const { renderRoot } = this.#host;
    renderRoot.addEventListener("focusin", this.#entered);
    renderRoot.addEventListener("focusout", this.#left);
  }

  hostUpdated(): void {
    const { page, embed, asksForKey } = this.#host;
    const isFirst = this.#askedForKey === undefined;
    const hasChanged = asksForKey !== (this.#askedForKey ?? false);
    this.#askedForKey = asksForKey;
    if (isFirst || hasChanged) {
      const mayTake = isFirst && !hasChanged ? page && !embed && hasFinePointer() : page;
      void this.#host.updateComplete.then(() => (mayTake || this.#isLost) && this.#host.focusComposer());
    } else this.#keepSoon();
  }

  hostDisconnected(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const focused = this.#focused;
    this.#focused = undefined;
    // By then, an element that was only moved is connected again.
    queueMicrotask(() => {
      const active = deepActiveElement();
      if (active === focused) this.#focused = focused;
      else if (focused?.isConnected && isNothing(active)) (focused as HTMLElement).focus({ preventScroll: true });
    });
  }

  readonly #entered = (event: Event): void => {
    this.#focused = event.composedPath()[0] as Element;
  };

  /** The user has left the element, unless the element was removed, which is known only a moment later. */
  readonly #left = ({ target }: Event): void => {
    queueMicrotask(() => {
      if (this.#focused === target && isThere(this.#focused)) this.#focused = undefined;
    });
  };

  /** After the parts have been drawn. A timer, as awaiting each part on every update gets slower with each message. */
  #keepSoon(): void {
    if (!this.#focused) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#keep();
    });
  }

  #keep(): void {
    if (!this.#isLost) return;
    if (hasFinePointer()) this.#host.focusComposer();
    else this.#host.renderRoot.querySelector<HTMLElement>(".scroller")?.focus({ preventScroll: true });
  }

  /** Whether the focused element is gone and nothing else has the focus. */
  get #isLost(): boolean {
    const focused = this.#focused;
    if (!focused || isThere(focused)) return false;
    const active = deepActiveElement();
    // An element that has just been hidden loses the focus a moment later.
    return isNothing(active) || active === focused;
  }
}

/** Whether a text field can be focused without opening an on-screen keyboard. */
function hasFinePointer(): boolean {
  return matchMedia("(pointer: fine)").matches;
}

function isThere(element: Element): boolean {
  return element.isConnected && !element.closest("[hidden], :disabled");
}

/** Whether this active element means that nothing has the focus. */
function isNothing(active: Element | null): boolean {
  return active === null || active === document.body;
}

/** The focused element, also inside shadow roots. */
function deepActiveElement(): Element | null {
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  return active;
}
