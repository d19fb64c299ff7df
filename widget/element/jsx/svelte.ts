/** Types for Svelte 5: `import "parley-agent/widget/svelte"`. */

import type { HTMLAttributes } from "svelte/elements";
import type {
  AgentChat,
  AgentChatLauncher,
  AgentChatLauncherProps,
  AgentChatProps,
  EventListeners,
} from "../public-types.ts";

/** An element in a template: what Svelte gives every element, the element's own, and its events as `onagent-chat-done`. */
type Template<Element extends HTMLElement, Props> = HTMLAttributes<Element> & Props & EventListeners<"on">;

declare module "svelte/elements" {
  interface SvelteHTMLElements {
    "agent-chat": Template<AgentChat, AgentChatProps>;
    "agent-chat-launcher": Template<AgentChatLauncher, AgentChatLauncherProps>;
  }
}
