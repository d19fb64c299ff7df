/** Types for Solid: `import type {} from "parley-agent/widget/solid"`. */

import type { JSX } from "solid-js";
import type {
  AgentChat,
  AgentChatLauncher,
  AgentChatLauncherProps,
  AgentChatProps,
  EventListeners,
} from "../public-types.ts";

/** An element in a template: what Solid gives every element, the element's own, and its events as `on:agent-chat-done`. */
type Template<Element extends HTMLElement, Props> = JSX.HTMLAttributes<Element> & Props & EventListeners<"on:">;

declare module "solid-js" {
  namespace JSX {
    interface IntrinsicElements {
      "agent-chat": Template<AgentChat, AgentChatProps>;
      "agent-chat-launcher": Template<AgentChatLauncher, AgentChatLauncherProps>;
    }
  }
}
