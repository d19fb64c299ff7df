/** What an agent has told of one message, as it stands in the history. */

import type { HistoryMessage } from "../protocol/chat.ts";
import { assistantMessage, CANCELLED, toHistoryCall, toolMessage } from "../providers/history.ts";
import type { ModelEvent, ToolAnswer, ToolCall } from "../providers/provider.ts";
import { StringBuilder } from "../providers/string-builder.ts";

/** A text, and the calls after it. */
interface Step {
  text: StringBuilder;
  calls: Map<string, { call: ToolCall; answer?: ToolAnswer }>;
}

export class Told {
  readonly #steps: Step[] = [];

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
    else if (event.type === "hosted_result") this.#answer(event.answer);
  }

  say(text: string): void {
    const last = this.#steps.at(-1);
    const step = last === undefined || last.calls.size > 0 ? this.#addStep() : last;
    step.text.append(text);
  }

  /** Puts `said` in the place of all texts. Calls stay. */
  withhold(said: string): void {
    const called = this.#steps.splice(0).filter(({ calls }) => calls.size > 0);
    this.#steps.push(...called.map(({ calls }) => ({ text: new StringBuilder(), calls })));
    if (said !== "") this.say(said);
  }

  /** Every call in it is answered. The last message is always one of the assistant. */
  toMessages(): HistoryMessage[] {
    return this.#steps.flatMap(({ text, calls }) => {
      const answers = [...calls.values()].map(({ call, answer }) =>
        toolMessage(call.id, answer?.content ?? CANCELLED, answer?.failed ?? true),
      );
      return [
        assistantMessage(
          text.toString(),
          [...calls.values()].map(({ call }) => toHistoryCall(call)),
        ),
        ...answers,
      ];
    });
  }

  #call(call: ToolCall): void {
    const step = this.#steps.at(-1) ?? this.#addStep();
    step.calls.set(call.id, { call });
  }

  #answer(answer: ToolAnswer): void {
    for (const { calls } of this.#steps) {
      const known = calls.get(answer.id);
      if (known !== undefined) known.answer = answer;
    }
  }

  #addStep(): Step {
    const step = { text: new StringBuilder(), calls: new Map() };
    this.#steps.push(step);
    return step;
  }
}
