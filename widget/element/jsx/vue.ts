/** Types for Vue 3: `import "parley-agent/widget/vue"`. */

import type { HTMLAttributes, PublicProps } from "vue";
import type { ElementProps, EventListeners } from "../public-types.ts";

/** `agent-chat-done` becomes `AgentChatDone`. */
type Camel<Name extends string> = Name extends `${infer First}-${infer Rest}`
  ? `${Capitalize<First>}${Camel<Rest>}`
  : Capitalize<Name>;

type Listeners = {
  [Name in keyof EventListeners<""> as `on${Camel<Name>}`]: EventListeners<"">[Name];
};

/** Attributes of an element in a template: Vue's for every element, its own, and its events as `@agent-chat-done`. */
type Templates = {
  [Tag in keyof ElementProps]: new () => HTMLElementTagNameMap[Tag] & {
    $props: HTMLAttributes & PublicProps & ElementProps[Tag] & Listeners;
  };
};

declare module "vue" {
  interface GlobalComponents extends Templates {}
}
