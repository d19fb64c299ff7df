/** The states of an agent that is written elsewhere, as functions of the record of a run. */

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

/** The field of an assistant message that has the agent's own state. */
const STATE_FIELD = "run_state";

/** The agent may have done what it reported: also after a failure the state says so, for a client that sends the message again. */
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

/** All calls that were made before this run, with what is known of them. */
export function callsBefore(exchange: Exchange): KnownCall[] {
  return new Steps(exchange).calls();
}

/** What the agent has kept last. */
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

/** All that is over, and the exchange that goes on: from the last message of the user on. */
function splitAtExchange({ past, agentState }: Exchange, exchange: readonly HistoryMessage[]) {
  const all = [...past, ...exchange];
  const messages = agentState === undefined ? all : withState(all, agentState);
  const begin = messages.findLastIndex(({ role }) => role === "user");
  return { past: messages.slice(0, begin), open: messages.slice(begin) };
}

interface Call {
  call: HistoryToolCall;
  /** Absent as long as the call may still end. */
  result?: ToolMessage;
  /** Whether the result says that a person has declined. */
  isDeclined?: boolean;
}

/** A text, and the calls after it, with their results whenever those came. */
interface Step {
  text: string;
  calls: Call[];
  /** Fields of its message beyond these. */
  more: object;
}

class Steps {
  readonly #steps: (UserMessage | Step)[] = [];
  /** The last call of each id. */
  readonly #calls = new Map<string, Call>();
  /** Where the answer begins that is given now. */
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
    // The agent gets its files once: of those before, it gets to know what they were.
    if (message !== undefined) this.#steps.push(...(slimHistory([message], 0) as UserMessage[]));
    this.#begin = this.#steps.length;
    for (const entry of entries) {
      if (entry.type === "turn") {
        this.say(entry.text.toString());
        for (const call of entry.calls) this.#call(call);
      } else if (entry.type === "result") {
        const { id, content, failed } = entry.answer;
        // The agent has its pictures: they would travel with each later message.
        const [result] = slimHistory([toolMessage(id, content, failed)], 0);
        this.#setResult(result as ToolMessage, entry.isDeclined);
      }
    }
  }

  /** Whether anything was said or done about the message, or decided. */
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

  /** Takes all texts of the answer away. Calls stay. */
  withhold(): void {
    for (const step of this.#steps.splice(this.#begin)) {
      if ("calls" in step && step.calls.length > 0) this.#steps.push({ ...step, text: "" });
    }
  }

  /** Every call has a result, but for those that wait: they stand at the end, with what was said last. */
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

  /** One that may still end begins only once, whenever that is; and an agent that goes on may repeat what it has done. */
  #call({ call, isAsked }: ReportedCall): void {
    const known = this.#calls.get(call.id);
    const isOver = known?.result !== undefined;
    if (known === undefined || (isOver && isAsked)) this.#addCall(call);
    // What a person is asked is what waits.
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

  /** The step that goes on: an answer after decisions begins one of its own. */
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

/** The result of a call that may still end. */
const CANCELLED_TEXT = textOf(CANCELLED);

/** The state stands on the last message of the agent, and nowhere else. */
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
