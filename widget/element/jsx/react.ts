/** Types for React 19: `import type {} from "parley-agent/widget/react"`. */

import type { DetailedHTMLProps, HTMLAttributes } from "react";
import type {
  AgentChat,
  AgentChatLauncher,
  AgentChatLauncherProps,
  AgentChatProps,
  EventListeners,
} from "../public-types.ts";

/** An element in a template: what React gives every element, the element's own, and its events as `onagent-chat-done`. */
type Template<Element extends HTMLElement, Props> = DetailedHTMLProps<HTMLAttributes<Element>, Element> &
  Props &
  EventListeners<"on">;

declare module "react" {
  namespace JSX {
    interface IntrinsicElements {
      "agent-chat": Template<AgentChat, AgentChatProps>;
      "agent-chat-launcher": Template<AgentChatLauncher, AgentChatLauncherProps>;
    }
  }
}
