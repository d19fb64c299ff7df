/** The two kinds of conversations: the client keeps the whole history, or the API keeps it. */

import type {
  AssistantMessage,
  ConversationState,
  HistoryMessage,
  StateKind,
  ToolMessage,
  WaitingCalls,
} from "../protocol/chat.ts";
import { CANCELLED, slimHistory, textContent, toolMessage, userMessage } from "./history.ts";
import type {
  Conversation,
  ConversationStart,
  KeptResponse,
  Model,
  ModelEvent,
  OnRequestId,
  Provider,
  ProviderFacts,
  ToolAnswer,
} from "./provider.ts";

/** A provider of a model whose states are of this kind. */
export function createProvider(
  { id, label, mediaTypes, models }: ProviderFacts,
  stateKind: StateKind,
  model: Model,
): Provider {
  const Kind = stateKind === "conversation_history" ? HistoryConversation : StoredConversation;
  return { id, label, mediaTypes, models, stateKind, model, open: (start) => new Kind(model, start) };
}

/** A conversation whose model gets all of it with each request. */
class HistoryConversation implements Conversation {
  readonly #model: Model;
  readonly #start: ConversationStart;
  readonly #next: NextMessage;
  readonly #messages: HistoryMessage[];
  /** How many messages the state has that are closed, and how many in all. */
  readonly #past: number;
  readonly #known: number;
  /** Where the exchange begins in the messages. */
  #begin: number;
  /** Calls that have no answer yet. */
  readonly #openCalls: Set<string>;
  readonly #results = new Results();
  #isOver = false;
  /** The last answer, if it has neither text nor calls; perhaps it has thoughts, or calls that the provider ran. */
  #silent: AssistantMessage | undefined;

  constructor(model: Model, start: ConversationStart) {
    const { conversation_history: past = [], open } = start.state;
    this.#model = model;
    this.#start = start;
    this.#next = new NextMessage(start);
    this.#messages = [...past, ...(open?.messages ?? [])];
    this.#past = past.length;
    this.#known = this.#messages.length;
    this.#begin = past.length;
    this.#openCalls = waitingIds(start);
  }

  ask(signal: AbortSignal, onRequestId?: OnRequestId): AsyncIterable<ModelEvent[]> {
    const messages = this.#messages;
    if (this.#openCalls.size > 0) throw new Error("a call of the last turn is not answered");
    if (this.#next.isNewExchange) this.#begin = messages.length;
    messages.push(...this.#next.take(messages.at(-1)));
    return this.#model({ setup: this.#start.setup, messages, keep: this.#keep, onRequestId }, signal);
  }

  answer(answers: readonly ToolAnswer[]): void {
    for (const answer of answers) {
      if (!this.#openCalls.delete(answer.id)) throw new Error(`no open call has the id ${answer.id}`);
      this.#messages.push(this.#results.messageOf(answer));
    }
  }

  interrupt(said: string): void {
    // At the turn limit the run may hand in the text that came with the calls, which is kept already.
    const last = this.#messages.at(-1);
    const isKept = last?.role === "assistant" && last.content === said;
    this.#close();
    if (said.trim() !== "" && !isKept) this.#messages.push({ ...this.#silent, role: "assistant", content: said });
  }

  withhold(said: string): void {
    this.#close();
    this.#messages.push(...this.#messages.splice(this.#known).flatMap(withoutWords));
    if (said !== "") this.#messages.push({ role: "assistant", content: said });
  }

  state(): ConversationState {
    if (!this.#isOver) return this.#start.state;
    const { history } = this.#kept();
    return history.length === 0 ? {} : { conversation_history: history };
  }

  openState(waiting?: WaitingCalls): ConversationState {
    const { history, begin } = this.#kept();
    return {
      ...(begin === 0 ? {} : { conversation_history: history.slice(0, begin) }),
      open: { messages: history.slice(begin), ...(waiting === undefined ? {} : { waiting }) },
    };
  }

  failure(): { state: ConversationState; canContinue: boolean } {
    if (this.#next.isNewExchange) {
      this.#cancelOpenCalls();
      this.#begin = this.#messages.length;
    } else this.#close();
    const hasCalls = this.#messages.slice(this.#begin).some(({ role }) => role === "tool");
    if (hasCalls) return { state: this.openState(), canContinue: true };
    if (this.#begin === this.#past) return { state: this.#start.state, canContinue: false };
    // The message can be sent again. What was open before it is closed.
    this.#isOver = true;
    this.#messages.length = this.#begin;
    return { state: this.state(), canContinue: false };
  }

  readonly #keep = (message: AssistantMessage): void => {
    const calls = message.tool_calls ?? [];
    const isSilent = calls.length === 0 && (message.content ?? "").trim() === "";
    // An empty message says nothing to the model, and several APIs refuse it.
    if (!isSilent) this.#messages.push(message);
    this.#silent = isSilent ? message : undefined;
    for (const call of calls) this.#openCalls.add(call.id);
    this.#isOver = calls.length === 0;
  };

  #close(): void {
    this.#cancelOpenCalls();
    if (this.#next.isNewExchange) this.#begin = this.#messages.length;
    this.#messages.push(...this.#next.takeMessage());
    this.#isOver = true;
  }

  #cancelOpenCalls(): void {
    for (const id of this.#openCalls) this.#messages.push(toolMessage(id, CANCELLED, true));
    this.#openCalls.clear();
  }

  /** The messages as they leave the server, and where the exchange begins in them. */
  #kept(): { history: HistoryMessage[]; begin: number } {
    const shown = this.#results.asShown(this.#messages);
    const at = shown.indexOf(GO_ON);
    if (at === -1) return { history: slimHistory(shown), begin: this.#begin };
    // What the model has added is one message with what it had said.
    const history = [...shown.slice(0, at - 1), ...joined(shown[at - 1], shown[at + 1]), ...shown.slice(at + 2)];
    return { history: slimHistory(history), begin: Math.min(this.#begin, at - 1) };
  }
}

/** What is left of a message of the model: its calls, without thoughts and whatever else came with them. */
function withoutWords(message: HistoryMessage): HistoryMessage[] {
  if (message.role !== "assistant") return [message];
  const { tool_calls: calls = [] } = message;
  return calls.length === 0 ? [] : [{ role: "assistant", content: null, tool_calls: calls }];
}

function waitingIds({ state }: ConversationStart): Set<string> {
  return new Set(state.open?.waiting?.calls.map(({ id }) => id));
}

/** How far an API that keeps the conversation has got, and what it does not have yet. */
interface Position {
  /** The response to continue from; its calls may be open. */
  previousId: string | undefined;
  /** The last response that left no call open. The API refuses a new message after any other. */
  settledId: string | undefined;
  messages: HistoryMessage[];
}

/** A conversation that the API keeps. */
class StoredConversation implements Conversation {
  readonly #model: Model;
  readonly #start: ConversationStart;
  readonly #next: NextMessage;
  #at: Position;
  /** Where the model's last turn went on from, if it has ended the run. */
  #before: Position | undefined;
  /** How many of the missing messages came before the exchange. */
  #begin = 0;
  /** Calls that have no answer yet. */
  readonly #openCalls: Set<string>;
  /** Calls that were cut: they are not carried out, but the API wants each answered. */
  #cutCalls: readonly string[] = [];
  /** Whether calls were made in this exchange. */
  #hasCalls: boolean;
  readonly #results = new Results();
  /** What the model has said in its last turn. */
  #lastSaid = "";
  #isOver = false;

  constructor(model: Model, start: ConversationStart) {
    const { previous_response_id: settledId, open } = start.state;
    this.#model = model;
    this.#start = start;
    this.#next = new NextMessage(start);
    this.#at = { previousId: open?.response ?? settledId, settledId, messages: [...(open?.messages ?? [])] };
    this.#openCalls = waitingIds(start);
    this.#hasCalls = start.goesOn === true && open !== undefined;
  }

  ask(signal: AbortSignal, onRequestId?: OnRequestId): AsyncIterable<ModelEvent[]> {
    if (this.#openCalls.size > 0) throw new Error("a call of the last turn is not answered");
    this.#answerCutCalls();
    const { messages, previousId } = this.#at;
    this.#begin = messages.length;
    messages.push(...this.#next.take(messages.at(-1)));
    return this.#model({ setup: this.#start.setup, messages, previousId, keep: this.#keep, onRequestId }, signal);
  }

  answer(answers: readonly ToolAnswer[]): void {
    for (const answer of answers) {
      if (!this.#openCalls.delete(answer.id)) throw new Error(`no open call has the id ${answer.id}`);
      this.#at.messages.push(this.#results.messageOf(answer));
    }
  }

  /** The API does not keep a response that was cut: its beginning goes with what the API does not have. */
  interrupt(said: string): void {
    this.#close();
    if (said.trim() !== "" && said !== this.#lastSaid) this.#at.messages.push({ role: "assistant", content: said });
  }

  withhold(): void {
    this.#close();
  }

  state(): ConversationState {
    return this.#isOver ? this.openState() : this.#start.state;
  }

  openState(waiting?: WaitingCalls): ConversationState {
    // They never wait: no answer could come later.
    this.#answerCutCalls();
    const { previousId, settledId, messages } = this.#at;
    // A request with this id alone goes on from before what is open.
    const settled = settledId === undefined ? {} : { previous_response_id: settledId };
    if (previousId === undefined || previousId === settledId) return settled;
    const missing = slimHistory(this.#results.asShown(messages).filter((message) => message !== GO_ON));
    const open = { response: previousId, messages: missing, ...(waiting === undefined ? {} : { waiting }) };
    return { ...settled, open };
  }

  failure(): { state: ConversationState; canContinue: boolean } {
    // An answer that was not let pass is asked for again.
    if (this.#before !== undefined) this.#at = this.#before;
    if (this.#hasCalls) {
      this.#close();
      return { state: this.openState(), canContinue: true };
    }
    if (this.#start.state.open === undefined) return { state: this.#start.state, canContinue: false };
    // The message can be sent again. What was open before it is closed.
    this.#cancelOpenCalls();
    if (!this.#next.isNewExchange) this.#at.messages.length = this.#begin;
    return { state: this.openState(), canContinue: false };
  }

  readonly #keep = ({ tool_calls: calls = [], content }: AssistantMessage, kept?: KeptResponse): void => {
    if (calls.length === 0) this.#before = this.#at;
    this.#cutCalls = kept?.cutCalls ?? [];
    const isSettled = calls.length === 0 && this.#cutCalls.length === 0;
    this.#at = { previousId: kept?.id, settledId: isSettled ? kept?.id : this.#at.settledId, messages: [] };
    this.#lastSaid = content ?? "";
    for (const { id } of calls) this.#openCalls.add(id);
    this.#hasCalls ||= calls.length > 0;
    this.#isOver = calls.length === 0;
  };

  #close(): void {
    this.#cancelOpenCalls();
    if (this.#next.isNewExchange) this.#begin = this.#at.messages.length;
    this.#at.messages.push(...this.#next.takeMessage());
    this.#isOver = true;
  }

  #cancelOpenCalls(): void {
    this.#at.messages.push(...[...this.#openCalls].map((id) => toolMessage(id, CANCELLED, true)));
    this.#openCalls.clear();
    this.#answerCutCalls();
  }

  #answerCutCalls(): void {
    this.#at.messages.push(...this.#cutCalls.map((id) => toolMessage(id, CANCELLED, false)));
    this.#cutCalls = [];
  }
}

/** Asks the model to go on with an answer that ended too early. No state of ours keeps it. */
const GO_ON: HistoryMessage = {
  role: "user",
  content: "Your last answer was cut off. Go on exactly where it stopped, without repeating anything of it.",
};

/** The message of a run, which the model gets as soon as the calls before it have their results. */
class NextMessage {
  readonly #goesOn: boolean;
  #message: HistoryMessage | undefined;
  #wasAsked = false;

  constructor({ message, attachments, goesOn = false }: ConversationStart) {
    this.#goesOn = goesOn;
    const isGiven = message !== "" || attachments.length > 0;
    this.#message = isGiven ? userMessage(message, attachments) : undefined;
  }

  /** Whether it was not sent yet, and begins an exchange of its own. */
  get isNewExchange(): boolean {
    return !this.#goesOn && this.#message !== undefined;
  }

  takeMessage(): HistoryMessage[] {
    const message = this.#message;
    this.#message = undefined;
    return message === undefined ? [] : [message];
  }

  /** What the model is to answer now, behind the last message that is known. */
  take(last: HistoryMessage | undefined): HistoryMessage[] {
    const isFirst = !this.#wasAsked;
    this.#wasAsked = true;
    const taken = this.takeMessage();
    if (taken.length > 0 || !isFirst || !this.#goesOn) return taken;
    return last === undefined || last.role === "assistant" ? [GO_ON] : [];
  }
}

/** The results of calls, with what clients get of them. */
class Results {
  /** The results that clients do not get as the model does. */
  readonly #shown = new Map<HistoryMessage, ToolMessage>();

  messageOf({ id, content, shown, failed }: ToolAnswer): ToolMessage {
    const result = toolMessage(id, content, failed);
    if (shown !== undefined) this.#shown.set(result, toolMessage(id, textContent(shown), failed));
    return result;
  }

  /** The messages as they leave the server. */
  asShown(messages: readonly HistoryMessage[]): HistoryMessage[] {
    return messages.map((message) => this.#shown.get(message) ?? message);
  }
}

/** Two answers of the model as one. What belongs to the text of either alone no longer fits. */
function joined(before: HistoryMessage | undefined, after: HistoryMessage | undefined): HistoryMessage[] {
  if (before?.role !== "assistant") return after === undefined ? [] : [after];
  if (after?.role !== "assistant") return [before];
  const { openai_output: _parts, ...rest } = after;
  return [{ ...rest, role: "assistant", content: `${before.content ?? ""}${after.content ?? ""}` }];
}
