/** The focus never moves because something arrived, and never falls out of the chat because something went. */

import type { ReactiveController, ReactiveControllerHost } from "lit";

/** Where a focused text field opens no keyboard over the page. */
const finePointer = matchMedia("(pointer: fine)");

export interface FocusHost extends ReactiveControllerHost {
  readonly shadowRoot: ShadowRoot | null;
  readonly renderRoot: HTMLElement | DocumentFragment;
  readonly page: boolean;
  readonly embed: boolean;
  focusComposer(): void;
}

export class FocusKeeper implements ReactiveController {
  readonly #host: FocusHost;
  #hadFocus = false;
  #wasPrompted: boolean | undefined;

  constructor(host: FocusHost) {
    this.#host = host;
    host.addController(this);
  }

  hostUpdate(): void {
    this.#hadFocus = Boolean(this.#host.shadowRoot?.activeElement);
  }

  hostUpdated(): void {
    const { page, embed, renderRoot, shadowRoot } = this.#host;
    const isFirst = this.#wasPrompted === undefined;
    const isPrompted = renderRoot.querySelector("#key") !== null;
    // The form that asks for a key takes the text field's place, and the other way round.
    const isOther = isPrompted !== (this.#wasPrompted ?? false);
    this.#wasPrompted = isPrompted;
    const isGone = this.#hadFocus && !shadowRoot?.activeElement;
    const isDue = isFirst ? page && !embed : isGone;
    if (isOther ? page || isGone : isDue && finePointer.matches) this.#host.focusComposer();
  }
}
