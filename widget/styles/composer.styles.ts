/** The card with the text field. */

import { css } from "lit";

export const composerStyles = css`
  .composer {
    padding: 7px;
    overflow: hidden auto;
    cursor: text;
    border: 1px solid var(--_border-strong);
    border-radius: calc(27px * var(--_round));
    background: var(--_bg);
    box-shadow: 0 1px 2px #0000000a, 0 4px 16px #0000000a;
  }

  /* Quiet, since the cursor is there most of the time; 5:1 on the background in both themes. */
  .composer:has(textarea:focus) {
    border-color: var(--_subtle);
    /* Seen where colours are forced, and borders all look alike. */
    outline: 2px solid transparent;
  }

  .composer-row {
    position: relative;
    display: flex;
    align-items: flex-end;
    gap: 4px;
  }

  textarea {
    flex: 1;
    min-inline-size: 0;
    max-block-size: 192px;
    margin: 0;
    padding: 6px 8px;
    overflow-y: auto;
    border: 0;
    background: none;
    color: inherit;
    /* Below 16 px iOS zooms into a focused field. */
    font: 16px / 24px var(--_font);
    resize: none;
    field-sizing: content;
  }

  /* Over the field's padding, so that the field keeps its place when the button comes. */
  .attach {
    position: absolute;
    inset-block-end: 0;
    inset-inline-start: 0;
  }

  .attachable:not([data-tall]) textarea {
    padding-inline-start: 44px;
  }

  /* More than one line has the whole width, and the buttons stand below. */
  [data-tall] {
    flex-wrap: wrap;
  }

  [data-tall] textarea {
    flex-basis: 100%;
  }

  /* The card around it shows the focus. */
  textarea:focus-visible {
    outline: 0;
  }

  /* Of nothing, dir=auto makes left to right. */
  textarea:placeholder-shown {
    direction: inherit;
    /* Chromium gives the placeholder the field's. */
    text-overflow: ellipsis;
  }

  textarea::placeholder {
    overflow: hidden;
    color: var(--_subtle);
    opacity: 1;
    text-overflow: ellipsis;
    white-space: nowrap;
  }

  .round {
    border-radius: calc(50% * var(--_round));
  }

  /* Where there is no room for all of a draft it stays in view, over the text. */
  .round.filled {
    position: sticky;
    inset-block-end: 0;
    margin-inline-start: auto;
    background: var(--_accent);
    color: var(--_on-accent);
  }

  .round.filled:disabled {
    background: var(--_surface);
    color: var(--_subtle);
    opacity: 1;
  }

  @media (pointer: coarse) {
    textarea {
      padding-block: 10px;
    }

    .attachable:not([data-tall]) textarea {
      padding-inline-start: 52px;
    }

    .composer {
      padding: 4px;
    }
  }
`;
