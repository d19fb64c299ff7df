/** Owner's attributes for launchers of another server than that of their script, which has only its own owner's. */

import { attributesOf } from "../../server/protocol/button.ts";
import type { OwnersPage } from "../../server/protocol/chat.ts";
import { languageAt } from "../i18n/page-language.ts";
import { textFor } from "../i18n/text-for.ts";
import { fetchAgentInfo, parseServer } from "../session/server.ts";

/** Adds the attributes to a launcher that the agent's owner has set, and the page has not. */
export function beOwned(launcher: HTMLElement, chat: OwnersPage): void {
  const [tag] = languageAt(launcher);
  for (const [name, value] of attributesOf(chat)) {
    if (!launcher.hasAttribute(name)) launcher.setAttribute(name, textFor(value, tag));
  }
}

/** As `beOwned`, with what the server answers. */
export async function askOwner(launcher: HTMLElement & { readonly server: string }): Promise<void> {
  const server = parseServer(launcher.server || "/", document.baseURI);
  const info = server && (await fetchAgentInfo(server, new AbortController().signal).catch(() => undefined));
  if (info?.chat) beOwned(launcher, info.chat);
}
