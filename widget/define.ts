/** Registers the elements. Apart from their classes, because a page may load the script twice. */

import { AgentChat } from "./agent-chat.ts";
import { AgentChatLauncher } from "./agent-chat-launcher.ts";

/** Defines what is not defined yet; `false` when another copy of the script was first. */
export function defineElements(): boolean {
  if (customElements.get("agent-chat")) return false;
  customElements.define("agent-chat", AgentChat);
  customElements.define("agent-chat-launcher", AgentChatLauncher);
  return true;
}
