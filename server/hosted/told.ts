/** What an agent has said about one message, as it stands in the history. */

import type { HistoryMessage } from "../protocol/chat.ts";
import { assistantMessage, CANCELLED, toHistoryCall, toolMessage } from "../providers/history.ts";
import type { ModelEvent, ToolAnswer, ToolCall } from "../providers/provider.ts";
import { StringBuilder } from "../providers/string-builder.ts";

/** A text, and the calls after it. */
interface Step {
  /** The history has the text and the calls already: their results follow. */
  isKnown?: true;
  text: StringBuilder;
  calls: Map<string, { call: ToolCall; answer?: ToolAnswer }>;
}

export class Told {
  readonly #steps: Step[] = [];

  /** What follows calls that have waited. */
  constructor(waiting: readonly ToolCall[] = []) {
    if (waiting.length === 0) return;
    const calls = new Map(waiting.map((call) => [call.id, { call }]));
    this.#steps.push({ isKnown: true, text: new StringBuilder(), calls });
  }

  get isEmpty(): boolean {
    return this.#steps.length === 0;
  }

  /** What was said after the last call. */
  get lastText(): string {
    const last = this.#steps.at(-1);
    return last === undefined || last.calls.size > 0 ? "" : last.text.toString();
  }

  add(event: ModelEvent): void {
    if (event.type === "text") this.say(event.delta);
    else if (event.type === "hosted_call") this.#call(event.call);
    else if (event.type === "approval") this.#call(event.asked.call);
    else if (event.type === "hosted_result") this.answer(event.answer);
  }

  say(text: string): void {
    const last = this.#steps.at(-1);
    const step = last === undefined || last.calls.size > 0 ? this.#addStep() : last;
    step.text.append(text);
  }

  /** Puts `said` in the place of all texts. Calls stay. */
  withhold(said: string): void {
    const called = this.#steps.splice(0).filter(({ calls }) => calls.size > 0);
    this.#steps.push(...called.map((step) => ({ ...step, text: new StringBuilder() })));
    if (said !== "") this.say(said);
  }

  /** Every call in it is answered, but for those that wait. */
  toMessages(waiting: readonly ToolCall[] = []): HistoryMessage[] {
    const ids = new Set(waiting.map(({ id }) => id));
    return this.#steps.flatMap(({ isKnown, text, calls }) => {
      const made = [...calls.values()];
      const answers = made
        .filter(({ call }) => !ids.has(call.id))
        .map(({ call, answer }) => toolMessage(call.id, answer?.content ?? CANCELLED, answer?.failed ?? true));
      const said = assistantMessage(
        text.toString(),
        made.map(({ call }) => toHistoryCall(call)),
      );
      return isKnown ? answers : [said, ...answers];
    });
  }

  answer(answer: ToolAnswer): void {
    for (const { calls } of this.#steps) {
      const known = calls.get(answer.id);
      if (known !== undefined) known.answer = answer;
    }
  }

  #call(call: ToolCall): void {
    if (this.#steps.some(({ calls }) => calls.has(call.id))) return;
    const step = this.#steps.at(-1) ?? this.#addStep();
    step.calls.set(call.id, { call });
  }

  #addStep(): Step {
    const step = { text: new StringBuilder(), calls: new Map() };
    this.#steps.push(step);
    return step;
  }
}
