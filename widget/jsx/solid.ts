/** Types for Solid: `import type {} from "parley-agent/widget/solid"`. */

import type { JSX as Solid } from "solid-js";
import type {
  AgentChat,
  AgentChatLauncher,
  AgentChatLauncherProps,
  AgentChatProps,
} from "../public-types.ts";
import type { EventListeners } from "./listeners.ts";

/** Listeners for the events of an element, as Solid names them: `on:agent-chat-done`. */
type Listeners = EventListeners<"on:">;

declare module "solid-js" {
  namespace JSX {
    interface IntrinsicElements {
      "agent-chat": Solid.HTMLAttributes<AgentChat> & AgentChatProps & Listeners;
      "agent-chat-launcher": Solid.HTMLAttributes<AgentChatLauncher> &
        AgentChatLauncherProps &
        Listeners;
    }
  }
}
