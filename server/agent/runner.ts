/** What a run works with. */

import type { Attachment } from "../protocol/attachments.ts";
import type { ConversationState, Usage } from "../protocol/chat.ts";
import type { Provider } from "../providers/provider.ts";
import type { Agent } from "./define.ts";

/** One message to the agent, parsed and allowed. */
export interface RunRequest {
  message: string;
  attachments: readonly Attachment[];
  /** Checked state to continue from; empty for a new conversation. */
  state: ConversationState;
}

/** What serves every run. */
export interface Runner {
  readonly agent: Agent;
  readonly provider: Provider;
  /** Longest run, in milliseconds. */
  readonly maxRunMs: number;
  /** Makes a state ready to leave the server. */
  seal(state: ConversationState): ConversationState;
  /** Told of every failure, with its cause. */
  report(error: unknown): void;
}

/** What must be known when a run ends before its model was finished. */
export interface Progress {
  /** Text of the last turn that said anything. */
  said: string;
  /** Of that, what belongs to a turn that has not ended: the conversation does not know it yet. */
  unfinished: string;
  usage: Usage | undefined;
}
