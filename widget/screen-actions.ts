/** What the screen has of the element, and asks of it. */

import type { KeptDraft, OutgoingMessage } from "./conversation.ts";
import type { FocusHost } from "./focus-keeper.ts";
import type { SendOptions } from "./session-options.ts";
import type { Reply } from "./transcript.ts";
import type { ViewHost } from "./view-state.ts";

/** What the person can ask of the element. */
export interface ScreenActions {
  /** Sends a message if the session accepts it. */
  send(message: OutgoingMessage, options?: SendOptions): void;
  draftChanged(draft: KeptDraft): void;
  /** Takes a reply with another `feedback`. */
  rate(reply: Reply): void;
  stop(): void;
  reset(): Promise<void>;
  toggleTheme(): void;
}

/** The element: what of it the parts of the screen read. */
export type ScreenHost = FocusHost & ViewHost & { readonly actions: string; readonly disclaimer: string };
