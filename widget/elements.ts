/** Entry of the package `parley-agent/widget`: both elements, for sites that bundle them. */

import "./chat.ts";
import { AgentChatLauncher } from "./launcher/launcher.ts";
import { texts } from "./launcher/reload.ts";
import { lazy } from "./loading/lazy.ts";

AgentChatLauncher.defaultServer = "";
// The launchers learn from the chat what the agent's owner has set.
AgentChatLauncher.owner = {};
AgentChatLauncher.loadGreeting = lazy(() => import("./launcher/greeting.ts"), "Greeting").loadEventually;
AgentChatLauncher.loadPanel = lazy(() => import("./launcher/panel.ts"), "LauncherPanel").loadEventually;
AgentChatLauncher.importReload = async () => ({ texts });

if (!customElements.get("agent-chat-launcher")) customElements.define("agent-chat-launcher", AgentChatLauncher);
