/** Types for Svelte 5: `import "parley-agent/widget/svelte"`. */

import type { HTMLAttributes } from "svelte/elements";
import type { ElementProps, EventListeners } from "../public-types.ts";

/** Attributes of an element in a template: Svelte's for every element, its own, and its events as `onagent-chat-done`. */
type Templates = {
  [Tag in keyof ElementProps]: HTMLAttributes<HTMLElementTagNameMap[Tag]> & ElementProps[Tag] & EventListeners<"on">;
};

declare module "svelte/elements" {
  interface SvelteHTMLElements extends Templates {}
}
