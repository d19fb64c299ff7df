/** Thinking and tool calls: rows that open. */

import { css } from "lit";

export const stepStyles = css`
  .steps {
    --_success: var(--agent-chat-success, light-dark(#067647, #5ad58d));
  }

  .folds > .steps-body {
    margin-inline-start: 8px;
    padding-inline-start: 14px;
    border-inline-start: 1px solid var(--_border);
  }

  .step-row {
    display: flex;
    align-items: center;
    gap: 8px;
    max-inline-size: 100%;
    min-block-size: 32px;
    margin-inline-start: -6px;
    padding: 4px 6px;
    border-radius: calc(8px * var(--_round));
    color: var(--_muted);
    font-size: 14px;
    line-height: 1.4;
    transition: color 150ms;
  }

  :is(.step-row, .data-head) .icon {
    inline-size: 16px;
    block-size: 16px;
    stroke-width: 2;
  }

  .step-name {
    overflow: hidden;
    font-weight: 500;
    text-overflow: ellipsis;
    white-space: nowrap;
  }

  /* Gives way before the name does. */
  .hint {
    flex-shrink: 1e6;
    min-inline-size: 0;
    overflow: hidden;
    color: var(--_subtle);
    font-size: 13px;
    text-overflow: ellipsis;
    white-space: nowrap;
  }

  .hint:empty {
    display: none;
  }

  [data-status="completed"] > .step-row .step-icon {
    color: var(--_success);
  }

  [data-status="failed"] > .step-row .step-icon {
    color: var(--_danger);
  }

  .aside {
    flex: none;
    color: var(--_subtle);
    font-size: 13px;
    font-variant-numeric: tabular-nums;
  }

  .chevron {
    color: var(--_subtle);
    transition: rotate 150ms cubic-bezier(0.32, 0.72, 0, 1);
  }

  .chevron:dir(rtl) {
    scale: -1 1;
  }

  .step-row[aria-expanded="true"] .chevron {
    rotate: 90deg;
  }

  /* Light that wanders over the letters: what goes on is readable all the time. */
  .shimmer {
    background: linear-gradient(90deg, var(--_muted) 40%, var(--_border-strong), var(--_muted) 60%) 100% 0 / 300% 100%;
    background-clip: text;
    color: transparent;
    animation: shimmer 2s linear infinite;
  }

  .step-body {
    margin-block: 4px 8px;
    animation: rise 150ms cubic-bezier(0.32, 0.72, 0, 1);
  }

  /* Reversed, so that the newest thoughts stay in view without a script; and no line is cut. */
  .thoughts {
    display: flex;
    flex-direction: column-reverse;
    max-block-size: 11lh;
    margin-inline-start: 7px;
    padding-inline-start: 15px;
    overflow: auto;
    border-inline-start: 2px solid var(--_border);
    color: var(--_muted);
    font-size: 14px;
    line-height: 1.6;
    white-space: pre-wrap;
    /* Along the way that can be scrolled: what is out of view above fades away, and nothing where there is none. */
    animation: fade linear;
    animation-timeline: scroll(self);
  }

  @keyframes fade {
    from,
    95% {
      mask-image: linear-gradient(transparent, #000 32px);
    }
  }

  .details {
    display: grid;
    overflow: hidden;
    border: 1px solid var(--_border);
    border-radius: var(--_radius);
    background: var(--_sunken);
  }

  .data {
    min-inline-size: 0;
  }

  .data + .data {
    border-block-start: 1px solid var(--_border);
  }

  .data-head {
    display: flex;
    align-items: center;
    justify-content: space-between;
    padding-block: 4px 0;
    padding-inline: 14px 4px;
    color: var(--_muted);
    font-size: 12.5px;
    font-weight: 500;
  }

  .data-head .icon-button {
    inline-size: 28px;
    block-size: 28px;
    border-radius: calc(8px * var(--_round));
  }

  .data pre {
    max-block-size: 256px;
    margin: 0;
    padding: 2px 14px 12px;
    overflow: auto;
    font: 13px / 1.55 var(--_font-mono);
    white-space: pre-wrap;
    overflow-wrap: anywhere;
  }

  .data > .small-button {
    margin: 4px 14px 12px;
  }

  .data pre:focus-visible,
  .thoughts:focus-visible {
    outline-offset: -2px;
  }

  @keyframes shimmer {
    to {
      background-position-x: 0;
    }
  }

  @media (hover: hover) {
    .step-row:hover {
      color: var(--_text);
    }
  }

  @media print {
    .thoughts,
    .data pre {
      max-block-size: none;
    }
  }

  @media (pointer: coarse) {
    .step-row {
      min-block-size: 44px;
    }

    .data-head .icon-button {
      inline-size: 44px;
      block-size: 44px;
    }
  }
`;
