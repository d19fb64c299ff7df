/** What every part stands on: resets, buttons, focus, icons. */

import { css } from "lit";

export const baseStyles = css`
  *,
  *::before,
  *::after {
    box-sizing: border-box;
    scrollbar-width: thin;
  }

  [hidden] {
    display: none !important;
  }

  button {
    margin: 0;
    padding: 0;
    border: 0;
    background: none;
    color: inherit;
    font: inherit;
    text-align: inherit;
    cursor: pointer;
    touch-action: manipulation;
    -webkit-tap-highlight-color: transparent;
  }

  button:disabled {
    cursor: default;
  }

  /* A finger sees nothing else of its press. */
  button:enabled:active {
    opacity: 0.6;
  }

  /* Named, because lists and paragraphs of Markdown are not ours to reset. */
  :where(p, h2, .suggestions, .draft-files, .sent-files, .reasons) {
    margin: 0;
  }

  :where(.suggestions, .draft-files, .sent-files, .reasons) {
    padding: 0;
    list-style: none;
  }

  :focus-visible {
    outline: 2px solid var(--_ring);
    outline-offset: 2px;
  }

  .icon {
    display: block;
    flex: none;
    inline-size: 20px;
    block-size: 20px;
    fill: none;
    stroke: currentColor;
    stroke-width: 1.75;
    stroke-linecap: round;
    stroke-linejoin: round;
  }

  :is(.avatar, .small-button, .answer-actions) .icon {
    inline-size: 16px;
    block-size: 16px;
  }

  .icon.solid {
    fill: currentColor;
    stroke: none;
  }

  .icon-button {
    display: grid;
    flex: none;
    place-items: center;
    inline-size: 36px;
    block-size: 36px;
    border-radius: calc(10px * var(--_round));
    color: var(--_muted);
    transition:
      background-color 150ms,
      color 150ms;
  }

  .icon-button:disabled {
    opacity: 0.4;
  }

  .visually-hidden {
    position: absolute;
    inline-size: 1px;
    block-size: 1px;
    overflow: hidden;
    clip-path: inset(50%);
    white-space: nowrap;
  }

  .avatar {
    display: grid;
    flex: none;
    place-items: center;
    inline-size: 28px;
    block-size: 28px;
    border-radius: calc(50% * var(--_round));
    background: var(--_accent);
    color: var(--_on-accent);
  }

  /* An edge for an accent that is as the background is. */
  .avatar,
  .filled:enabled {
    box-shadow: inset 0 0 0 1px color-mix(in oklab, currentColor 10%, transparent);
  }

  /* What a screen is about, large and bare. */
  .mark {
    color: var(--_ring);
  }

  .mark .icon {
    inline-size: 40px;
    block-size: 40px;
  }

  .small-button {
    display: inline-flex;
    flex: none;
    align-items: center;
    gap: 6px;
    min-block-size: 32px;
    padding: 4px 12px;
    border: 1px solid color-mix(in oklab, currentColor 40%, transparent);
    border-radius: var(--_pill);
    font-size: 13px;
    font-weight: 500;
    transition: background-color 150ms;
  }

  .spinner {
    animation: spin 800ms linear infinite;
  }

  .spinner .track {
    opacity: 0.25;
  }

  @keyframes spin {
    to {
      rotate: 1turn;
    }
  }

  @media (hover: hover) {
    .icon-button:where(:enabled):hover,
    .small-button:hover {
      background: color-mix(in oklab, currentColor 10%, transparent);
    }

    .icon-button:where(:enabled):hover {
      color: var(--_text);
    }

    .round.filled:enabled:hover {
      background: color-mix(in oklab, var(--_accent), black 12%);
    }
  }

  @media (pointer: coarse) {
    .icon-button {
      inline-size: 44px;
      block-size: 44px;
    }

    .small-button {
      min-block-size: 44px;
    }
  }

  @media (prefers-reduced-motion: reduce) {
    *,
    *::before,
    *::after {
      animation: none !important;
      transition: none !important;
      scroll-behavior: auto !important;
    }
  }

  @media (forced-colors: active) {
    :host {
      /* Gradients keep their colours there: one that is not the background's would be a stripe. */
      --_bg: Canvas;
    }

    .icon-button,
    .avatar {
      border: 1px solid ButtonText;
    }
  }
`;
