/** The bubble beside the closed launcher. */

import { css } from "lit";

export const previewStyles = css`
  .preview {
    position: absolute;
    inset-block: auto calc(100% + 12px);
    inset-inline: auto 0;
    display: flex;
    align-items: flex-start;
    inline-size: max-content;
    max-inline-size: min(300px, calc(100vw - 2 * var(--_inset-inline)));
    border-radius: calc(16px * var(--_round));
    /* Where all is dark a shadow is not seen. */
    background: light-dark(var(--_bg), var(--_surface));
    box-shadow: 0 0 0 1px light-dark(#00000014, #ffffff24), 0 1px 2px #0000000f, 0 8px 28px #00000026;
    animation: open 200ms cubic-bezier(0.32, 0.72, 0, 1);
  }

  .preview-text {
    padding-block: 12px;
    padding-inline: 16px 0;
    border-radius: inherit;
    line-height: 20px;
  }

  .preview :focus-visible {
    outline-offset: -3px;
  }

  .preview-text span {
    display: -webkit-box;
    overflow: hidden;
    overflow-wrap: anywhere;
    -webkit-box-orient: vertical;
    -webkit-line-clamp: 4;
  }

  .preview .icon-button {
    margin: 4px;
  }

  .preview .icon-button .icon {
    inline-size: 16px;
    block-size: 16px;
  }

  :host([position^="top"]) .preview {
    inset-block: calc(100% + 12px) auto;
  }

  :host([position$="start"]) .preview {
    inset-inline: 0 auto;
  }

  /* A bubble points at who speaks. */
  :host([position="bottom-end"]) .preview {
    border-end-end-radius: calc(4px * var(--_round));
  }

  :host([position="bottom-start"]) .preview {
    border-end-start-radius: calc(4px * var(--_round));
  }

  :host([position="top-end"]) .preview {
    border-start-end-radius: calc(4px * var(--_round));
  }

  :host([position="top-start"]) .preview {
    border-start-start-radius: calc(4px * var(--_round));
  }
`;
