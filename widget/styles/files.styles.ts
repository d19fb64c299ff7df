/** Files of a message, why some were not taken, and what shows where they may be dropped. */

import { css } from "lit";

export const fileStyles = css`
  .drop {
    position: absolute;
    inset: 0;
    z-index: 1;
    display: grid;
    padding: 12px;
    background: color-mix(in oklab, var(--_bg) 80%, transparent);
    -webkit-backdrop-filter: blur(12px);
    backdrop-filter: blur(12px);
    pointer-events: none;
  }

  .drop-card {
    display: flex;
    align-items: center;
    justify-content: center;
    gap: 10px;
    border: 2px dashed var(--_accent);
    border-radius: var(--_radius);
    font-weight: 600;
  }

  .draft-files,
  .sent-files {
    display: flex;
    flex-wrap: wrap;
    gap: 8px;
  }

  .draft-files {
    padding: 4px 4px 10px;
  }

  .draft-files .chip,
  .refusals {
    cursor: auto;
  }

  .sent-files {
    align-items: flex-end;
    justify-content: flex-end;
  }

  .chip {
    position: relative;
    display: flex;
    align-items: center;
    gap: 10px;
    max-inline-size: 240px;
    min-block-size: 56px;
    padding-block: 8px;
    padding-inline: 8px 14px;
    border: 1px solid var(--_border);
    border-radius: calc(14px * var(--_round));
    background: var(--_bg);
  }

  .chip.picture {
    padding: 0;
  }

  .chip img {
    display: block;
    inline-size: 56px;
    block-size: 56px;
    border-radius: inherit;
    object-fit: cover;
  }

  .sent-files .chip img {
    inline-size: auto;
    max-inline-size: 100%;
    block-size: auto;
    max-block-size: 200px;
    min-block-size: 56px;
  }

  .file-icon {
    display: grid;
    flex: none;
    place-items: center;
    inline-size: 40px;
    block-size: 40px;
    border-radius: calc(10px * var(--_round));
    background: var(--_surface);
    color: var(--_muted);
  }

  .file-text {
    display: grid;
    min-inline-size: 0;
    line-height: 1.35;
  }

  .file-name {
    overflow: hidden;
    font-size: 14px;
    font-weight: 500;
    text-overflow: ellipsis;
    white-space: nowrap;
  }

  .file-kind {
    color: var(--_subtle);
    font-size: 12.5px;
  }

  .remove {
    position: absolute;
    inset-block-start: -8px;
    inset-inline-end: -8px;
    display: grid;
    place-items: center;
    inline-size: 24px;
    block-size: 24px;
    border: 2px solid var(--_bg);
    border-radius: 50%;
    background: var(--_text);
    color: var(--_bg);
  }

  .remove .icon {
    inline-size: 14px;
    block-size: 14px;
    stroke-width: 2.5;
  }

  /* A finger needs more than the eye. */
  .remove::after,
  .refusals .icon-button::after {
    position: absolute;
    inset: -10px;
    content: "";
  }

  /* Files are read at once, nearly always: nothing is shown before waiting is felt. */
  .reading {
    display: flex;
    align-items: center;
    gap: 8px;
    padding: 4px 8px 8px;
    color: var(--_muted);
    font-size: 14px;
    animation: rise 150ms 300ms backwards;
  }

  .upload {
    /* A script sets it. */
    --_done: 0%;
    margin-block: 6px 2px;
    padding-block-end: 8px;
    background:
      linear-gradient(var(--_accent) 0 0) 0 100% / var(--_done) 3px no-repeat,
      linear-gradient(var(--_border) 0 0) 0 100% / 100% 3px no-repeat;
    color: var(--_muted);
    font-size: 13px;
    text-align: end;
    font-variant-numeric: tabular-nums;
  }

  /* Nobody knows how much: a broken line. */
  .upload:not([aria-valuenow]) {
    background: repeating-linear-gradient(90deg, var(--_accent) 0 6px, transparent 0 12px) 0 100% /
      100% 3px no-repeat;
  }

  .upload:dir(rtl) {
    background-position-x: 100%;
  }

  .refusals {
    display: flex;
    align-items: flex-start;
    gap: 8px;
    margin: 0 0 8px;
    padding-block: 8px;
    padding-inline: 12px 4px;
    border-radius: calc(18px * var(--_round));
    background: var(--_danger-bg);
    color: var(--_danger);
    font-size: 13.5px;
    line-height: 1.45;
  }

  .refusals .icon-button .icon {
    inline-size: 16px;
    block-size: 16px;
  }

  .refusals > .icon {
    margin-block-start: 1px;
    inline-size: 18px;
    block-size: 18px;
  }

  .reasons {
    flex: 1;
    min-inline-size: 0;
    overflow-wrap: anywhere;
  }

  .reasons > * + * {
    margin-block-start: 4px;
  }

  .refusals .icon-button {
    position: relative;
    inline-size: 28px;
    block-size: 28px;
    margin-block: -4px;
    color: inherit;
  }

  @media (forced-colors: active) {
    .upload {
      --_accent: Highlight;
      --_border: GrayText;
      forced-color-adjust: none;
      color: CanvasText;
    }

    .remove {
      border-color: ButtonText;
      color: ButtonText;
    }
  }
`;
