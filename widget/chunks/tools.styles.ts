/** Minified by the build as Lit's tag of this name is. */
const css = String.raw;

const rules = css`
  .markdown .tools button {
    background: none;
    border: 0;
    border-radius: calc(6px * var(--_round));
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

  .markdown :is(.code, .table) > .tools {
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

  /* A shadow at each edge that hides columns; the covers scroll along and hide it at the ends. */
  .markdown .table {
    --_cover: linear-gradient(var(--_bg), var(--_bg));
    --_shade: light-dark(#0002, #000c), #0000;
    background:
      var(--_cover) left / 16px 100% no-repeat local,
      var(--_cover) right / 16px 100% no-repeat local,
      radial-gradient(farthest-side at left, var(--_shade)) left / 14px 100% no-repeat scroll,
      radial-gradient(farthest-side at right, var(--_shade)) right / 14px 100% no-repeat scroll;
  }

  /* Chromium does not know there where the columns begin. */
  .markdown .table:dir(rtl) {
    background: none;
  }

  /* At the end of what can be seen of a table that scrolls, whose shadow ends where the cells do. */
  .markdown .table > .tools {
    background: var(--_bg);
    inset-inline-start: 0;
    padding-inline: 4px;
    position: sticky;
    text-align: end;
  }

  /* The box cuts off what is outside. */
  .markdown .table > .tools button {
    outline-offset: -2px;
  }

  @media (hover: hover) {
    .markdown .code:not(:hover, :focus-within) > .code-header > .tools {
      opacity: 0;
    }
  }

  @media print {
    .markdown .tools {
      display: none;
    }

    .markdown [data-ui-fold] pre {
      -webkit-mask: none;
      mask: none;
      max-block-size: none;
    }

    /* Nothing scrolls on paper. */
    .markdown pre code {
      white-space: pre-wrap;
    }

    .markdown .table :is(th, td, code) {
      min-inline-size: 0;
      white-space: normal;
    }

    .markdown .table,
    .markdown :is(th, td, pre code) {
      background: none;
      overflow-wrap: anywhere;
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
