/** Minified by the build as Lit's tag of this name is. */
const css = String.raw;

const rules = css`
  .markdown .tools button {
    background: none;
    border: 0;
    border-radius: 6px;
    color: var(--_muted);
    cursor: pointer;
    font: inherit;
    font-size: 13px;
    line-height: 20px;
    min-block-size: 28px;
    padding-block: 4px;
    padding-inline: 8px;
  }

  .markdown .tools button:hover {
    background: color-mix(in oklab, currentcolor 10%, transparent);
    color: var(--_text);
  }

  /* Beside the button that copies, which stays where it is. */
  .markdown .code-header > .tools {
    margin-inline-start: auto;
    order: 1;
  }

  .markdown .code-header > .copy {
    order: 2;
  }

  .markdown .code-header button[aria-pressed="true"] {
    color: var(--_text);
    text-decoration: underline;
    text-underline-offset: 3px;
  }

  .markdown [data-ui-wrap] pre code {
    overflow-wrap: anywhere;
    white-space: pre-wrap;
  }

  .markdown [data-ui-fold="closed"] pre {
    -webkit-mask-image: linear-gradient(#000 calc(100% - 64px), transparent);
    mask-image: linear-gradient(#000 calc(100% - 64px), transparent);
    max-block-size: 846px;
    overflow-y: hidden;
  }

  .markdown .code > .tools {
    border-block-start: 1px solid var(--_border);
  }

  .markdown .code > .tools button {
    border-radius: 0;
    inline-size: 100%;
    min-block-size: 36px;
    outline-offset: -3px;
    padding-inline: 14px;
    text-align: start;
  }

  @media (hover: hover) {
    /* Over the head, at the end of what can be seen of a table that scrolls. */
    .markdown .table:has(> .tools) {
      display: grid;
      grid-template-columns: minmax(min-content, 1fr);
    }

    .markdown .table > * {
      grid-area: 1 / 1;
    }

    .markdown .table > .tools {
      align-self: start;
      display: flex;
      gap: 4px;
      inline-size: 0;
      inset-inline-end: 6px;
      justify-content: flex-end;
      justify-self: end;
      margin-block-start: 6px;
      position: sticky;
    }

    .markdown .table > .tools button {
      background: var(--_bg);
      box-shadow: 0 0 0 1px var(--_border);
      flex: none;
    }

    .markdown .table > .tools button:hover {
      background: color-mix(in oklab, var(--_text) 8%, var(--_bg));
    }
  }

  @media (hover: hover) {
    .markdown .table:not(:hover, :focus-within) > .tools,
    .markdown .code:not(:hover, :focus-within) > .code-header > .tools {
      opacity: 0;
    }
  }

  @media (hover: none) {
    .markdown .table > .tools {
      border-block-start: 1px solid var(--_border);
      inset-inline-start: 0;
      position: sticky;
      text-align: end;
    }
  }

  @media print {
    .markdown [data-ui-fold] pre {
      -webkit-mask: none;
      mask: none;
      max-block-size: none;
    }
  }

  @media (pointer: coarse) {
    .markdown .tools button {
      min-block-size: 44px;
    }
  }
`;

/** For the root that holds the boxes. */
export const toolsSheet = new CSSStyleSheet();
toolsSheet.replaceSync(rules);
