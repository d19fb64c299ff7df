import { noChange } from "lit";
import { Directive, directive } from "lit/directive.js";

/**
 * A text that changes while it is shown. Each text is a new node, because Lit cannot update a text node that a page
 * translator has replaced with elements.
 */
export const liveText = directive(
  class extends Directive {
    #shown: unknown;

    override render(text: string | undefined): unknown {
      if (text === this.#shown) return noChange;
      this.#shown = text;
      return text === undefined ? text : document.createTextNode(text);
    }
  },
);
