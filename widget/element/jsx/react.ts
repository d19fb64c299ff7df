/** Types for React 19: `import type {} from "parley-agent/widget/react"`. */

import type { DetailedHTMLProps, HTMLAttributes } from "react";
import type { ElementProps, EventListeners } from "../public-types.ts";

/** Attributes of an element in a template: React's for every element, its own, and its events as `onagent-chat-done`. */
type Templates = {
  [Tag in keyof ElementProps]: Attributes<HTMLElementTagNameMap[Tag]> & ElementProps[Tag] & EventListeners<"on">;
};
type Attributes<Element> = DetailedHTMLProps<HTMLAttributes<Element>, Element>;

declare module "react" {
  namespace JSX {
    interface IntrinsicElements extends Templates {}
  }
}
