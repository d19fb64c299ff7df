import type { CSSResultGroup } from "lit";
import { markdownStyles } from "../markdown/markdown.styles.ts";
import { baseStyles } from "./base.styles.ts";
import { composerStyles } from "./composer.styles.ts";
import { layoutStyles } from "./layout.styles.ts";
import { mediaStyles } from "./media.styles.ts";
import { startStyles } from "./start.styles.ts";
import { statusStyles } from "./status.styles.ts";
import { tokenStyles } from "./tokens.styles.ts";
import { transcriptStyles } from "./transcript.styles.ts";

/** Everything that `<agent-chat>` wears; the order decides between rules of equal weight. */
export const agentChatStyles: CSSResultGroup = [
  layoutStyles,
  tokenStyles,
  baseStyles,
  startStyles,
  transcriptStyles,
  statusStyles,
  markdownStyles,
  composerStyles,
  mediaStyles,
];
