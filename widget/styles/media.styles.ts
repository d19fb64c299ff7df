/** Paper, and who wants more contrast. */

import { css } from "lit";

export const mediaStyles = css`
  @media (prefers-contrast: more) {
    :host {
      --_muted: var(--_text);
      --_subtle: var(--_text);
      --_border: var(--_border-strong);
    }
  }

  @media print {
    :host,
    :host([theme]) {
      color-scheme: light !important;
    }

    /* The whole conversation, over as many sheets as it takes. */
    :host([page]),
    :host([page]) :is(.chat, .scroller) {
      position: static;
      display: block;
      block-size: auto;
      overflow: visible;
    }

    /* What can only be pressed. A step says what the agent did, and an image what is not here. */
    .dock,
    .header::after,
    button:not(.step-row, .image) {
      display: none !important;
    }
  }
`;
