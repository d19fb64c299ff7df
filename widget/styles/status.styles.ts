/** What is said about the line, and about a message that waits. */

import { css } from "lit";

export const statusStyles = css`
  .status-line {
    padding-block: 6px;
    padding-inline: 14px 6px;
    min-block-size: 44px;
    background: var(--_sunken);
    color: var(--_muted);
    animation: rise 150ms;
  }

  [part="connection"] > .icon {
    color: var(--_warn);
  }

  .disclaimer {
    margin-block: -4px;
    color: var(--_subtle);
    font-size: 12.5px;
    line-height: 1.4;
    text-align: center;
    text-wrap: balance;
  }

  .said {
    display: flex;
    align-items: center;
    gap: 4px;
    max-inline-size: 100%;
  }

  .said .icon-button:disabled {
    visibility: hidden;
  }

  .queued,
  .queued span {
    display: flex;
    flex-wrap: wrap;
    align-items: center;
    justify-content: end;
    gap: 6px;
  }
`;
