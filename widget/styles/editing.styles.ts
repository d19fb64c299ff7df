/** The message that is being changed. */

import { css } from "lit";

export const editingStyles = css`
  .message.editing .bubble {
    outline: 2px solid var(--_ring);
  }
`;
