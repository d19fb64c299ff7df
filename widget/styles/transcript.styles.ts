/** Messages, failures, and the way to the newest. */

import { css } from "lit";

export const transcriptStyles = css`
  .message {
    contain: layout style;
    /* Containment clips at this padding, which leaves room for focus rings and the actions. */
    margin-inline: -14px;
    padding: 6px 14px;
  }

  .message:not(:last-child) {
    content-visibility: auto;
    contain-intrinsic-size: auto 200px;
  }

  .message.user {
    display: grid;
    justify-items: end;
    gap: 8px;
    padding-inline-start: 12%;
  }

  /* Without "+", for which browsers would style all messages anew whenever earlier ones are added. */
  .message:not(:first-child) {
    margin-block-start: var(--_gap);
  }

  .message.assistant:not(:first-child) {
    margin-block-start: calc(var(--_gap) * 0.6);
  }

  .bubble {
    max-inline-size: 100%;
    padding: 8px 16px;
    border-radius: calc(18px * var(--_round));
    background: var(--_surface);
    white-space: pre-wrap;
    overflow-wrap: anywhere;
  }

  /* All but who speaks, and what comes after that. */
  .message.assistant > :where(:nth-child(n + 3)) {
    margin-block-start: 12px;
  }

  .waiting {
    display: flex;
    align-items: center;
    min-block-size: 1lh;
  }

  .waiting span {
    inline-size: 10px;
    block-size: 10px;
    border-radius: 50%;
    background: var(--_muted);
    animation: pulse 1.2s ease-in-out infinite;
  }

  .note {
    color: var(--_muted);
    font-size: 14px;
  }

  .failure,
  .status-line {
    display: flex;
    flex-wrap: wrap;
    align-items: center;
    gap: 8px 10px;
    padding: 10px 14px;
    border-radius: var(--_radius);
    background: var(--_danger-bg);
    color: var(--_danger);
    font-size: 14px;
    line-height: 1.4;
    text-align: start;
  }

  :is(.failure, .status-line) p {
    flex: 1 1 160px;
  }

  :is(.failure, .status-line) > .small-button {
    margin-inline-start: auto;
  }

  .message.assistant > .answer-actions {
    display: flex;
    margin-block: 6px -2px;
    /* Of buttons as large as a finger needs: the first icon stands in line with the text. */
    margin-inline-start: -14px;
  }

  @media not (pointer: coarse) {
    :is(.said, .answer-actions) .icon-button {
      inline-size: 32px;
      block-size: 32px;
    }

    .message.assistant > .answer-actions {
      margin-inline-start: -8px;
    }
  }

  /* What the page does not want to be done with messages. */
  :host(:not([actions~="all"], [actions~="copy"])) .answer-actions [part="copy"],
  :host(:not([actions~="all"], [actions~="retry"])) [part="ask-again"],
  :host(:not([actions~="all"], [actions~="edit"])) .said .icon-button,
  :host(:not([actions~="all"], [actions~="code"])) .code .copy,
  :host(:not([actions~="all"], [actions~="table"])) .table .tools {
    display: none;
  }

  .jump {
    position: absolute;
    inset-block-end: calc(100% + 8px);
    inset-inline: 0;
    inline-size: fit-content;
    margin-inline: auto;
    border-color: var(--_border);
    background: var(--_bg);
    box-shadow: 0 4px 16px #0000001f;
    animation: rise 150ms;
  }

  @keyframes pulse {
    50% {
      opacity: 0.4;
    }
  }

  @media (hover: hover) {
    .jump:hover {
      background: var(--_surface);
    }

    :is(.said, .answer-actions) .icon-button {
      opacity: 0;
      transition: opacity 150ms;
    }

    .message:is(:hover, :last-child, :focus-within) .icon-button {
      opacity: 1;
    }
  }

  @media (forced-colors: active) {
    .bubble,
    .failure,
    .status-line {
      border: 1px solid CanvasText;
    }

    .waiting span {
      background: CanvasText;
    }
  }
`;
