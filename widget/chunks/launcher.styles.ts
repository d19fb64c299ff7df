/** The launcher's button and panel, on a page whose own styles we do not know. */

import { css } from "lit";

export const launcherStyles = css`
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

  .panel {
    position: absolute;
    inset-block: auto calc(100% + 16px);
    inset-inline: auto 0;
    inline-size: min(400px, calc(100vw - 2 * var(--_inset-inline)));
    block-size: min(680px, calc(100dvh - var(--_button) - var(--_inset-block) - 36px));
    max-inline-size: none;
    max-block-size: none;
    margin: 0;
    padding: 0;
    overflow: hidden;
    border: 0;
    border-radius: calc(16px * var(--_round));
    background: var(--_bg);
    color: inherit;
    box-shadow: 0 0 0 1px light-dark(#00000014, #ffffff24), 0 1px 2px #0000000f, 0 12px 40px #0000002e;
    animation: open 200ms cubic-bezier(0.32, 0.72, 0, 1);
  }

  .panel.wide {
    inline-size: min(760px, calc(100vw - 2 * var(--_inset-inline)));
    block-size: calc(100dvh - var(--_button) - var(--_inset-block) - 36px);
  }

  .panel::backdrop {
    background: none;
  }

  :host([position^="top"]) .panel {
    inset-block: calc(100% + 16px) auto;
  }

  :host([position$="start"]) .panel {
    inset-inline: 0 auto;
  }

  .panel-buttons {
    display: flex;
    gap: 2px;
  }

  @keyframes open {
    from {
      opacity: 0;
      translate: 0 8px;
    }
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

  /* The screen is small. */
  .panel:modal {
    position: fixed;
    inset: var(--_top, 0) 0 auto;
    inline-size: auto;
    block-size: var(--_height, 100dvh);
    padding: env(safe-area-inset-top) env(safe-area-inset-right) env(safe-area-inset-bottom)
      env(safe-area-inset-left);
    border-radius: 0;
    box-shadow: none;
  }

  .panel:modal [part="expand"],
  /* The panel's own header closes it here. */
  .panel:modal + .launcher {
    display: none;
  }

  @media (forced-colors: active) {
    .launcher,
    .preview,
    .panel {
      border: 1px solid ButtonText;
    }
  }

  @media print {
    :host {
      display: none !important;
    }
  }
`;
