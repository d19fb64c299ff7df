import type { ReactiveController, ReactiveControllerHost } from "lit";

/** Where a focused text field opens no keyboard over the page. */
const finePointer = matchMedia("(pointer: fine)");

export interface FocusHost extends ReactiveControllerHost, HTMLElement {
  /** Resolves when the parts have been drawn, too. */
  readonly updateComplete: Promise<boolean>;
  readonly page: boolean;
  readonly embed: boolean;
  /** Whether the form that asks for a key is shown, in the place of the text field. */
  readonly asksForKey: boolean;
  focusComposer(): void;
}

/** The focus never moves because something has arrived, and never falls out of the chat because something has gone. */
export class FocusKeeper implements ReactiveController {
  readonly #host: FocusHost;
  #hadFocus = false;
  #askedForKey: boolean | undefined;

  constructor(host: FocusHost) {
    this.#host = host;
    host.addController(this);
    host.addEventListener("click", () => this.hostUpdate(), { capture: true });
    // A part may have changed without the element, and the button be gone that was pressed in it.
    host.addEventListener("click", () => this.#keep());
  }

  hostUpdate(): void {
    this.#hadFocus = this.#hasFocus;
  }

  hostUpdated(): void {
    const { page, embed, asksForKey, updateComplete } = this.#host;
    const isFirst = this.#askedForKey === undefined;
    const hasChanged = asksForKey !== (this.#askedForKey ?? false);
    this.#askedForKey = asksForKey;
    if (isFirst || hasChanged) {
      const mayTake = isFirst && !hasChanged ? page && !embed && finePointer.matches : page;
      const hadFocus = this.#hadFocus;
      void updateComplete.then(() => (mayTake || (hadFocus && !this.#hasFocus)) && this.#host.focusComposer());
    } else this.#keep();
  }

  /** Gives the text field the focus if what has it now goes. Not where that would open a keyboard. */
  #keep(): void {
    if (!this.#hadFocus) return;
    void this.#host.updateComplete.then(() => {
      if (!this.#hasFocus && finePointer.matches) this.#host.focusComposer();
    });
  }

  /** What has just been hidden loses the focus a moment later. */
  get #hasFocus(): boolean {
    const focused = this.#host.shadowRoot?.activeElement;
    return Boolean(focused && !focused.closest("[hidden]"));
  }
}
