/** The states of an agent with its own `run`, computed from the record of a run. */

import { isDeepStrictEqual } from "node:util";
import { isDeclinedAnswer } from "../agent/approvals.ts";
import type { Exchange, ReportedCall } from "../agent/exchange.ts";
import type { End, EndState } from "../agent/states.ts";
import type {
  AssistantMessage,
  HistoryMessage,
  HistoryToolCall,
  ToolMessage,
  UserMessage,
  WaitingCalls,
} from "../protocol/chat.ts";
import { assistantMessage, CANCELLED, slimHistory, textOf, toHistoryCall, toolMessage } from "../providers/history.ts";
import type { ToolCall } from "../providers/provider.ts";
import type { KnownCall } from "./answer.ts";

/** The field of an assistant message that stores the agent's own state. */
const STATE_FIELD = "run_state";

/** The state after a run. It includes what a failed run reported: the agent may have done that before a retry. */
export function stateOf(exchange: Exchange, end: End): EndState {
  const steps = new Steps(exchange);
  switch (end.type) {
    case "answered":
      if (end.isWithheld) steps.withhold();
      steps.say(end.text ?? "");
      return closedState(exchange, steps);
    case "refused":
      steps.withhold();
      steps.say(end.sentence);
      return closedState(exchange, steps);
    case "waiting":
      return openState(exchange, steps, end.waiting);
    case "failed":
      if (end.isWithheld) steps.withhold();
      return steps.hasBegun ? closedState(exchange, steps) : { state: exchange.start.state, canContinue: false };
  }
}

/** All calls that were made before this run, with their results, if known. */
export function callsBefore(exchange: Exchange): KnownCall[] {
  return new Steps(exchange).calls();
}

/** The agent's last state. */
export function lastState(history: readonly HistoryMessage[]): unknown {
  const last = history.findLast((message) => message.role === "assistant" && message[STATE_FIELD] !== undefined);
  return last?.role === "assistant" ? last[STATE_FIELD] : undefined;
}

function closedState(exchange: Exchange, steps: Steps): EndState {
  const { past, open } = splitAtExchange(exchange, steps.toMessages([]));
  return { state: { conversation_history: [...past, ...open] }, canContinue: false };
}

function openState(exchange: Exchange, steps: Steps, waiting: WaitingCalls): EndState {
  const { past, open } = splitAtExchange(exchange, steps.toMessages(waiting.calls));
  const kept = exchange.keptOfAll === undefined ? {} : { kept: exchange.keptOfAll };
  const before = past.length === 0 ? {} : { conversation_history: past };
  return { state: { ...before, open: { messages: open, waiting: { ...waiting, ...kept } } }, canContinue: false };
}

/** Splits all messages into the past and the open exchange, which begins with the user's last message. */
function splitAtExchange({ past, agentState }: Exchange, exchange: readonly HistoryMessage[]) {
  const all = [...past, ...exchange];
  const messages = agentState === undefined ? all : withState(all, agentState);
  const begin = messages.findLastIndex(({ role }) => role === "user");
  return { past: messages.slice(0, begin), open: messages.slice(begin) };
}

interface Call {
  call: HistoryToolCall;
  /** Absent while the call may still end. */
  result?: ToolMessage;
  /** Whether the result says that the user has declined the call. */
  isDeclined?: boolean;
}

/** A text, and the calls after it with their results, even if those came later. */
interface Step {
  text: string;
  calls: Call[];
  /** Other fields of its message. */
  more: object;
}

class Steps {
  readonly #steps: (UserMessage | Step)[] = [];
  /** The last call of each id. */
  readonly #calls = new Map<string, Call>();
  /** Index of the first step of this run's answer. */
  readonly #begin: number;
  readonly #isOpen: boolean;

  constructor({ start, message, entries }: Exchange) {
    const { open } = start.state;
    this.#isOpen = open !== undefined;
    for (const before of open?.messages ?? []) {
      if (before.role === "user") this.#steps.push(before);
      else if (before.role === "assistant") this.#addMessage(before);
      else if (message !== undefined || before.content !== CANCELLED_TEXT)
        this.#setResult(before, isDeclinedAnswer(before));
    }
    // The agent gets files only once; afterwards, the history only describes them.
    if (message !== undefined) this.#steps.push(...(slimHistory([message], 0) as UserMessage[]));
    this.#begin = this.#steps.length;
    for (const entry of entries) {
      if (entry.type === "turn") {
        this.say(entry.text.toString());
        for (const call of entry.calls) this.#call(call);
      } else if (entry.type === "result") {
        const { id, content, failed } = entry.answer;
        // Images are removed: the agent has them, and they would be sent with each later message.
        const [result] = slimHistory([toolMessage(id, content, failed)], 0);
        this.#setResult(result as ToolMessage, entry.isDeclined);
      }
    }
  }

  /** Whether there is any text, call or decision about the message. */
  get hasBegun(): boolean {
    return this.#isOpen || this.#steps.length > this.#begin;
  }

  calls(): KnownCall[] {
    return this.#steps.flatMap((step) => {
      const calls = "calls" in step ? step.calls : [];
      return calls.map(({ call: { id, function: called }, result, isDeclined = false }) => {
        return { call: { id, ...called }, isDue: result === undefined, isDeclined };
      });
    });
  }

  say(text: string): void {
    if (text === "") return;
    const last = this.#lastStep();
    const step = last === undefined || last.calls.length > 0 ? this.#addStep() : last;
    step.text += text;
  }

  /** Removes all texts of the answer. Calls stay. */
  withhold(): void {
    for (const step of this.#steps.splice(this.#begin)) {
      if ("calls" in step && step.calls.length > 0) this.#steps.push({ ...step, text: "" });
    }
  }

  /** Every call gets a result, except those that wait: they are put at the end, with the last text. */
  toMessages(waiting: readonly ToolCall[]): HistoryMessage[] {
    const open = new Set(waiting.flatMap(({ id }) => this.#calls.get(id) ?? []));
    const last = this.#steps.at(-1);
    return this.#steps.flatMap((step): HistoryMessage[] => {
      if (!("calls" in step)) return [step];
      const { text, more } = step;
      const done = step.calls.filter((one) => !open.has(one));
      const made = step === last ? [...done, ...open] : done;
      if (made.length === 0 && text === "" && Object.keys(more).length === 0) return [];
      const calls = made.map(({ call }) => call);
      const results = done.map(({ call, result }) => result ?? toolMessage(call.id, CANCELLED, true));
      return [{ ...more, ...assistantMessage(text, calls) }, ...results];
    });
  }

  /** Adds a call unless it is known: an open call begins only once, and a resumed agent may repeat what it has done. */
  #call({ call, isAsked }: ReportedCall): void {
    const known = this.#calls.get(call.id);
    const isOver = known?.result !== undefined;
    if (known === undefined || (isOver && isAsked)) this.#addCall(call);
    // The call waits with the arguments that the user was asked about.
    else if (isAsked) known.call = toHistoryCall(call);
    else if (isOver && !isDeepStrictEqual(known.call.function, toHistoryCall(call).function)) this.#addCall(call);
  }

  #setResult(result: ToolMessage, isDeclined: boolean): void {
    const known = this.#calls.get(result.tool_call_id);
    if (known !== undefined) Object.assign(known, { result, isDeclined });
  }

  #addCall(call: ToolCall): void {
    const last = this.#lastStep();
    const known = this.#calls.get(call.id);
    const step = last === undefined || (known !== undefined && last.calls.includes(known)) ? this.#addStep() : last;
    this.#keep(step, toHistoryCall(call));
  }

  #addMessage({ role: _role, content, tool_calls: calls = [], ...more }: AssistantMessage): void {
    const step = this.#addStep(more);
    step.text = content ?? "";
    for (const call of calls) this.#keep(step, call);
  }

  #keep(step: Step, call: HistoryToolCall): void {
    const added = { call };
    step.calls.push(added);
    this.#calls.set(call.id, added);
  }

  /** The current step of this run's answer: an answer after decisions begins with a new step. */
  #lastStep(): Step | undefined {
    const last = this.#steps.length > this.#begin ? this.#steps.at(-1) : undefined;
    return last === undefined || !("calls" in last) ? undefined : last;
  }

  #addStep(more: object = {}): Step {
    const step = { text: "", calls: [], more };
    this.#steps.push(step);
    return step;
  }
}

/** Text of the result that stands in for a call that may still end. */
const CANCELLED_TEXT = textOf(CANCELLED);

/** Stores the state on the agent's last message, and removes it from all others. */
function withState(history: readonly HistoryMessage[], state: unknown): HistoryMessage[] {
  const messages = history.map(withoutState);
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  if (last < asked) return [...messages, { role: "assistant", content: "", [STATE_FIELD]: state }];
  return messages.with(last, { ...messages[last], [STATE_FIELD]: state } as AssistantMessage);
}

function withoutState(message: HistoryMessage): HistoryMessage {
  if (message.role !== "assistant" || message[STATE_FIELD] === undefined) return message;
  const { [STATE_FIELD]: _former, ...rest } = message;
  return rest as AssistantMessage;
}
