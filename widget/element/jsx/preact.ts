/** Types for Preact: `import type {} from "parley-agent/widget/preact"`. */

import type { JSX } from "preact";
import type { ElementProps, EventListeners } from "../public-types.ts";

/** Attributes of an element in a template: Preact's for every element, its own, and its events as `onagent-chat-done`. */
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
