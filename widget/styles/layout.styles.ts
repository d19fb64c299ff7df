/** The frame: header, transcript, dock. */

import { css } from "lit";

export const layoutStyles = css`
  :host {
    all: initial;
    position: relative;
    display: block;
    min-block-size: 0;
    block-size: 100%;
    overflow: clip;
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
    box-sizing: border-box;
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
    scrollbar-color: color-mix(in oklab, var(--_text) 25%, transparent) transparent;
    -webkit-text-size-adjust: 100%;
    -webkit-font-smoothing: antialiased;
  }

  /* Above a phone's keyboard, and beside what the screen's edges take. A chat inside of a page has none of these. */
  :host([page]) .chat {
    inset-block: var(--_top, 0) auto;
    block-size: var(--_height, 100%);
    padding: env(safe-area-inset-top) env(safe-area-inset-right) env(safe-area-inset-bottom)
      env(safe-area-inset-left);
  }

  .header {
    position: relative;
    z-index: 1;
    display: flex;
    flex: none;
    align-items: center;
    gap: 8px;
    min-block-size: 56px;
    padding-block: 8px;
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
    border-color: transparent;
  }

  /* The transcript fades under the edges that have no line. */
  :host([page]) .header::after,
  .dock::before {
    position: absolute;
    inset-inline: 0;
    block-size: 24px;
    background: linear-gradient(var(--_bg), transparent);
    pointer-events: none;
    content: "";
  }

  .header::after {
    inset-block-start: 100%;
  }

  .dock::before {
    inset-block-end: 100%;
    rotate: 180deg;
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
  }

  .scroller:focus-visible {
    outline-offset: -2px;
  }

  .column {
    display: flow-root;
    max-inline-size: calc(var(--_column) + 2 * var(--gutter));
    min-block-size: 100%;
    margin-inline: auto;
    padding: 20px var(--gutter);
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
    /* Leaves two lines to read in, however low the window is: what is too much scrolls in itself. */
    max-block-size: calc(100% - 112px);
    margin-inline: auto;
    padding: 4px var(--gutter) 16px;
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

    /* What is read stands above what is written, with a scrollbar beside it as well. */
    .scroller {
      scrollbar-gutter: stable both-edges;
    }
  }

  @container agent-chat (width < 480px) {
    .column {
      font-size: min(15px, var(--_size));
      line-height: min(1.6, var(--_leading));
    }
  }
`;
