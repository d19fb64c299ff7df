/** The attributes of the launcher's button. */

import type { OwnersPage, ToolText } from "./chat.ts";

/** The owner's settings of the button, by attribute name. Texts may be by language, as the owner wrote them. */
export function attributesOf({ accent, corners, theme, button }: OwnersPage): [string, ToolText | number][] {
  const { position, icon, size, label, preview, previewAfter, autoOpen } = { ...button };
  const all = {
    ...{ position, icon, size, label, preview, corners, theme },
    accent: accent && `light-dark(${accent.light},${accent.dark})`,
    ...{ "preview-after": previewAfter, "auto-open": autoOpen, "auto-open-once": autoOpen },
  };
  return Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
}
