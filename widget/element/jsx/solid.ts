/** Types for Solid: `import type {} from "parley-agent/widget/solid"`. */

import type { JSX } from "solid-js";
import type { ElementProps, EventListeners } from "../public-types.ts";

/** Attributes of an element in a template: Solid's for every element, its own, and its events as `on:agent-chat-done`. */
type Templates = {
  [Tag in keyof ElementProps]: JSX.HTMLAttributes<HTMLElementTagNameMap[Tag]> &
    ElementProps[Tag] &
    EventListeners<"on:">;
};

declare module "solid-js" {
  namespace JSX {
    interface IntrinsicElements extends Templates {}
  }
}
