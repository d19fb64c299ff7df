/** Types for Svelte 5: `import "parley-agent/widget/svelte"`. */

import type { HTMLAttributes } from "svelte/elements";
import type { ElementProps, EventListeners } from "../public-types.ts";

/** An element in a template: what Svelte gives every element, the element's own, and its events as `onagent-chat-done`. */
type Templates = {
  [Tag in keyof ElementProps]: HTMLAttributes<HTMLElementTagNameMap[Tag]> & ElementProps[Tag] & EventListeners<"on">;
};

declare module "svelte/elements" {
  interface SvelteHTMLElements extends Templates {}
}
