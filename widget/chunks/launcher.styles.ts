/** The launcher's panel. */

import { css } from "lit";

export const launcherStyles = css`
  .panel {
    position: absolute;
    inset-block: auto calc(100% + 16px);
    inset-inline: auto 0;
    inline-size: min(400px, calc(100vw - 2 * var(--_inset-inline)));
    block-size: min(680px, calc(100dvh - var(--_button) - var(--_inset-block) - 36px));
    max-inline-size: none;
    max-block-size: none;
    margin: 0;
    padding: 0;
    overflow: hidden;
    border: 0;
    border-radius: calc(16px * var(--_round));
    background: var(--_bg);
    color: inherit;
    box-shadow: 0 0 0 1px light-dark(#00000014, #ffffff24), 0 1px 2px #0000000f, 0 12px 40px #0000002e;
    animation: open 200ms cubic-bezier(0.32, 0.72, 0, 1);
  }

  .panel.wide {
    inline-size: min(760px, calc(100vw - 2 * var(--_inset-inline)));
    block-size: calc(100dvh - var(--_button) - var(--_inset-block) - 36px);
  }

  .panel::backdrop {
    background: none;
  }

  :host([position^="top"]) .panel {
    inset-block: calc(100% + 16px) auto;
  }

  :host([position$="start"]) .panel {
    inset-inline: 0 auto;
  }

  .panel-buttons {
    display: flex;
    gap: 2px;
  }

  @keyframes open {
    from {
      opacity: 0;
      translate: 0 8px;
    }
  }

  /* The screen is small. */
  .panel:modal {
    position: fixed;
    inset: var(--_top, 0) 0 auto;
    inline-size: auto;
    block-size: var(--_height, 100dvh);
    padding: env(safe-area-inset-top) env(safe-area-inset-right) env(safe-area-inset-bottom)
      env(safe-area-inset-left);
    border-radius: 0;
    box-shadow: none;
  }

  .panel:modal [part="expand"],
  /* The panel's own header closes it here. */
  .panel:modal + .launcher {
    display: none;
  }

  @media (forced-colors: active) {
    .preview,
    .panel {
      border: 1px solid ButtonText;
    }
  }
`;
