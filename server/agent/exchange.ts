/**
 * The one record of a run: what was said and done about a message, in the order in which it came.
 * docs/internals/exchange.md says what always holds of it.
 */

import type { ReceivedFile } from "../protocol/attachments.ts";
import type { AssistantMessage, ConversationState, HistoryMessage, Usage, UserMessage } from "../protocol/chat.ts";
import { StringBuilder, userMessage } from "../providers/history.ts";
import type { AskedCall, KeptResponse, ToolAnswer, ToolCall, TurnFinish } from "../providers/provider.ts";
import { addUsage } from "../providers/usage.ts";

/** Stands between the texts that calls have parted, as clients read them. */
export const SEPARATOR = "\n\n";

/** What a run answers, and what it goes on from. */
export interface ExchangeStart {
  /** As it was verified: of the kind that its provider has, or empty for a new conversation. */
  readonly state: ConversationState;
  /**
   * What a door's client brings in place of a state: its own word, which an agent of either kind goes on from. Then the state
   * is empty, and none is given back.
   */
  readonly history?: readonly HistoryMessage[];
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
  text: StringBuilder;
  /** Calls of tools that run elsewhere. */
  readonly calls: ReportedCall[];
  /** The model's answer as the history keeps it; absent as long as it goes on, and of an agent that is written elsewhere. */
  kept?: AssistantMessage;
  /** What an API that keeps the conversation has kept of it. */
  response?: KeptResponse | undefined;
}

export interface ReportedCall {
  readonly call: ToolCall;
  /** Whether it waits for a person. */
  readonly isAsked: boolean;
}

/** The result of a call. */
export interface Result {
  readonly type: "result";
  readonly answer: ToolAnswer;
  /** Whether a person has declined the call. */
  readonly isDeclined: boolean;
}

/** What one request comes to. */
export interface RequestEnd {
  /** Absent as long as it goes on. */
  finish?: TurnFinish;
  /** As it was counted so far. */
  usage?: Usage | undefined;
  /** The model string of the model that was asked last, where the agent has several. */
  model?: string | undefined;
  /** The tools that the model wants to be carried out. */
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
  /** Whether a tool has run, the provider's own included: the same message would run it again. */
  hasUsedTools = false;
  /** Tokens of all requests that have ended. */
  usage: Usage | undefined;
  /** The model string of the model that answered last, where the agent has several. */
  model: string | undefined;
  /** What the request that was made last has come to. */
  turn: RequestEnd = { calls: [], asked: [] };
  /** What an agent that is written elsewhere gets back with the next message; known when its answer is over. */
  agentState: unknown;
  /** The sentence that clients got in place of an empty answer. */
  closing = "";
  /** What its framework needs to go on with what waits. */
  keptOfAll: unknown;
  readonly #runsElsewhere: boolean;
  /** Index of the entry where the answer began, or began again. */
  #answerFrom = 0;
  #saidBefore = "";

  /** `runsElsewhere`: what answers carries its tools out itself. */
  constructor(start: ExchangeStart, runsElsewhere = false) {
    const { message, attachments } = start;
    this.start = start;
    this.message = message === "" && attachments.length === 0 ? undefined : userMessage(message, attachments);
    this.#runsElsewhere = runsElsewhere;
  }

  /** The messages before, as far as they came with this one. */
  get past(): readonly HistoryMessage[] {
    return this.start.history ?? this.start.state.conversation_history ?? [];
  }

  /** The last text, from the place where the answer began again. */
  get said(): string {
    return this.text || this.#saidBefore;
  }

  /** The text of this turn, from the place where the answer began again. */
  get text(): string {
    return textsOf(this.entries.slice(this.#answerFrom)).join("");
  }

  /** All that was said, a blank line between turns. */
  get allSaid(): string {
    const texts = [...textsOf(this.entries), this.closing].map((text) => text.trim());
    return texts.filter((text) => text !== "").join(SEPARATOR);
  }

  /** The model is asked; with the message, if it was not asked before. */
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

  /** What was said in this turn was thinking, as its end has shown. Gives the text. */
  unsay(): string {
    const turn = this.#turnFor("text");
    const said = turn.text.toString();
    turn.text = new StringBuilder();
    return said;
  }

  /** The answer is what is said from here on. What was said before led to it. */
  beginAnew(): void {
    this.#saidBefore = this.said;
    this.#answerFrom = this.entries.length;
  }

  /** A tool is called that runs elsewhere. */
  call(call: ToolCall): void {
    this.hasUsedTools = true;
    if (this.#runsElsewhere) this.#turnFor("call").calls.push({ call, isAsked: false });
  }

  /** A tool that runs elsewhere has a result. */
  callEnded(answer: ToolAnswer): void {
    if (this.#runsElsewhere) this.answer(answer);
  }

  /** A call of an agent that is written elsewhere waits for a person. */
  ask(asked: AskedCall): void {
    this.turn.asked.push(asked);
    this.#turnFor("call").calls.push({ call: asked.call, isAsked: true });
  }

  end(end: Pick<RequestEnd, "finish" | "usage">): void {
    Object.assign(this.turn, end);
    this.usage = addUsage(this.usage, end.usage);
    this.model = this.turn.model;
  }

  /** Takes the answer of this turn as the history keeps it. */
  keep(message: AssistantMessage, response?: KeptResponse): void {
    Object.assign(this.#turnFor("text"), { kept: message, response });
  }

  answer(answer: ToolAnswer, isDeclined = false): void {
    this.entries.push({ type: "result", answer, isDeclined });
  }

  /** The turn that goes on. What an agent says after its calls, and what it calls after their results, is another one. */
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
