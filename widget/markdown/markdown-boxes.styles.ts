import { css } from "lit";

/** Looks of the boxes inside rendered Markdown: code blocks, tables, images. */
export const markdownBoxStyles = css`
  .markdown .code {
    background: var(--_sunken);
    border: 1px solid var(--_border);
    border-radius: var(--_radius);
    overflow: clip;
  }

  .markdown .code-header {
    align-items: center;
    background: inherit;
    color: var(--_muted);
    display: flex;
    font-size: 13px;
    gap: 8px;
    justify-content: space-between;
    line-height: 20px;
    padding-block: 6px 0;
    inset-block-start: 0;
    padding-inline: 14px 6px;
    position: sticky;
    z-index: 1;
  }

  .markdown .code-language {
    overflow: hidden;
    text-overflow: ellipsis;
    white-space: nowrap;
  }

  .markdown .copy {
    background: none;
    border: 0;
    border-radius: calc(6px * var(--_round));
    color: inherit;
    cursor: pointer;
    flex: none;
    font: inherit;
    min-block-size: 28px;
    padding-block: 4px;
    padding-inline: 8px;
  }

  .markdown :is(.copy, .image):hover {
    background: color-mix(in oklab, currentcolor 10%, transparent);
    color: var(--_text);
  }

  .markdown pre {
    margin: 0;
    outline-offset: -3px;
    overflow-x: auto;
    padding-block: 6px 14px;
    padding-inline: 14px;
    tab-size: 2;
  }

  .markdown pre code {
    background: none;
    border-radius: 0;
    display: block;
    font-size: 13.5px;
    inline-size: fit-content;
    line-height: 21px;
    overflow-wrap: normal;
    padding: 0;
    white-space: pre;
  }

  .markdown .code-chunk {
    display: block;
  }

  .markdown .table {
    border: 1px solid var(--_border);
    border-radius: var(--_radius);
    overflow-x: auto;
  }

  .markdown table {
    border-collapse: collapse;
    font-variant-numeric: tabular-nums;
    min-inline-size: 100%;
  }

  .markdown :is(th, td) {
    min-inline-size: 3em;
    overflow-wrap: normal;
    padding-block: 8px;
    padding-inline: 12px;
    text-align: start;
    vertical-align: top;
  }

  .markdown th {
    background: color-mix(in oklab, var(--_text) 4%, transparent);
    white-space: nowrap;
  }

  .markdown td code {
    white-space: nowrap;
  }

  .markdown tbody tr {
    border-block-start: 1px solid var(--_border);
  }

  .markdown .align-left {
    text-align: left;
  }

  .markdown .align-center {
    text-align: center;
  }

  .markdown .align-right {
    text-align: right;
  }

  .markdown button.image {
    align-content: center;
    align-items: baseline;
    background: var(--_sunken);
    border: 1px solid var(--_border);
    border-radius: calc(8px * var(--_round));
    color: var(--_text);
    cursor: pointer;
    display: inline-flex;
    flex-wrap: wrap;
    font: inherit;
    font-size: 0.875em;
    gap: 0 8px;
    max-inline-size: 100%;
    min-block-size: 32px;
    padding-block: 5px;
    padding-inline: 12px;
    text-align: start;
  }

  .markdown .image-alt {
    color: var(--_muted);
  }

  .markdown img.image {
    block-size: auto;
    border-radius: calc(8px * var(--_round));
    max-block-size: 480px;
    max-inline-size: 100%;
    vertical-align: bottom;
  }

  @media (pointer: coarse) {
    .markdown :is(.copy, button.image) {
      min-block-size: 44px;
    }
  }

  @media (forced-colors: active) {
    .markdown :is(.code, .table, button.image) {
      border-color: CanvasText;
    }
  }
`;
