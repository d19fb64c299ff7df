/**
 * Makes model requests, and the state that a client gets, from the record of a run. There are two kinds of
 * conversations: either the client keeps the whole history, or the API keeps it.
 */

import type {
  AssistantMessage,
  ConversationState,
  HistoryMessage,
  StateKind,
  ToolMessage,
  WaitingCalls,
} from "../protocol/chat.ts";
import { CANCELLED, slimHistory, textContent, toolMessage } from "../providers/history.ts";
import type { ModelRequest, ToolAnswer } from "../providers/provider.ts";
import type { Exchange, Turn } from "./exchange.ts";

/** How a run has ended. A run that no client waits for any more has no state. */
export type End =
  /**
   * The model has answered, or was stopped. `text` is what clients got in place of an answer. `isWithheld`: clients did
   * not get the words of the run, so the state has none of them.
   */
  | { type: "answered"; text?: string; isWithheld?: boolean }
  /** A hook has replaced all words with the sentence. Calls and their results stay. */
  | { type: "refused"; sentence: string }
  /** Calls wait for a person. */
  | { type: "waiting"; waiting: WaitingCalls }
  | { type: "failed"; isWithheld?: boolean };

export interface EndState {
  /** Every call in it has a result, except those that wait for a person. */
  state: ConversationState;
  /** Whether the model can continue from this state without a message. */
  canContinue: boolean;
}

/** Maximum characters of base64 of all files in one state: 8 MiB, or half of `maxHistoryBytes` if that is less. */
export const MAX_FILE_CHARS = 8 * 1024 * 1024;

/** How conversations of one kind continue. */
export interface Kind {
  /** The next request; its turn has begun already. Throws if calls and results do not match, which is a bug. */
  request(exchange: Exchange): Pick<ModelRequest, "messages" | "previousId">;
  /**
   * The state after `end`. A failed run that made calls leaves its exchange open; a failed run without calls leaves the
   * former state, closed. Files have at most `maxFileChars` characters of base64. Never throws.
   */
  stateOf(exchange: Exchange, end: End, maxFileChars: number): EndState;
}

export const KINDS: Record<StateKind, Kind> = {
  conversation_history: {
    request(exchange) {
      return { messages: asked(new History(exchange, forModel)).messages };
    },
    stateOf: (exchange, end, maxFileChars) => new History(exchange, forClient, maxFileChars).stateAt(end),
  },
  previous_response_id: {
    request(exchange) {
      return asked(new StoredHistory(exchange, forModel)).request();
    },
    stateOf: (exchange, end, maxFileChars) => new StoredHistory(exchange, forClient, maxFileChars).stateAt(end),
  },
};

/** A result as the model gets it and, in `forClient`, as it leaves the server. */
const forModel = ({ id, content, failed, sources = [] }: ToolAnswer): ToolMessage => ({
  ...toolMessage(id, content, failed),
  ...(sources.length === 0 ? {} : { sources: [...sources] }),
});
const forClient = ({ shown, ...answer }: ToolAnswer): ToolMessage =>
  forModel(shown === undefined ? answer : { ...answer, content: textContent(shown) });

/** Asks the model to continue an answer that ended too early. No state for clients has it. */
const GO_ON: HistoryMessage = {
  role: "user",
  content: "Your last answer was cut off. Go on exactly where it stopped, without repeating anything of it.",
};

function asked<Kind extends Replay>(replay: Kind): Kind {
  if (replay.strayResult !== undefined) throw new Error(`no open call has the id ${replay.strayResult}`);
  if (replay.openCalls.size > 0) throw new Error("a call of the last turn is not answered");
  return replay;
}

/** Adds the entries of a run to the messages that its state had. */
abstract class Replay {
  readonly exchange: Exchange;
  /** Calls that have no result yet. */
  readonly openCalls: Set<string>;
  /** The id of a result without a call. */
  strayResult: string | undefined;
  /** Index in `messages` at which the exchange begins. */
  protected begin = 0;
  /** The last turn of the run. */
  protected last: Turn | undefined;
  abstract messages: HistoryMessage[];
  protected readonly maxFileChars: number;
  readonly #resultOf: typeof forModel;

  constructor(exchange: Exchange, resultOf: typeof forModel, maxFileChars = Number.POSITIVE_INFINITY) {
    this.maxFileChars = maxFileChars;
    this.exchange = exchange;
    this.openCalls = new Set(exchange.start.state.open?.waiting?.calls.map(({ id }) => id));
    this.#resultOf = resultOf;
  }

  protected replay(): void {
    for (const entry of this.exchange.entries) {
      if (entry.type === "message") this.#ask();
      else if (entry.type === "turn") this.#addTurn(entry);
      else this.#answer(entry.answer);
    }
  }

  /** An API that keeps the conversation also wants results of calls that the token limit has cut. */
  protected answerCutCalls(): void {}
  protected abstract addAnswer(message: AssistantMessage, turn: Turn): void;

  /** Whether the message closes the exchange that was open before it. */
  get #isNewExchange(): boolean {
    return !this.exchange.start.goesOn && this.exchange.message !== undefined;
  }

  /** Ends the run: answers open calls as cancelled, then adds the message if it was not sent yet. */
  protected close(): void {
    this.cancelOpenCalls();
    if (!this.exchange.hasAsked) this.#addMessage();
  }

  protected cancelOpenCalls(): void {
    for (const id of this.openCalls) this.messages.push(toolMessage(id, CANCELLED, true));
    this.openCalls.clear();
  }

  /** Texts that clients have seen as the end of the answer, and that no message of the model contains yet. */
  protected textsOf({ text = "", isWithheld }: Extract<End, { type: "answered" }>): string[] {
    const hasKept = this.last === undefined || this.last.kept !== undefined;
    const unfinished = hasKept || isWithheld ? "" : this.exchange.text;
    return [unfinished, text].filter((one) => one.trim() !== "");
  }

  #ask(): void {
    const last = this.messages.at(-1);
    const goesOn = this.exchange.start.goesOn && this.exchange.message === undefined;
    if (goesOn && (last === undefined || last.role === "assistant")) this.messages.push(GO_ON);
    else this.#addMessage();
  }

  #addMessage(): void {
    const { message } = this.exchange;
    if (this.#isNewExchange) this.begin = this.messages.length;
    if (message !== undefined) this.messages.push(message);
  }

  #addTurn(turn: Turn): void {
    this.answerCutCalls();
    this.last = turn;
    if (turn.kept === undefined) return;
    this.addAnswer(turn.kept, turn);
    for (const { id } of turn.kept.tool_calls ?? []) this.openCalls.add(id);
  }

  #answer(answer: ToolAnswer): void {
    if (this.openCalls.delete(answer.id)) this.messages.push(this.#resultOf(answer));
    else this.strayResult = answer.id;
  }
}

/** A conversation that the model gets as a whole with each request. */
class History extends Replay {
  messages: HistoryMessage[];
  /** Number of messages in the state that belong to closed exchanges, and of all its messages. */
  readonly #past: number;
  readonly #known: number;

  constructor(...made: ConstructorParameters<typeof Replay>) {
    super(...made);
    const [exchange] = made;
    const { past, start } = exchange;
    this.messages = [...past, ...(start.state.open?.messages ?? [])];
    this.#past = past.length;
    this.#known = this.messages.length;
    this.begin = past.length;
    this.replay();
  }

  stateAt(end: End): EndState {
    switch (end.type) {
      case "answered":
        this.close();
        if (end.isWithheld) this.#withhold();
        this.messages.push(...this.textsOf(end).map((text) => this.#messageOf(text)));
        return { state: this.#closed(), canContinue: false };
      case "refused":
        this.close();
        this.#withhold();
        this.messages.push({ role: "assistant", content: end.sentence });
        return { state: this.#closed(), canContinue: false };
      case "waiting":
        return { state: this.#open(end.waiting), canContinue: false };
      case "failed":
        return this.#failed(end.isWithheld);
    }
  }

  protected addAnswer(message: AssistantMessage): void {
    // An empty message says nothing to the model, and several APIs refuse it.
    if (!isSilent(message)) this.messages.push(message);
  }

  #failed(isWithheld = false): EndState {
    this.close();
    if (isWithheld) this.#withhold();
    const hasCalls = this.messages.slice(this.begin).some(({ role }) => role === "tool");
    if (hasCalls) return { state: this.#open(), canContinue: true };
    if (this.begin === this.#past) return { state: this.exchange.start.state, canContinue: false };
    // The message can be sent again, so it is removed. The exchange that was open before it is closed.
    this.messages.length = this.begin;
    return { state: this.#closed(), canContinue: false };
  }

  /** If the model only thought and said nothing, its thoughts are kept with the text that replaces its answer. */
  #messageOf(text: string): AssistantMessage {
    const kept = this.last?.kept;
    return { ...(kept && isSilent(kept) ? kept : {}), role: "assistant", content: text };
  }

  #withhold(): void {
    this.messages.push(...this.messages.splice(this.#known).flatMap(withoutWords));
  }

  #closed(): ConversationState {
    const { history } = this.#kept();
    return history.length === 0 ? {} : { conversation_history: history };
  }

  /** A state with this exchange open. The calls without a result are those that wait for a person. */
  #open(waiting?: WaitingCalls): ConversationState {
    const { history, begin } = this.#kept();
    return {
      ...(begin === 0 ? {} : { conversation_history: history.slice(0, begin) }),
      open: { messages: history.slice(begin), ...(waiting === undefined ? {} : { waiting }) },
    };
  }

  /** The messages as they leave the server, and where the exchange begins in them. */
  #kept(): { history: HistoryMessage[]; begin: number } {
    const { messages, begin } = this;
    const at = messages.indexOf(GO_ON);
    if (at === -1) return { history: slimHistory(messages, this.maxFileChars), begin };
    // What the model has added becomes one message with what it had said before `GO_ON`.
    const whole = joined(messages[at - 1], messages[at + 1]);
    const history = [...messages.slice(0, at - 1), ...whole, ...messages.slice(at + 2)];
    return { history: slimHistory(history, this.maxFileChars), begin: Math.min(begin, at - 1) };
  }
}

/** Whether a message has neither text nor calls; perhaps it has thoughts, or calls that the provider ran. */
function isSilent({ tool_calls: calls = [], content }: AssistantMessage): boolean {
  return calls.length === 0 && (content ?? "").trim() === "";
}

/** Reduces a message of the model to its calls, without thoughts or anything else that came with them. */
function withoutWords(message: HistoryMessage): HistoryMessage[] {
  if (message.role !== "assistant") return [message];
  const { tool_calls: calls = [] } = message;
  return calls.length === 0 ? [] : [{ role: "assistant", content: null, tool_calls: calls }];
}

/** Two answers of the model as one. `answer_parts` is dropped, because it fits only the text of one of them. */
function joined(before: HistoryMessage | undefined, after: HistoryMessage | undefined): HistoryMessage[] {
  if (before?.role !== "assistant") return after === undefined ? [] : [after];
  if (after?.role !== "assistant") return [before];
  const { answer_parts: _parts, ...rest } = after;
  return [{ ...rest, role: "assistant", content: `${before.content ?? ""}${after.content ?? ""}` }];
}

/** How much of the conversation an API that keeps it has. */
interface Position {
  /** The response to continue from; its calls may be open. */
  previousId: string | undefined;
  /** The last response that left no call open. The API refuses a new message after any other. */
  settledId: string | undefined;
  /** The messages that the API does not have yet. */
  messages: HistoryMessage[];
}

/** A conversation that the API keeps. */
class StoredHistory extends Replay {
  #at: Position;
  /** The position before the model's last turn, if that made no calls. */
  #before: Position | undefined;
  /** Calls that the token limit has cut: they are not carried out, but the API wants a result of each. */
  #cutCalls: readonly string[] = [];
  /** Whether calls were made in this exchange. */
  #hasCalls: boolean;

  constructor(...made: ConstructorParameters<typeof Replay>) {
    super(...made);
    const [exchange] = made;
    const { state, goesOn } = exchange.start;
    const { previous_response_id: settledId, open } = state;
    // The API gets a history of the client's with the first request, and keeps it from then on.
    const messages = [...exchange.past, ...(open?.messages ?? [])];
    this.#at = { previousId: open?.response ?? settledId, settledId, messages };
    this.#hasCalls = goesOn === true && open !== undefined;
    this.replay();
  }

  get messages(): HistoryMessage[] {
    return this.#at.messages;
  }

  request(): Pick<ModelRequest, "messages" | "previousId"> {
    return { messages: this.messages, previousId: this.#at.previousId };
  }

  stateAt(end: End): EndState {
    switch (end.type) {
      case "answered":
        this.close();
        // The API does not keep a response that was cut, so its text is among the messages that the API does not have.
        this.messages.push(...this.textsOf(end).map((content) => ({ role: "assistant" as const, content })));
        return { state: this.#state(), canContinue: false };
      case "refused":
        // The sentence is not added: the API keeps what its model has said.
        this.close();
        return { state: this.#state(), canContinue: false };
      case "waiting":
        return { state: this.#state(end.waiting), canContinue: false };
      case "failed":
        return this.#failed();
    }
  }

  protected override cancelOpenCalls(): void {
    super.cancelOpenCalls();
    this.answerCutCalls();
  }

  protected override answerCutCalls(): void {
    this.messages.push(...this.#cutCalls.map((id) => toolMessage(id, CANCELLED, false)));
    this.#cutCalls = [];
  }

  protected addAnswer({ tool_calls: calls = [] }: AssistantMessage, { response }: Turn): void {
    if (calls.length === 0) this.#before = this.#at;
    this.#cutCalls = response?.cutCalls ?? [];
    const isSettled = calls.length === 0 && this.#cutCalls.length === 0;
    const { settledId } = this.#at;
    this.#at = { previousId: response?.id, settledId: isSettled ? response?.id : settledId, messages: [] };
    this.#hasCalls ||= calls.length > 0;
  }

  #failed(): EndState {
    const { start, hasAsked, message } = this.exchange;
    // An answer that no hook has let pass is requested again.
    if (this.#before !== undefined) this.#at = this.#before;
    if (this.#hasCalls) {
      this.close();
      return { state: this.#state(), canContinue: true };
    }
    if (start.state.open === undefined) return { state: start.state, canContinue: false };
    // The message can be sent again, so it is removed. The exchange that was open before it is closed.
    this.cancelOpenCalls();
    if (hasAsked && message !== undefined) this.messages.length = this.begin;
    return { state: this.#state(), canContinue: false };
  }

  #state(waiting?: WaitingCalls): ConversationState {
    // Cut calls never wait for a person: no result could come later.
    this.answerCutCalls();
    const { previousId, settledId, messages } = this.#at;
    // With this id alone, a client continues from before the open exchange.
    const base = settledId === undefined ? {} : { previous_response_id: settledId };
    if (previousId === undefined || previousId === settledId) return base;
    const missing = slimHistory(
      messages.filter((message) => message !== GO_ON),
      this.maxFileChars,
    );
    const open = { response: previousId, messages: missing, ...(waiting === undefined ? {} : { waiting }) };
    return { ...base, open };
  }
}
