/**
 * The only record of a run: what was said and done to answer a message, in the order in which it came.
 * The invariants are in docs/internals/exchange.md.
 */

import type { ReceivedFile } from "../protocol/attachments.ts";
import type { AssistantMessage, ConversationState, HistoryMessage, Usage, UserMessage } from "../protocol/chat.ts";
import { StringBuilder, userMessage } from "../providers/history.ts";
import type { AskedCall, KeptResponse, ToolAnswer, ToolCall, TurnFinish } from "../providers/provider.ts";
import { addUsage } from "../providers/usage.ts";

/** What clients read between two texts of an answer that have calls between them. */
export const SEPARATOR = "\n\n";

/** The message that a run answers, and the conversation before it. */
export interface ExchangeStart {
  /** Verified, and of the provider's state kind; empty for a new conversation. */
  readonly state: ConversationState;
  /**
   * The conversation that a client of a door (an endpoint of another protocol) sends instead of a state. It is
   * unverified, and works with both state kinds. `state` is empty then, and the client gets none back.
   */
  readonly history?: readonly HistoryMessage[];
  /** Empty, with no attachments, only if the model is asked to go on without a message. */
  readonly message: string;
  readonly attachments: readonly ReceivedFile[];
  /**
   * If true, the model continues the open exchange of the state, after the message if there is one; if no exchange is
   * open, it continues its last answer. Otherwise the message closes the open exchange.
   */
  readonly goesOn?: boolean | undefined;
}

export type Entry = AskedMessage | Turn | Result;

/** The first model request of the run, with the message if there is one. */
export interface AskedMessage {
  readonly type: "message";
}

/** One model request. For an agent that is written elsewhere: one text and the calls after it. */
export interface Turn {
  readonly type: "turn";
  text: StringBuilder;
  /** Calls of tools that run elsewhere. */
  readonly calls: ReportedCall[];
  /** The model's answer as the history keeps it. Absent until complete, and for an agent that is written elsewhere. */
  kept?: AssistantMessage;
  /** What the API has kept of the turn, if the API keeps the conversation. */
  response?: KeptResponse | undefined;
}

export interface ReportedCall {
  readonly call: ToolCall;
  /** Whether the call waits for a person's decision. */
  readonly isAsked: boolean;
}

/** The result of a call. */
export interface Result {
  readonly type: "result";
  readonly answer: ToolAnswer;
  /** Whether a person has declined the call. */
  readonly isDeclined: boolean;
}

/** The outcome of one model request. */
export interface RequestEnd {
  /** Absent until the request has ended. */
  finish?: TurnFinish;
  /** Tokens counted so far. */
  usage?: Usage | undefined;
  /** The model string of the model that was asked last, where the agent has several. */
  model?: string | undefined;
  /** The calls that the model wants the server to carry out. */
  readonly calls: ToolCall[];
  /** Calls of an agent that is written elsewhere, which wait for a person. */
  readonly asked: AskedCall[];
}

/** Entries are appended. Only the last turn changes, until its answer is kept. */
export class Exchange {
  readonly start: ExchangeStart;
  /** The message of the user; absent where the model is asked to go on. */
  readonly message: UserMessage | undefined;
  readonly entries: Entry[] = [];
  /** Whether the model was asked. */
  hasAsked = false;
  /** Whether a tool has run, the provider's own included. Sending the same message again would run it again. */
  hasUsedTools = false;
  /** Tokens of all requests that have ended. */
  usage: Usage | undefined;
  /** The model string of the model that answered last, where the agent has several. */
  model: string | undefined;
  /** The outcome of the latest model request. */
  turn: RequestEnd = { calls: [], asked: [] };
  /** What an agent that is written elsewhere gets back with the next message. Set when its answer has ended. */
  agentState: unknown;
  /** The sentence that clients got in place of an empty answer. */
  closing = "";
  /** What an agent's framework needs to continue after the decisions on all waiting calls. */
  keptOfAll: unknown;
  readonly #runsElsewhere: boolean;
  /** Index of the entry where the answer began, or began again. */
  #answerFrom = 0;
  #saidBefore = "";

  /** `runsElsewhere`: the agent is written elsewhere and carries out its own tools. */
  constructor(start: ExchangeStart, runsElsewhere = false) {
    const { message, attachments } = start;
    this.start = start;
    this.message = message === "" && attachments.length === 0 ? undefined : userMessage(message, attachments);
    this.#runsElsewhere = runsElsewhere;
  }

  /** The earlier messages, as far as the client sent them. */
  get past(): readonly HistoryMessage[] {
    return this.start.history ?? this.start.state.conversation_history ?? [];
  }

  /** The text of this turn or, as long as that is empty, the last one before it. */
  get said(): string {
    return this.text || this.#saidBefore;
  }

  /** The text since the answer last began: see `begin` and `beginAnew`. */
  get text(): string {
    return textsOf(this.entries.slice(this.#answerFrom)).join("");
  }

  /** All that was said, a blank line between turns. */
  get allSaid(): string {
    const texts = [...textsOf(this.entries), this.closing].map((text) => text.trim());
    return texts.filter((text) => text !== "").join(SEPARATOR);
  }

  /** Records a model request; the first one includes the message. */
  begin(): void {
    if (!this.hasAsked) this.entries.push({ type: "message" });
    this.hasAsked = true;
    this.beginAnew();
    this.turn = { calls: [], asked: [] };
    this.#addTurn();
  }

  say(delta: string): void {
    this.#turnFor("text").text.append(delta);
  }

  /** Removes and returns the text of this turn, which has turned out to be thinking. */
  unsay(): string {
    const turn = this.#turnFor("text");
    const said = turn.text.toString();
    turn.text = new StringBuilder();
    return said;
  }

  /** The answer begins here: the text before only led up to it. */
  beginAnew(): void {
    this.#saidBefore = this.said;
    this.#answerFrom = this.entries.length;
  }

  /** Records a call of a tool that runs elsewhere. */
  call(call: ToolCall): void {
    this.hasUsedTools = true;
    if (this.#runsElsewhere) this.#turnFor("call").calls.push({ call, isAsked: false });
  }

  /** Records the result of a tool that runs elsewhere. */
  callEnded(answer: ToolAnswer): void {
    if (this.#runsElsewhere) this.answer(answer);
  }

  /** Records a call, by an agent that is written elsewhere, that waits for a person. */
  ask(asked: AskedCall): void {
    this.turn.asked.push(asked);
    this.#turnFor("call").calls.push({ call: asked.call, isAsked: true });
  }

  end(end: Pick<RequestEnd, "finish" | "usage">): void {
    Object.assign(this.turn, end);
    this.usage = addUsage(this.usage, end.usage);
    this.model = this.turn.model;
  }

  /** Stores the answer of this turn as the history keeps it. */
  keep(message: AssistantMessage, response?: KeptResponse): void {
    Object.assign(this.#turnFor("text"), { kept: message, response });
  }

  answer(answer: ToolAnswer, isDeclined = false): void {
    this.entries.push({ type: "result", answer, isDeclined });
  }

  /** The current turn. Text after calls, and calls after results, begin a new one. */
  #turnFor(what: "text" | "call"): Turn {
    const last = this.entries.at(-1);
    const goesOn = last?.type === "turn" && this.entries.length > this.#answerFrom;
    return goesOn && (what === "call" || last.calls.length === 0) ? last : this.#addTurn();
  }

  #addTurn(): Turn {
    const turn: Turn = { type: "turn", text: new StringBuilder(), calls: [] };
    this.entries.push(turn);
    return turn;
  }
}

function textsOf(entries: readonly Entry[]): string[] {
  return entries.map((entry) => (entry.type === "turn" ? entry.text.toString() : ""));
}
