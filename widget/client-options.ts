/** What a `ChatClient` is built with. */

import type { AgentInfo } from "../server/protocol/chat.ts";
import type { KeptDraft } from "./conversation.ts";

export interface ClientOptions {
  readonly server: URL;
  readonly id: string;
  /** A key that the site brings, or an empty text. */
  readonly givenKey: string;
  readonly onChange: () => void;
  readonly onReady: (info: AgentInfo) => void;
  /** A piece of an answer's text has come; `id` is the answer's. */
  readonly onToken: (text: string, id: string) => void;
  /** An earlier page left this in its composer. */
  readonly onDraft: (draft: KeptDraft) => void;
}
