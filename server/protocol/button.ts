/** What the launcher's button is drawn with. */

import type { OwnersPage, ToolText } from "./chat.ts";

/** By the names of its attributes, and no others. Texts are as their owner has them, by language. */
export function attributesOf({ accent, corners, theme, button }: OwnersPage): [string, ToolText | number][] {
  const { position, icon, size, label, preview, previewAfter, autoOpen } = { ...button };
  const all = {
    ...{ position, icon, size, label, preview, corners, theme },
    accent: accent && `light-dark(${accent.light},${accent.dark})`,
    ...{ "preview-after": previewAfter, "auto-open": autoOpen, "auto-open-once": autoOpen },
  };
  return Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
}
