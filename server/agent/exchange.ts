/** The one record of a run: what was said and done about a message, in the order in which it came. */

import { StringBuilder } from "../providers/string-builder.ts";
import type { ReceivedFile } from "../protocol/attachments.ts";
import type { AssistantMessage, ConversationState, Usage, UserMessage } from "../protocol/chat.ts";
import { userMessage } from "../providers/history.ts";
import { addUsage } from "../observe/run-recorder.ts";
import type { AskedCall, KeptResponse, ModelEvent, ToolAnswer, ToolCall, TurnFinish } from "../providers/provider.ts";

/** What a run answers, and what it goes on from. */
export interface ExchangeStart {
  /** As it was verified: of the kind that its provider has, or empty for a new conversation. */
  readonly state: ConversationState;
  /** Empty, without attachments, only where the model is asked to go on. */
  readonly message: string;
  readonly attachments: readonly ReceivedFile[];
  /**
   * The message, if there is one, follows what is open in the state, and the model goes on from there; without anything open
   * it goes on with its last answer. Otherwise the message closes what is open.
   */
  readonly goesOn?: boolean | undefined;
}

export type Entry = AskedMessage | Turn | Result;

/** The model is asked for the first time, with the message if there is one. */
export interface AskedMessage {
  readonly type: "message";
}

/** One model request; of an agent that is written elsewhere, a text and the calls after it. */
export interface Turn {
  readonly type: "turn";
  readonly text: StringBuilder;
  /** Calls that an agent carries out which is written elsewhere. */
  readonly calls: ReportedCall[];
  /** The model's answer as the history keeps it. */
  kept?: AssistantMessage;
  /** What an API that keeps the conversation has kept of it. */
  response?: KeptResponse | undefined;
}

export interface ReportedCall {
  readonly call: ToolCall;
  /** It waits for a person. */
  readonly isAsked: boolean;
}

/** The result of a call. */
export interface Result {
  readonly type: "result";
  readonly answer: ToolAnswer;
  /** A person has declined it. */
  readonly isDeclined: boolean;
}

/** What is appended is never changed, but for the turn that goes on. */
export class Exchange {
  readonly start: ExchangeStart;
  /** The message of the user, if there is one. */
  readonly message: UserMessage | undefined;
  readonly entries: Entry[] = [];
  /** Whether words of this run are in no state: they were not let pass. */
  isWithheld = false;
  /** Tokens of the turns that have ended. */
  usage: Usage | undefined;
  /** The model string of the model that answered last, where the agent has several. */
  model: string | undefined;
  /** Whether a tool has run, the provider's own included: the same message would run it again. */
  hasUsedTools = false;
  /** Text of the last turn that said anything, from where it began anew. */
  said = "";
  /** What an agent that is written elsewhere wants to have back with the next message. */
  agentState: unknown;
  /** What its framework needs to go on with what waits. */
  keptForDecision: unknown;
  /** Of the turn that goes on, or was the last: `undefined` until the model has ended it. */
  finish: TurnFinish | undefined;
  /** The tools that the model wants to be carried out. */
  calls: ToolCall[] = [];
  /** Calls of an agent that is written elsewhere, which wait for a person. */
  asked: AskedCall[] = [];
  #answer = new StringBuilder();
  readonly #runsElsewhere: boolean;

  /** `runsElsewhere`: the tools are carried out by what answers. */
  constructor(start: ExchangeStart, runsElsewhere = false) {
    this.start = start;
    const { message, attachments } = start;
    this.message = message === "" && attachments.length === 0 ? undefined : userMessage(message, attachments);
    this.#runsElsewhere = runsElsewhere;
  }
}
