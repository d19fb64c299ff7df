/** The AI SDK, 5 to 7: the parts of `stream` and `fullStream`, the chunks of a UI message stream, and its agents. */

import { isInPlaceOfDecisions, type RunInput } from "../agent/run-function.ts";
import { asString, isRecord } from "../protocol/json.ts";
import { failure } from "./answer.ts";
import { alike, type Handlers, ignored, readByType, type Shape } from "./shape.ts";
import { exchangeOf, type Part, toModelMessages } from "./to-framework.ts";

/** Parts have what was said as `text`, chunks as `delta`; most types belong to one of the two. */
const HANDLERS: Handlers = {
  ...ignored("start", "finish-step", "text-start", "text-end", "reasoning-start", "reasoning-end", "raw"),
  ...ignored("tool-input-start", "tool-input-delta", "tool-input-end", "message-metadata", "reasoning-file", "custom"),
  ...ignored("source", "source-url", "source-document", "file", "tool-output-delta", "tool-approval-response"),
  "start-step": (_item, answer) => answer.nextStep(),
  "text-delta": ({ text, delta }, answer) => answer.text(text ?? delta),
  "reasoning-delta": ({ text, delta }, answer) => answer.thinking(text ?? delta),
  ...alike(["tool-call", "tool-input-available"], ({ toolCallId, toolName, input }, answer) => {
    answer.call(toolCallId, toolName, input);
  }),
  "tool-input-error"({ toolCallId, toolName, input, errorText }, answer) {
    answer.call(toolCallId, toolName, input);
    answer.thrown(toolCallId, errorText);
  },
  ...alike(["tool-result", "tool-output-available"], ({ toolCallId, output, preliminary }, answer) => {
    if (preliminary !== true) answer.result(toolCallId, output);
  }),
  "tool-error": ({ toolCallId, error }, answer) => answer.thrown(toolCallId, error),
  "tool-output-error": ({ toolCallId, errorText }, answer) => answer.thrown(toolCallId, errorText),
  "tool-output-denied": ({ toolCallId }, answer) => answer.result(toolCallId, "It was declined.", true),
  "tool-approval-request": ({ toolCall, toolCallId }, answer) => {
    const { toolCallId: id = toolCallId, toolName, input } = isRecord(toolCall) ? toolCall : {};
    const call = answer.openCallOf(id);
    answer.keepAll = keepMessages;
    answer.askApproval({ id, tool: toolName ?? call?.name, arguments: input ?? call?.arguments });
  },
  finish({ finishReason, totalUsage }, answer) {
    answer.finishedAs(finishReason);
    if (isRecord(totalUsage)) answer.addUsage(totalUsage.inputTokens, totalUsage.outputTokens);
  },
  error: ({ error, errorText }) => {
    throw error ?? failure("The agent's stream has an error.", new Error(asString(errorText)));
  },
  abort: ({ reason }) => {
    throw failure("The agent has ended its own answer.", reason);
  },
};

export const AI_SDK: Shape = {
  name: "AI SDK",
  fits(item) {
    if (!isRecord(item) || typeof item.type !== "string" || isRecord(item.payload)) return false;
    return Object.hasOwn(HANDLERS, item.type) || item.type.startsWith("data-");
  },
  reader: () => ({
    read: (item, answer) => readByType(HANDLERS, item, answer) || (item as { type: string }).type.startsWith("data-"),
  }),
};

/** Calls an agent with the conversation. */
export function callAgent(agent: { stream(options: object): unknown }, input: RunInput): unknown {
  return agent.stream({ messages: toModelMessages(input), abortSignal: input.signal });
}

/** What the SDK itself has added to the conversation, thoughts included: only its result has it. */
async function keepMessages({ responseMessages, response }: Part, input: RunInput): Promise<object[] | undefined> {
  const { messages } = Object((await response) ?? {}) as { messages?: unknown };
  const said = (await responseMessages) ?? messages;
  if (!Array.isArray(said)) return undefined;
  const goesOn = input.ctx.approvals.length > 0 && !isInPlaceOfDecisions(input);
  return goesOn ? [...exchangeOf(input), ...said] : said;
}
