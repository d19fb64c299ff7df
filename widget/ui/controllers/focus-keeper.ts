import type { ReactiveController, ReactiveControllerHost } from "lit";

export interface FocusHost extends ReactiveControllerHost, HTMLElement {
  readonly renderRoot: HTMLElement | DocumentFragment;
  /** Resolves when the parts have been drawn, too. */
  readonly updateComplete: Promise<boolean>;
  readonly page: boolean;
  readonly embed: boolean;
  /** Whether the form that asks for a key is shown, in the place of the text field. */
  readonly asksForKey: boolean;
  focusComposer(): void;
}

/**
 * The focus never moves because something has arrived, and never falls out of the chat because something has gone: the
 * text field gets it then, or the conversation where that would open a keyboard. It is taken from nothing else in the
 * page.
 */
export class FocusKeeper implements ReactiveController {
  readonly #host: FocusHost;
  /** What had the focus last, in the chat or in what the page has put into it; absent once the person has left it. */
  #focused: Element | undefined;
  #askedForKey: boolean | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(host: FocusHost) {
    this.#host = host;
    host.addController(this);
    // A part may change without the element, and the button be gone that was pressed in it.
    host.addEventListener("click", () => void host.updateComplete.then(() => this.#keep()));
  }

  hostConnected(): void {
    // The element itself does not hear of a focus that moves inside its shadow root.
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
    // An element that is only moved is connected again by then.
    queueMicrotask(() => {
      const active = deepActiveElement();
      if (active === focused) this.#focused = focused;
      else if (focused?.isConnected && isNothing(active)) (focused as HTMLElement).focus({ preventScroll: true });
    });
  }

  readonly #entered = (event: Event): void => {
    this.#focused = event.composedPath()[0] as Element;
  };

  /** The person has gone elsewhere, unless it was the element that went: that is known a moment later. */
  readonly #left = ({ target }: Event): void => {
    queueMicrotask(() => {
      if (this.#focused === target && isThere(this.#focused)) this.#focused = undefined;
    });
  };

  /** Once the parts have been drawn: to ask each of them at every frame would cost more with each message. */
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

  /** Whether what had the focus is gone, and nothing else has it. */
  get #isLost(): boolean {
    const focused = this.#focused;
    if (!focused || isThere(focused)) return false;
    const active = deepActiveElement();
    // What has just been hidden loses the focus a moment later.
    return isNothing(active) || active === focused;
  }
}

/** Where a focused text field opens no keyboard over the page. */
function hasFinePointer(): boolean {
  return matchMedia("(pointer: fine)").matches;
}

function isThere(element: Element): boolean {
  return element.isConnected && !element.closest("[hidden], :disabled");
}

/** Whether this has the focus where nothing else has it. */
function isNothing(active: Element | null): boolean {
  return active === null || active === document.body;
}

/** What has the focus, inside shadow roots, too. */
function deepActiveElement(): Element | null {
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  return active;
}
