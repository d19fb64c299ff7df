/** Types for Preact: `import type {} from "parley-agent/widget/preact"`. */

import type {} from "preact";
import type {
  AgentChat,
  AgentChatLauncher,
  AgentChatLauncherProps,
  AgentChatProps,
} from "../public-types.ts";
import type { EventListeners } from "./listeners.ts";

/** Listeners for the events of an element, as Preact names them: `onagent-chat-done`. */
type Listeners = EventListeners<"on">;

declare module "preact" {
  namespace JSX {
    interface IntrinsicElements {
      "agent-chat": HTMLAttributes<AgentChat> & AgentChatProps & Listeners;
      "agent-chat-launcher": HTMLAttributes<AgentChatLauncher> & AgentChatLauncherProps & Listeners;
    }
  }
}
