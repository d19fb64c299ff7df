/** How the properties of `<agent-chat-launcher>` behave. Those shared with the chat are in `element/properties.ts`. */

import { type Rows, type RowsOf, SHARED } from "../element/properties.ts";
import type { LauncherProperties, SharedProperties } from "../element/public-types.ts";

const LAUNCHER_ONLY: RowsOf<Omit<LauncherProperties, keyof SharedProperties>> = {
  position: { choices: ["bottom-end", "bottom-start", "top-end", "top-start"] },
  icon: { choices: ["chat", "spark", "question"] },
  size: { choices: ["medium", "small", "large"] },
  label: {},
  shortcut: {},
  autoOpen: { kind: "time", attribute: "auto-open" },
  preview: {},
  previewAfter: { kind: "time", attribute: "preview-after" },
};

/** `apiKey` has no attribute, which would put the key into the page a second time. */
export const LAUNCHER: Rows = { ...SHARED, ...LAUNCHER_ONLY, apiKey: { attribute: false } };
