/** For launchers whose script does not say what the owner of the agent wants: it says that of its own server alone. */

import { attributesOf } from "../../server/protocol/button.ts";
import type { OwnersPage } from "../../server/protocol/chat.ts";
import { languageAt } from "../i18n/page-language.ts";
import { textFor } from "../i18n/text-for.ts";
import { fetchAgentInfo, parseServer } from "../session/server.ts";

/** Gives a launcher the attributes that the owner wants, and the page does not have itself. */
export function beOwned(launcher: HTMLElement, chat: OwnersPage): void {
  const [tag] = languageAt(launcher);
  for (const [name, value] of attributesOf(chat)) {
    if (!launcher.hasAttribute(name)) launcher.setAttribute(name, textFor(value, tag));
  }
}

/** As `beOwned`, after it has asked the server. */
export async function askOwner(launcher: HTMLElement & { readonly server: string }): Promise<void> {
  const server = parseServer(launcher.server || "/", document.baseURI);
  const info = server && (await fetchAgentInfo(server, new AbortController().signal).catch(() => undefined));
  if (info?.chat) beOwned(launcher, info.chat);
}
