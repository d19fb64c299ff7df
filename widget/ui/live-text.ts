import { noChange } from "lit";
import { Directive, directive } from "lit/directive.js";

/**
 * A text that changes while it is shown. When a translator of pages has put elements into the place of a text, Lit does
 * not find it again, so each text is a node of its own.
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
