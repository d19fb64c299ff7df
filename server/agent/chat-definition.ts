/** What the owner of an agent writes of its chat; `owners-page.ts` checks it. Types alone. */

import type { ByTheme, OwnersPage, ToolText } from "../protocol/chat.ts";

/** `chat` of an agent. A text is a string, or a table by language: `{ en: "Hello!", de: "Hallo!" }`. */
export interface ChatDefinition extends Omit<OwnersPage, "suggestions" | "accent" | "logo" | "favicon"> {
  /** What people may begin with, at most 8: a text that is sent, or a label and what it sends. */
  suggestions?: (ToolText | { label: ToolText; prompt: ToolText })[];
  /** A colour as `#rgb` or `#rrggbb`, or one for each theme. One that is hard to read is darkened or lightened. */
  accent?: string | ByTheme;
  /** A PNG, JPEG, WebP or SVG file inside the project's folder, at most 256 KiB; or one for each theme. */
  logo?: string | ByTheme;
  /** As `logo`, for the tab of the page at `/`. Default: the logo. */
  favicon?: string | ByTheme;
}
