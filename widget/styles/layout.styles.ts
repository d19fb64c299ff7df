/** The frame: header, transcript, dock. */

import { css } from "lit";

export const layoutStyles = css`
  :host {
    all: initial;
    position: relative;
    display: block;
    min-block-size: 0;
    block-size: 100%;
    overflow: hidden;
    background: var(--_bg);
  }

  :host([hidden]) {
    display: none;
  }

  :host([page]) {
    position: fixed;
    inset: 0 0 auto;
    block-size: 100dvh;
  }

  /* A page's rule for every element wins over :host, and what it sets would be inherited from there. */
  .chat {
    all: initial;
    color-scheme: inherit;
    visibility: inherit;
    container: agent-chat / inline-size;
    position: absolute;
    inset: 0;
    display: flex;
    flex-direction: column;
    overflow-wrap: break-word;
    color: var(--_text);
    font: var(--_size) / var(--_leading) var(--_font);
    text-size-adjust: 100%;
    -webkit-text-size-adjust: 100%;
    -webkit-font-smoothing: antialiased;
  }

  .header {
    display: flex;
    flex: none;
    align-items: center;
    gap: 8px;
    min-block-size: 56px;
    padding-block: calc(8px + env(safe-area-inset-top)) 8px;
    padding-inline: 16px 10px;
    border-block-end: 1px solid var(--_border);
  }

  .who {
    display: flex;
    flex: 1;
    align-items: center;
    gap: 10px;
    min-inline-size: 0;
  }

  .names {
    display: grid;
    min-inline-size: 0;
    line-height: 1.3;
  }

  .agent,
  .app {
    overflow: hidden;
    text-overflow: ellipsis;
    white-space: nowrap;
  }

  .agent {
    font-size: 15px;
    font-weight: 600;
  }

  .app {
    color: var(--_muted);
    font-size: 12.5px;
  }

  .actions {
    display: flex;
    flex: none;
    gap: 2px;
  }

  :host([page]) .header {
    border-block-end-color: transparent;
  }

  /* The frame around an embedded page has its own title. */
  :host([embed]) .who {
    visibility: hidden;
  }

  :host([embed]) .header {
    min-block-size: 44px;
    padding-block-end: 0;
    border: 0;
  }

  .scroller {
    /* What is positioned inside, such as hidden text, scrolls along instead of making the frame scrollable. */
    position: relative;
    flex: 1 1 0;
    min-block-size: 0;
    overflow: hidden auto;
    overscroll-behavior: contain;
    scrollbar-width: thin;
    scrollbar-color: color-mix(in oklab, var(--_text) 25%, transparent) transparent;
  }

  .scroller:focus-visible {
    outline-offset: -2px;
  }

  .column {
    display: flow-root;
    max-inline-size: calc(var(--_column) + 2 * var(--gutter));
    min-block-size: 100%;
    margin-inline: auto;
    padding: 20px var(--gutter) 12px;
  }

  .chat {
    --gutter: 16px;
  }

  .dock {
    position: relative;
    display: flex;
    flex: none;
    flex-direction: column;
    gap: 12px;
    inline-size: 100%;
    max-inline-size: calc(var(--_column) + 2 * var(--gutter));
    margin-inline: auto;
    padding: 4px var(--gutter) calc(16px + env(safe-area-inset-bottom));
  }

  .jump {
    position: absolute;
    inset-block-end: calc(100% + 8px);
    inset-inline: 0;
    display: flex;
    align-items: center;
    gap: 6px;
    inline-size: fit-content;
    min-block-size: 36px;
    margin-inline: auto;
    padding: 4px 14px 4px 10px;
    border: 1px solid var(--_border);
    border-radius: var(--_pill);
    background: var(--_bg);
    box-shadow: 0 4px 16px #0000001f;
    font-size: 13px;
    font-weight: 500;
    animation: rise 150ms cubic-bezier(0.32, 0.72, 0, 1);
  }

  .jump .icon {
    inline-size: 16px;
    block-size: 16px;
  }

  .drop {
    position: absolute;
    inset: 0;
    z-index: 1;
    display: grid;
    padding: 12px;
    background: color-mix(in oklab, var(--_bg) 85%, transparent);
    backdrop-filter: blur(4px);
    pointer-events: none;
  }

  .drop-card {
    display: flex;
    align-items: center;
    justify-content: center;
    gap: 10px;
    border: 2px dashed var(--_accent);
    border-radius: var(--_radius);
    background: color-mix(in oklab, var(--_accent) 8%, transparent);
    font-weight: 600;
  }

  @keyframes rise {
    from {
      opacity: 0;
      translate: 0 4px;
    }
  }

  @container agent-chat (width >= 640px) {
    .column,
    .dock {
      --gutter: 24px;
    }

    .column {
      padding-block-start: 32px;
    }
  }

  @container agent-chat (width < 480px) {
    .column {
      font-size: min(15px, var(--_size));
      line-height: min(1.6, var(--_leading));
    }
  }

  @media (hover: hover) {
    .jump:hover {
      background: var(--_surface);
    }
  }
`;
