/** Types of an agent's `chat` field; `owners-page.ts` checks the values. */

import type { ByTheme, OwnersPage, ToolText } from "../protocol/chat.ts";

/** The `chat` field of an agent. A text is a string, or an object by language: `{ en: "Hello!", de: "Hallo!" }`. */
export interface ChatDefinition extends Omit<OwnersPage, "suggestions" | "accent" | "logo" | "favicon"> {
  /** Suggested first messages, at most 8: a text to send, or a label and the text that it sends. */
  suggestions?: (ToolText | { label: ToolText; prompt: ToolText })[];
  /** A colour as `#rgb` or `#rrggbb`, or one for each theme. A colour of low contrast is darkened or lightened. */
  accent?: string | ByTheme;
  /** A PNG, JPEG, WebP or SVG file inside the project's folder, at most 256 KiB; or one for each theme. */
  logo?: string | ByTheme;
  /** Icon of the browser tab of the page at `/`, in the same formats as `logo`. Default: the logo. */
  favicon?: string | ByTheme;
}
