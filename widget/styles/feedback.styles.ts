/** Thumbs on answers, and the form that asks why. */

import { css } from "lit";

export const feedbackStyles = css`
  .answer-actions {
    flex-wrap: wrap;
    align-items: center;
  }

  .upside-down {
    rotate: 180deg;
  }

  /* What the person thinks of it is seen without looking for it. */
  .message .answer-actions:has([aria-pressed="true"]) .icon-button {
    opacity: 1;
  }

  .answer-actions [aria-pressed="true"] {
    color: var(--_text);
  }

  [aria-pressed="true"] > .icon {
    fill: color-mix(in oklab, currentColor 30%, transparent);
  }

  .thanks {
    padding-inline-start: 6px;
    color: var(--_muted);
    font-size: 13px;
  }

  .feedback-form {
    display: grid;
    flex: 1 1 100%;
    gap: 10px;
    margin-block: 6px 8px;
    /* In line with the text. */
    margin-inline-start: 8px;
    padding: 14px 16px;
    border: 1px solid var(--_border);
    border-radius: var(--_radius);
    font-size: 14px;
    line-height: 1.4;
    animation: rise 150ms cubic-bezier(0.32, 0.72, 0, 1);
    scroll-margin: 16px;
  }

  .feedback-form fieldset,
  .choices {
    display: flex;
    flex-wrap: wrap;
    gap: 8px;
    min-inline-size: 0;
    margin: 0;
    padding: 0;
    border: 0;
  }

  .feedback-form legend {
    margin-block-end: 10px;
    padding: 0;
    font-weight: 500;
  }

  .choice {
    position: relative;
    display: grid;
    align-items: center;
    min-block-size: 32px;
    padding: 4px 12px;
    border: 1px solid var(--_border-strong);
    border-radius: var(--_pill);
    color: var(--_muted);
    cursor: pointer;
  }

  .choice input {
    position: absolute;
    inset: 0;
    margin: 0;
    border-radius: inherit;
    appearance: none;
    cursor: inherit;
  }

  .choice:has(:checked) {
    border-color: var(--_accent);
    background: color-mix(in oklab, var(--_accent) 14%, transparent);
    color: var(--_text);
  }

  .choice:has(:focus-visible) {
    outline: 2px solid var(--_ring);
    outline-offset: 2px;
  }

  .choice input:focus-visible {
    outline: none;
  }

  .feedback-form textarea {
    min-inline-size: 0;
    max-block-size: 160px;
    padding: 8px 12px;
    border: 1px solid var(--_border-strong);
    border-radius: calc(10px * var(--_round));
    background: var(--_bg);
    color: var(--_text);
    /* Smaller, and an iPhone enlarges the page. */
    font: 16px / 1.4 var(--_font);
    field-sizing: content;
    resize: none;
  }

  .feedback-form textarea::placeholder {
    color: var(--_subtle);
  }

  .feedback-form .sends {
    border-color: transparent;
    background: var(--_accent);
    color: var(--_on-accent);
  }

  @media (hover: hover) {
    .choice:hover {
      color: var(--_text);
    }

    .feedback-form .sends:hover {
      background: color-mix(in oklab, var(--_accent), black 12%);
    }
  }

  @media (pointer: coarse) {
    .feedback-form {
      margin-inline-start: 14px;
    }

    .choice {
      min-block-size: 44px;
    }
  }

  @media (forced-colors: active) {
    .choice:has(:checked),
    .answer-actions [aria-pressed="true"] {
      outline: 2px solid Highlight;
    }
  }

  @media print {
    .feedback-form,
    .thanks {
      display: none;
    }
  }
`;
