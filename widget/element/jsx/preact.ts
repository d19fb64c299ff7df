/** Types for Preact: `import type {} from "parley-agent/widget/preact"`. */

import type { JSX } from "preact";
import type {
  AgentChat,
  AgentChatLauncher,
  AgentChatLauncherProps,
  AgentChatProps,
  EventListeners,
} from "../public-types.ts";

/** An element in a template: what Preact gives every element, the element's own, and its events as `onagent-chat-done`. */
type Template<Element extends HTMLElement, Props> = JSX.HTMLAttributes<Element> & Props & EventListeners<"on">;

declare module "preact" {
  namespace JSX {
    interface IntrinsicElements {
      "agent-chat": Template<AgentChat, AgentChatProps>;
      "agent-chat-launcher": Template<AgentChatLauncher, AgentChatLauncherProps>;
    }
  }
}
