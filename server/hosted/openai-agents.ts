/** The OpenAI Agents SDK: the events of a run that is streamed. */

import { asString, isRecord, records, textsOf } from "../protocol/json.ts";
import type { Answer } from "./answer.ts";
import type { Handlers, Shape, ShapeReader } from "./shape.ts";
import { idOf } from "./to-framework.ts";

export const OPENAI_AGENTS: Shape = {
  name: "OpenAI Agents SDK",
  fits: (item) => isRecord(item) && asString(item.type).endsWith("_stream_event"),
  reader: () => new AgentsReader(),
};

/** What the model says comes as it is said, and once more whole: only what was not streamed is taken from there. */
class AgentsReader implements ShapeReader {
  #saidText = false;
  #saidThinking = false;

  read(item: unknown, answer: Answer): boolean {
    const { type, name, data, item: step } = item as Record<string, unknown>;
    if (type === "raw_model_stream_event" && isRecord(data)) this.#readModel(data, answer);
    else if (type === "run_item_stream_event" && isRecord(step)) this.#readStep(asString(name), step, answer);
    else return type === "agent_updated_stream_event";
    return true;
  }

  /** The stream may not name all that waits: the result does. */
  end(answer: Answer, sources: readonly Record<string, unknown>[]): void {
    const steps = sources.flatMap(({ interruptions }) => records(interruptions));
    const unnamed = steps.filter(({ rawItem }) => isRecord(rawItem) && !answer.asked.has(idOf(rawItem)));
    // The tools in which they were made go on after the decision, and are not reported once more.
    if (unnamed.length > 0) answer.release();
    for (const step of unnamed) ask(step, answer, true);
  }

  #readModel(data: Record<string, unknown>, answer: Answer): void {
    const { type, delta, response, event } = data;
    if (type === "response_started") {
      this.#saidText = false;
      this.#saidThinking = false;
      answer.nextStep();
    } else if (type === "output_text_delta") {
      this.#saidText = true;
      answer.text(delta);
    } else if (type === "model" && isRecord(event)) {
      const thought = thoughtOf(event);
      this.#saidThinking ||= thought !== "";
      answer.thinking(thought);
    } else if (type === "response_done" && isRecord(response)) {
      const { usage, output } = response;
      if (isRecord(usage)) answer.addUsage(usage.inputTokens, usage.outputTokens);
      const calls = records(output).filter((one) => asString(one.type).endsWith("_call"));
      answer.expect(calls.filter((call) => !answer.hasCalled(idOf(call))).length);
    }
  }

  #readStep(name: string, step: Record<string, unknown>, answer: Answer): void {
    const raw = isRecord(step.rawItem) ? step.rawItem : {};
    const handlers: Handlers = {
      message_output_created: () => {
        if (!this.#saidText) answer.text(textsOf(raw.content, "text"));
      },
      reasoning_item_created: () => {
        if (!this.#saidThinking) answer.thinking(textsOf(raw.content, "text"));
      },
      tool_called() {
        const { action, arguments: args, providerData } = raw;
        const { arguments: hosted } = isRecord(providerData) ? providerData : {};
        answer.call(idOf(raw), raw.name ?? raw.type, args ?? action ?? hosted);
        answer.expect(0);
        // A tool that the model's provider runs is over when its call comes.
        if (raw.type === "hosted_tool_call") answer.result(idOf(raw), raw.output ?? asString(raw.status));
      },
      tool_output: () => answer.result(idOf(raw), step.output),
      tool_approval_requested: () => ask(step, answer),
      // An agent has handed over to another one, whose text is as much the answer.
      handoff_occurred: () => answer.expect(0),
    };
    handlers[name]?.(step, answer);
  }
}

/** `isQuestion`: an agent within a tool asks, whose calls are no part of the stream. */
function ask({ rawItem, name: given }: Record<string, unknown>, answer: Answer, isQuestion = false): void {
  const raw = isRecord(rawItem) ? rawItem : {};
  const { name = given ?? raw.type, arguments: args } = raw;
  answer.keepAll = ({ state }) => (isRecord(state) ? String(state) : undefined);
  answer.askApproval({ id: idOf(raw), tool: name, arguments: args, isQuestion });
}

/** Thinking, which the SDK hands on as the model's provider wrote it: by Responses, or by Chat Completions. */
function thoughtOf({ type, delta, choices }: Record<string, unknown>): string {
  if (type === "response.reasoning_summary_text.delta" || type === "response.reasoning_text.delta") {
    return asString(delta);
  }
  const [choice] = records(choices);
  const said = isRecord(choice?.delta) ? choice.delta : {};
  return asString(said.reasoning_content) || asString(said.reasoning);
}
