/** The form that asks for the key. */

import { css } from "lit";

export const keyFormStyles = css`
  .key-form {
    display: grid;
    inline-size: 100%;
    max-inline-size: 400px;
    margin-inline: auto;
    padding: 8px;
  }

  /* Before the first message the form stands in the middle, on a phone as well. */
  .is-empty:has(.key-form) .scroller {
    flex: 0 1 auto;
    margin-block-start: auto;
  }

  .is-empty:has(.key-form) .dock {
    flex: none;
    margin-block-end: auto;
  }

  .key-form .mark {
    justify-self: center;
    margin-block-end: 12px;
  }

  .key-form h2 {
    font-size: 20px;
    font-weight: 600;
    line-height: 1.3;
    text-align: center;
  }

  .key-form p {
    margin-block: 6px 0;
    color: var(--_muted);
    font-size: 14px;
    line-height: 1.5;
    text-align: center;
    text-wrap: balance;
  }

  .key-form label {
    margin-block: 20px 6px;
    font-size: 14px;
    font-weight: 500;
  }

  .key-form input {
    inline-size: 100%;
    min-block-size: 44px;
    padding: 8px 14px;
    border: 1px solid var(--_border-strong);
    border-radius: var(--_radius);
    background: var(--_bg);
    color: inherit;
    font: 16px / 24px var(--_font);
  }

  .key-form input:focus-visible {
    outline-offset: -1px;
  }

  .key-form input[aria-invalid="true"] {
    border-color: var(--_danger);
    outline-color: var(--_danger);
  }

  .key-form .problem {
    color: var(--_danger);
    text-align: start;
  }

  .key-form .problem:empty {
    display: none;
  }

  .primary {
    display: flex;
    align-items: center;
    justify-content: center;
    gap: 8px;
    min-block-size: 44px;
    margin-block-start: 16px;
    padding: 8px 16px;
    border-radius: var(--_radius);
    background: var(--_accent);
    color: var(--_on-accent);
    font-size: 15px;
    font-weight: 600;
    transition: background-color 150ms;
  }

  @media (hover: hover) {
    .primary:enabled:hover {
      background: color-mix(in oklab, var(--_accent), black 12%);
    }
  }

  @media (forced-colors: active) {
    .primary {
      border: 1px solid ButtonText;
    }
  }
`;
