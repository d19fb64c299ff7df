/** Types for Solid: `import type {} from "parley-agent/widget/solid"`. */

import type { JSX } from "solid-js";
import type { ElementProps, EventListeners } from "../public-types.ts";

/** An element in a template: what Solid gives every element, the element's own, and its events as `on:agent-chat-done`. */
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
