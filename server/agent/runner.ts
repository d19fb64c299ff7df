/** What a run works with. */

import type { ReceivedFile } from "../protocol/attachments.ts";
import type { ConversationState, Usage } from "../protocol/chat.ts";
import type { StreamEvent } from "../protocol/events.ts";
import type { Provider, Tell } from "../providers/provider.ts";
import type { Agent } from "./define.ts";
import type { StateBinding } from "./state.ts";

/** One message to the agent, parsed and allowed. */
export interface RunRequest {
  message: string;
  attachments: readonly ReceivedFile[];
  /** Checked state to continue from; empty for a new conversation. */
  state: ConversationState;
}

/** Takes what a run says. */
export type TellRun = Tell<StreamEvent>;

/** What tools may take of a run. */
export interface ToolLimits {
  /** Longest output that goes to the model and to clients, in UTF-16 units; the rest is cut with a note. */
  readonly maxOutputChars: number;
  /** Calls of one model turn that are carried out; the model is told that the others were not. */
  readonly maxCallsPerTurn: number;
}

/** What serves every run. */
export interface Runner {
  readonly agent: Agent;
  readonly provider: Provider;
  /** Longest run, in milliseconds. */
  readonly maxRunMs: number;
  readonly toolLimits: ToolLimits;
  /** What states are bound to now, when they leave the server. */
  state(): StateBinding;
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
  /** Who gave the last answer, where the agent has several models. */
  model: string | undefined;
}
