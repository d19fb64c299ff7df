/** The launcher's button and panel, on a page whose own styles we do not know. */

import { type CSSResultGroup, css } from "lit";
import { baseStyles } from "./base.styles.ts";
import { tokenStyles } from "./tokens.styles.ts";

const panelStyles = css`
  /* Important, because a page's rule for every element would win otherwise. */
  :host {
    all: initial !important;
    color-scheme: light dark !important;
    position: fixed !important;
    inset-block-end: calc(20px + env(safe-area-inset-bottom)) !important;
    inset-inline-end: calc(20px + env(safe-area-inset-right)) !important;
    z-index: 2147483000 !important;
    display: block !important;
  }

  .launcher {
    display: grid;
    place-items: center;
    inline-size: 56px;
    block-size: 56px;
    border-radius: 50%;
    background: var(--_accent);
    color: var(--_on-accent);
    box-shadow: 0 1px 2px #0000001f, 0 6px 24px #00000033;
    transition: scale 150ms cubic-bezier(0.32, 0.72, 0, 1);
  }

  .launcher:focus-visible {
    outline-offset: 3px;
  }

  .launcher .icon {
    inline-size: 28px;
    block-size: 28px;
  }

  .panel {
    position: absolute;
    inset-block-end: 72px;
    inset-inline-end: 0;
    inline-size: min(400px, calc(100vw - 40px));
    block-size: min(680px, calc(100dvh - 104px));
    overflow: hidden;
    border-radius: 16px;
    background: var(--_bg);
    box-shadow: 0 0 0 1px #00000014, 0 1px 2px #0000000f, 0 12px 40px #0000002e;
    transform-origin: bottom right;
    animation: open 200ms cubic-bezier(0.32, 0.72, 0, 1);
  }

  .panel:dir(rtl) {
    transform-origin: bottom left;
  }

  .close {
    display: grid;
    place-items: center;
    inline-size: 36px;
    block-size: 36px;
    border-radius: 10px;
    color: inherit;
    opacity: 0.75;
  }

  @keyframes open {
    from {
      opacity: 0;
      transform: translateY(8px) scale(0.98);
    }
  }

  @media (hover: hover) {
    .launcher:hover {
      scale: 1.05;
    }

    .close:hover {
      background: color-mix(in oklab, currentColor 10%, transparent);
      opacity: 1;
    }
  }

  @media (pointer: coarse) {
    .close {
      inline-size: 44px;
      block-size: 44px;
    }
  }

  @media (width <= 480px) {
    .panel {
      position: fixed;
      inset: 0;
      inline-size: auto;
      block-size: 100dvh;
      border-radius: 0;
      box-shadow: none;
    }

    /* The panel's own header closes it here. */
    .launcher.is-open {
      visibility: hidden;
    }
  }

  @media print {
    :host {
      display: none !important;
    }
  }
`;

export const launcherStyles: CSSResultGroup = [tokenStyles, baseStyles, panelStyles];
