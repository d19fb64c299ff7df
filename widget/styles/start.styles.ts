/** What a conversation without messages shows. */

import { css } from "lit";

export const startStyles = css`
  .is-empty .column {
    display: grid;
    align-items: center;
  }

  .greeting {
    display: grid;
    justify-items: center;
    gap: 16px;
    text-align: center;
  }

  /* In place of a text that the server has not sent yet; not before waiting is felt. */
  .bone,
  .agent:empty {
    inline-size: 96px;
    block-size: 14px;
    border-radius: 7px;
    background: var(--_surface);
    animation:
      rise 200ms 300ms backwards,
      pulse 1.2s 500ms ease-in-out infinite;
  }

  .bone {
    inline-size: min(320px, 80%);
    block-size: 24px;
    border-radius: 12px;
  }

  .welcome {
    max-inline-size: 600px;
    font-size: 22px;
    font-weight: 600;
    line-height: 1.3;
    text-wrap: balance;
    white-space: pre-line;
  }

  .suggestions {
    display: flex;
    /* Above the composer, which stands at the bottom. */
    order: -1;
    flex-wrap: wrap;
    justify-content: center;
    gap: 8px;
    /* Room for focus rings. */
    margin: -4px;
    padding: 4px;
    overflow: auto;
    /* They give way before the text field does. */
    flex-shrink: 999;
  }

  .pill {
    min-block-size: 36px;
    padding: 6px 14px;
    border: 1px solid var(--_border);
    border-radius: var(--_pill);
    color: var(--_muted);
    font-size: 14px;
    line-height: 1.4;
    text-align: center;
    transition:
      background-color 150ms,
      color 150ms;
  }

  /* What could be asked next is one row there that is pushed sideways: it must not take the answer's place. */
  @media (pointer: coarse) and (max-width: 480px), (max-height: 400px) {
    :not(.is-empty) > .dock > .suggestions {
      flex: none;
      flex-wrap: nowrap;
      justify-content: start;
      /* To the edges of the screen, where it is seen that there are more. */
      margin-inline: calc(-1 * var(--gutter));
      padding-inline: var(--gutter);
      scrollbar-width: none;
    }

    :not(.is-empty) > .dock > .suggestions > li {
      flex: none;
      max-inline-size: 85%;
    }
  }

  @container agent-chat (width >= 640px) {
    .welcome {
      font-size: 28px;
    }

    /* With room to spare, a new conversation starts in the middle of the page. The greeting grows upward from there and
       the suggestions downward, so that the text field has its place before the server has named them. */
    .is-empty .column {
      align-items: end;
      padding-block-end: 28px;
    }

    .is-empty .dock {
      flex: 1.2 1 0;
      gap: 20px;
    }

    .is-empty .suggestions {
      order: 0;
    }

    .is-empty .disclaimer {
      margin-block-start: auto;
    }
  }

  @media (hover: hover) {
    .pill:hover {
      background: var(--_surface);
      color: var(--_text);
    }
  }

  @media (pointer: coarse) {
    .pill {
      min-block-size: 44px;
    }
  }
`;
