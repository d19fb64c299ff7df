/** What was said and done about one message, from the message on: as a list of entries, and as messages of the history. */

import { isDeepStrictEqual } from "node:util";
import { isDeclinedAnswer } from "../agent/approvals.ts";
import type { AssistantMessage, HistoryMessage, HistoryToolCall, ToolMessage, UserMessage } from "../protocol/chat.ts";
import { assistantMessage, CANCELLED, textOf, toHistoryCall, toolMessage } from "../providers/history.ts";
import type { ModelEvent, ToolAnswer, ToolCall } from "../providers/provider.ts";
import { StringBuilder } from "../providers/string-builder.ts";
import type { KnownCall } from "./answer.ts";

interface Call {
  call: HistoryToolCall;
  /** Absent as long as the call may still end. */
  result?: ToolMessage;
  /** Whether the result says that a person has declined. */
  isDeclined?: boolean;
}

/** A text, and the calls after it. */
interface Step {
  text: StringBuilder;
  calls: Call[];
  /** Fields of its message beyond these. */
  more: object;
}

export class Exchange {
  readonly #entries: (UserMessage | Step)[] = [];
  /** The last call of each id. */
  readonly #calls = new Map<string, Call>();
  /** Where the answer begins that is given now. */
  readonly #begin: number;

  /** `open`: the exchange that goes on, or that the message `asked` closes, with all of its calls. */
  constructor(open: readonly HistoryMessage[], asked: UserMessage | undefined) {
    for (const message of open) {
      if (message.role === "user") this.#entries.push(message);
      else if (message.role === "assistant") this.#addMessage(message);
      else if (asked !== undefined || message.content !== CANCELLED_TEXT)
        this.#setResult(message, isDeclinedAnswer(message));
    }
    if (asked !== undefined) this.#entries.push(asked);
    this.#begin = this.#entries.length;
  }

  /** Whether nothing was said or done about the message. */
  get isEmpty(): boolean {
    return this.#entries.length === this.#begin;
  }

  /** All that the answer has said. */
  get text(): string {
    const said = this.#entries.slice(this.#begin);
    return said.map((entry) => ("calls" in entry ? entry.text.toString() : "")).join("");
  }

  /** All calls of before. */
  calls(): KnownCall[] {
    return this.#entries.flatMap((entry) => {
      const calls = "calls" in entry ? entry.calls : [];
      return calls.map(({ call: { id, function: called }, result, isDeclined = false }) => {
        return { call: { id, ...called }, isDue: result === undefined, isDeclined };
      });
    });
  }

  add(event: ModelEvent): void {
    if (event.type === "text") this.say(event.delta);
    else if (event.type === "hosted_call") this.#call(event.call);
    else if (event.type === "approval") this.#ask(event.asked.call);
    else if (event.type === "hosted_result") this.#answer(event.answer);
  }

  say(text: string): void {
    const last = this.#lastStep();
    const step = last === undefined || last.calls.length > 0 ? this.#addStep() : last;
    step.text.append(text);
  }

  decline(answer: ToolAnswer): void {
    this.#answer(answer, true);
  }

  /** Puts `said` in the place of all texts of the answer. Calls stay. */
  withhold(said: string): void {
    for (const entry of this.#entries.splice(this.#begin)) {
      if ("calls" in entry && entry.calls.length > 0) this.#entries.push({ ...entry, text: new StringBuilder() });
    }
    if (said !== "") this.say(said);
  }

  /** Every call has a result, but for those that wait: they stand at the end, with what was said last. */
  toMessages(waiting: readonly ToolCall[] = []): HistoryMessage[] {
    const open = new Set(waiting.flatMap(({ id }) => this.#calls.get(id) ?? []));
    const last = this.#entries.at(-1);
    return this.#entries.flatMap((entry): HistoryMessage[] => {
      if (!("calls" in entry)) return [entry];
      const { text, more } = entry;
      const done = entry.calls.filter((one) => !open.has(one));
      const made = entry === last ? [...done, ...open] : done;
      if (made.length === 0 && text.length === 0 && Object.keys(more).length === 0) return [];
      const calls = made.map(({ call }) => call);
      const results = done.map(({ call, result }) => result ?? toolMessage(call.id, CANCELLED, true));
      return [{ ...more, ...assistantMessage(text.toString(), calls) }, ...results];
    });
  }

  /** One that may still end begins only once, whenever that is; and an agent that goes on may repeat what it has done. */
  #call(call: ToolCall): void {
    const known = this.#calls.get(call.id);
    const { function: called } = toHistoryCall(call);
    const isKnown = known?.result === undefined || isDeepStrictEqual(known.call.function, called);
    if (known === undefined || !isKnown) this.#addCall(call);
  }

  #ask(call: ToolCall): void {
    const known = this.#calls.get(call.id);
    if (known === undefined || known.result !== undefined) this.#addCall(call);
    // What a person is asked is what waits.
    else known.call = toHistoryCall(call);
  }

  #answer({ id, content, failed }: ToolAnswer, isDeclined = false): void {
    this.#setResult(toolMessage(id, content, failed), isDeclined);
  }

  #setResult(result: ToolMessage, isDeclined = false): void {
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
    step.text.append(content ?? "");
    for (const call of calls) this.#keep(step, call);
  }

  #keep(step: Step, call: HistoryToolCall): void {
    const added = { call };
    step.calls.push(added);
    this.#calls.set(call.id, added);
  }

  /** The step that goes on: an answer after decisions begins one of its own. */
  #lastStep(): Step | undefined {
    const last = this.#entries.at(-1);
    return this.isEmpty || last === undefined || !("calls" in last) ? undefined : last;
  }

  #addStep(more: object = {}): Step {
    const step = { text: new StringBuilder(), calls: [], more };
    this.#entries.push(step);
    return step;
  }
}

/** The result of a call that may still end. */
const CANCELLED_TEXT = textOf(CANCELLED);
