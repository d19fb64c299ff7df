/** The launcher's button, on a page whose own styles we do not know. */

import { css } from "lit";

export const launcherButtonStyles = css`
  /* Important, because a page's rule for every element would win otherwise. */
  :host {
    all: initial !important;
    color-scheme: inherit !important;
    column-rule-color: light-dark(#000, #fff) !important;
    --_inset-block: var(--agent-chat-inset-block, 20px);
    --_inset-inline: var(--agent-chat-inset-inline, 20px);
    position: fixed !important;
    inset-block-end: calc(var(--_inset-block) + env(safe-area-inset-bottom)) !important;
    inset-inline-end: calc(var(--_inset-inline) + env(safe-area-inset-right)) !important;
    z-index: 2147483000 !important;
    display: block !important;
  }

  :host([theme="light"]) {
    color-scheme: light !important;
  }

  :host([theme="dark"]) {
    color-scheme: dark !important;
  }

  :host([hidden]) {
    display: none !important;
  }

  :host([position^="top"]) {
    inset-block: calc(var(--_inset-block) + env(safe-area-inset-top)) auto !important;
  }

  :host([position$="start"]) {
    inset-inline: calc(var(--_inset-inline) + env(safe-area-inset-left)) auto !important;
  }

  .launcher-root {
    --_button: 56px;
    color: var(--_text);
    font: 15px / 1.4 var(--_font);
    -webkit-font-smoothing: antialiased;
  }

  :host([size="small"]) .launcher-root {
    --_button: 48px;
  }

  :host([size="large"]) .launcher-root {
    --_button: 64px;
  }

  .launcher {
    position: relative;
    display: flex;
    align-items: center;
    justify-content: center;
    gap: 8px;
    min-inline-size: var(--_button);
    block-size: var(--_button);
    border-radius: var(--_pill);
    background: var(--_accent);
    color: var(--_on-accent);
    box-shadow: inset 0 0 0 1px color-mix(in oklab, currentColor 10%, transparent), 0 1px 2px #0000001f, 0 6px 24px #00000033;
    transition: scale 150ms cubic-bezier(0.32, 0.72, 0, 1);
  }

  .launcher:focus-visible {
    outline-offset: 3px;
  }

  .launcher .icon,
  .launcher ::slotted(*) {
    inline-size: calc(var(--_button) / 2);
    block-size: calc(var(--_button) / 2);
  }

  .launcher:has(.label) {
    padding-inline: 16px 20px;
  }

  .launcher:has(.label) .icon {
    inline-size: 24px;
    block-size: 24px;
  }

  .label {
    font-weight: 600;
    white-space: nowrap;
  }

  .unread {
    position: absolute;
    inset-block-start: -4px;
    inset-inline-end: -4px;
    min-inline-size: 22px;
    padding-inline: 6px;
    border: 2px solid var(--_bg);
    border-radius: 999px;
    background: #d92d20;
    color: #fff;
    font-size: 12px;
    font-weight: 600;
    line-height: 18px;
    text-align: center;
  }

  @media (hover: hover) {
    .launcher:hover {
      scale: 1.05;
    }
  }

  /* What lies below it is not ours to show. */
  .launcher:enabled:active {
    opacity: 1;
    scale: 0.95;
  }

  @media (forced-colors: active) {
    .launcher {
      border: 1px solid ButtonText;
    }
  }

  @media print {
    :host {
      display: none !important;
    }
  }
`;
