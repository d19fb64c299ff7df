/** Entry of the package `parley-agent/widget`: both elements, for sites that bundle them. */

import "./chat.ts";
import { AgentChatLauncher } from "./launcher/launcher.ts";
import { lazy } from "./loading/lazy.ts";

AgentChatLauncher.loadGreeting = lazy(() => import("./launcher/greeting.ts"), "Greeting").loadEventually;
AgentChatLauncher.loadPanel = lazy(() => import("./launcher/panel.ts"), "LauncherPanel").loadEventually;

if (!customElements.get("agent-chat-launcher")) customElements.define("agent-chat-launcher", AgentChatLauncher);
