/** The OpenAI Agents SDK: the events of a streamed run. */

import type { Usage } from "../protocol/chat.ts";
import { asString, isRecord, records, textsOf } from "../protocol/json.ts";
import { messageSources } from "../providers/citations.ts";
import { fieldsIn, openAiDetails, usageOf } from "../providers/usage.ts";
import type { Answer } from "./answer.ts";
import type { AgentAnswer } from "./inner-answer.ts";
import type { Handlers, Shape, ShapeReader } from "./shape.ts";
import { idOf } from "./to-framework.ts";

export const OPENAI_AGENTS: Shape = {
  name: "OpenAI Agents SDK",
  fits: (item) => isEvent(item) || (isRecord(item) && isEvent(item.event) && isRecord(item.toolCall)),
  reader: () => new AgentsReader(),
};

function isEvent(item: unknown): item is Record<string, unknown> & { type: string } {
  return isRecord(item) && asString(item.type).endsWith("_stream_event");
}

/** The model's output comes in pieces and again in whole items, from which only what was not streamed is used. */
class AgentsReader implements ShapeReader {
  /** The text of the last response. */
  #said = "";
  #saidThinking = false;
  /** Ids of steps by the ids of their calls, for agents within tools at any depth. */
  readonly #steps = new Map<string, string>();

  read(item: unknown, answer: Answer): boolean {
    const { type, name, data, item: step, event, toolCall } = item as Record<string, unknown>;
    if (isEvent(event) && isRecord(toolCall)) this.#readInner(toolCall, event, answer);
    else if (type === "raw_model_stream_event" && isRecord(data)) this.#readModel(data, answer);
    else if (type === "run_item_stream_event" && isRecord(step)) this.#readStep(asString(name), step, answer);
    else return type === "agent_updated_stream_event";
    return true;
  }

  /** The stream may not name all waiting calls; the run's result does. */
  end(answer: Answer, sources: readonly Record<string, unknown>[]): void {
    const steps = sources.flatMap(({ interruptions }) => records(interruptions));
    const unnamed = steps.filter(({ rawItem }) => isRecord(rawItem) && !answer.asked.has(idOf(rawItem)));
    // The tools within which these calls were made continue after the decision and are not reported again.
    if (unnamed.length > 0) answer.release();
    for (const step of unnamed) ask(step, answer, true);
  }

  #readModel(data: Record<string, unknown>, answer: Answer): void {
    const { type, delta, response, event } = data;
    if (type === "response_started") {
      this.#said = "";
      this.#saidThinking = false;
      answer.nextStep();
    } else if (type === "output_text_delta") {
      this.#said += asString(delta);
      answer.text(delta);
    } else if (type === "model" && isRecord(event)) {
      const thought = thoughtOf(event);
      this.#saidThinking ||= thought !== "";
      answer.thinking(thought);
    } else if (type === "response_done" && isRecord(response)) {
      const { usage, output } = response;
      answer.addUsage(usageIn(usage));
      const calls = records(output).filter((one) => asString(one.type).endsWith("_call"));
      answer.expect(calls.filter((call) => !answer.hasCalled(idOf(call))).length);
    }
  }

  #readStep(name: string, step: Record<string, unknown>, answer: Answer): void {
    const raw = isRecord(step.rawItem) ? step.rawItem : {};
    const handlers: Handlers = {
      message_output_created: () => {
        const text = textsOf(raw.content, "text");
        if (this.#said === "") answer.text(text);
        this.#said ||= text;
        for (const source of messageSources(raw.content, this.#said)) answer.source(source);
      },
      reasoning_item_created: () => {
        if (!this.#saidThinking) answer.thinking(textsOf(raw.content, "text"));
      },
      tool_called: () => readCall(step, answer),
      tool_output: () => answer.result(idOf(raw), step.output),
      tool_approval_requested: () => ask(step, answer),
      // The agent has handed over to another agent, whose text is part of the answer, too.
      handoff_occurred: () => answer.expect(0),
    };
    handlers[name]?.(step, answer);
  }

  /** Reads what `onStream` of an agent as a tool gets: an event of that agent, and the call that it works in. */
  #readInner(toolCall: Record<string, unknown>, { name, item, data }: Record<string, unknown>, answer: Answer): void {
    const id = idOf(toolCall);
    const known = answer.isOpen(id) ? id : this.#steps.get(id);
    const inner = answer.within(known ?? answer.call(id, toolCall.name, toolCall.arguments));
    const step = isRecord(item) ? item : {};
    const called = idOf(isRecord(step.rawItem) ? step.rawItem : {});
    if (name === "tool_called") {
      this.#steps.set(called, inner.stepOf(called));
      readCall(step, inner);
    } else if (name === "tool_output") inner.result(called, step.output);
    else if (isRecord(data) && data.type === "response_done" && isRecord(data.response))
      answer.addUsage(usageIn(data.response.usage));
  }
}

function readCall({ rawItem }: Record<string, unknown>, answer: AgentAnswer): void {
  const raw = isRecord(rawItem) ? rawItem : {};
  const { action, arguments: args, providerData } = raw;
  const { arguments: hosted } = isRecord(providerData) ? providerData : {};
  answer.call(idOf(raw), raw.name ?? raw.type, args ?? action ?? hosted);
  answer.expect(0);
  // A tool that the model's provider runs has ended when its call is reported.
  if (raw.type === "hosted_tool_call") answer.result(idOf(raw), raw.output ?? asString(raw.status));
}

/** `isQuestion`: an agent within a tool asks, whose calls are not in the stream. */
function ask({ rawItem, name: given }: Record<string, unknown>, answer: Answer, isQuestion = false): void {
  const raw = isRecord(rawItem) ? rawItem : {};
  const { name = given ?? raw.type, arguments: args } = raw;
  answer.keepAll = ({ state }) => (isRecord(state) ? String(state) : undefined);
  answer.askApproval({ id: idOf(raw), tool: name, arguments: args, isQuestion });
}

/** Thinking, which the SDK passes on in the provider's format: Responses or Chat Completions. */
function thoughtOf({ type, delta, choices }: Record<string, unknown>): string {
  if (type === "response.reasoning_summary_text.delta" || type === "response.reasoning_text.delta") {
    return asString(delta);
  }
  const [choice] = records(choices);
  const said = isRecord(choice?.delta) ? choice.delta : {};
  return asString(said.reasoning_content) || asString(said.reasoning);
}

/** Details may be a list with one entry for each request. */
function usageIn(usage: unknown): Usage | undefined {
  const { inputTokens: input, outputTokens: output, inputTokensDetails, outputTokensDetails } = fieldsIn(usage);
  const details = openAiDetails([inputTokensDetails].flat()[0], [outputTokensDetails].flat()[0]);
  return usageOf({ input, output, ...details });
}
