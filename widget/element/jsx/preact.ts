/** Types for Preact: `import type {} from "parley-agent/widget/preact"`. */

import type { JSX } from "preact";
import type { ElementProps, EventListeners } from "../public-types.ts";

/** An element in a template: what Preact gives every element, the element's own, and its events as `onagent-chat-done`. */
type Templates = {
  [Tag in keyof ElementProps]: JSX.HTMLAttributes<HTMLElementTagNameMap[Tag]> &
    ElementProps[Tag] &
    EventListeners<"on">;
};

declare module "preact" {
  namespace JSX {
    interface IntrinsicElements extends Templates {}
  }
}
