/** Types for React 19: `import type {} from "parley-agent/widget/react"`. */

import type { DetailedHTMLProps } from "react";
import type {
  AgentChat,
  AgentChatLauncher,
  AgentChatLauncherProps,
  AgentChatProps,
} from "../public-types.ts";
import type { EventListeners } from "./listeners.ts";

/** Listeners for the events of an element, as React 19 names them: `onagent-chat-done`. */
type Listeners = EventListeners<"on">;

declare module "react" {
  namespace JSX {
    interface IntrinsicElements {
      "agent-chat": DetailedHTMLProps<HTMLAttributes<AgentChat>, AgentChat> &
        AgentChatProps &
        Listeners;
      "agent-chat-launcher": DetailedHTMLProps<
        HTMLAttributes<AgentChatLauncher>,
        AgentChatLauncher
      > &
        AgentChatLauncherProps &
        Listeners;
    }
  }
}
