/** The launcher's button while its script is on the way. */

import { css } from "lit";

/** Of the base what a button needs; a test compares how the two look. */
export const earlyBaseStyles = css`
  * {
    box-sizing: border-box;
  }

  button {
    margin: 0;
    padding: 0;
    border: 0;
    font: inherit;
    cursor: pointer;
    touch-action: manipulation;
    -webkit-tap-highlight-color: transparent;
  }

  :focus-visible {
    outline: 2px solid var(--_ring);
  }

  .icon {
    fill: none;
    stroke: currentColor;
    stroke-width: 1.75;
    stroke-linecap: round;
    stroke-linejoin: round;
  }

  .icon.solid {
    fill: currentColor;
    stroke: none;
  }

  @media (prefers-reduced-motion: reduce) {
    * {
      animation: none !important;
      transition: none !important;
    }
  }
`;

/** It was pressed. */
export const earlyButtonStyles = css`
  [aria-busy="true"] .icon,
  [aria-busy="true"] ::slotted(*) {
    opacity: 0.5;
  }

  /* A slotted image is the page's: the rule above for those who want no motion does not reach it. */
  @media (prefers-reduced-motion: no-preference) {
    [aria-busy="true"] .icon,
    [aria-busy="true"] ::slotted(*) {
      animation: wait 600ms ease-in-out infinite alternate;
    }
  }

  @keyframes wait {
    from {
      opacity: 1;
    }
  }
`;
