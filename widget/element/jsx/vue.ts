/** Types for Vue 3: `import "parley-agent/widget/vue"`. */

import type { HTMLAttributes, PublicProps } from "vue";
import type {
  AgentChat,
  AgentChatLauncher,
  AgentChatLauncherProps,
  AgentChatProps,
  EventListeners,
} from "../public-types.ts";

/** `agent-chat-done` becomes `AgentChatDone`. */
type Camel<Name extends string> = Name extends `${infer First}-${infer Rest}`
  ? `${Capitalize<First>}${Camel<Rest>}`
  : Capitalize<Name>;

type Listeners = {
  [Name in keyof EventListeners<""> as `on${Camel<Name>}`]: EventListeners<"">[Name];
};

/** An element in a template: what Vue gives every element, the element's own, and its events as `@agent-chat-done`. */
type Template<Element extends HTMLElement, Props> = new () => Element & {
  $props: HTMLAttributes & PublicProps & Props & Listeners;
};

declare module "vue" {
  interface GlobalComponents {
    "agent-chat": Template<AgentChat, AgentChatProps>;
    "agent-chat-launcher": Template<AgentChatLauncher, AgentChatLauncherProps>;
  }
}
