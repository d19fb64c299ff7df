/** What the screen has of the element, and asks of it. */

import type { KeptDraft, OutgoingMessage } from "./conversation.ts";
import type { FocusHost } from "./focus-keeper.ts";
import type { Reply } from "./transcript.ts";
import type { ViewHost } from "./view-state.ts";

/** What the person can ask of the element. */
export interface ScreenActions {
  send(message: OutgoingMessage): Promise<void>;
  /** Sends a message in place of an earlier one. */
  edit(id: string, message: OutgoingMessage): Promise<void>;
  draftChanged(draft: KeptDraft): void;
  /** Takes a reply with another `feedback`. */
  rate(reply: Reply): void;
  stop(): void;
  reset(): Promise<void>;
  toggleTheme(): void;
}

/** The element: what of it the parts of the screen read. */
export type ScreenHost = FocusHost &
  ViewHost & { readonly actions: string; readonly disclaimer: string };
