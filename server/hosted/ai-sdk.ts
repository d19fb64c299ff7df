/** The AI SDK, 5 to 7: the parts of `stream` and `fullStream`, the chunks of a UI message stream, and its agents. */

import { isInPlaceOfDecisions, type RunInput } from "../agent/run-function.ts";
import { asString, isRecord, records, textsOf } from "../protocol/json.ts";
import { sdkUsage } from "../providers/ai-sdk/usage.ts";
import { plainSource } from "../providers/citations.ts";
import { type Answer, failure } from "./answer.ts";
import { type AgentAnswer, statusOf } from "./inner-answer.ts";
import { alike, type Handlers, ignored, readByType, type Shape } from "./shape.ts";
import { exchangeOf, type Part, toModelMessages } from "./to-framework.ts";

const DECLINED = "It was declined.";

/** Stream parts have their text as `text`, UI message chunks as `delta`; most types belong to one of the two. */
const HANDLERS: Handlers = {
  ...ignored("start", "finish-step", "text-start", "text-end", "reasoning-start", "reasoning-end", "raw"),
  ...ignored("tool-input-start", "tool-input-delta", "tool-input-end", "message-metadata", "reasoning-file", "custom"),
  ...ignored("file", "tool-output-delta", "tool-approval-response"),
  "start-step": (_item, answer) => answer.nextStep(),
  "text-delta": ({ text, delta }, answer) => answer.text(text ?? delta),
  "reasoning-delta": ({ text, delta }, answer) => answer.thinking(text ?? delta),
  ...alike(["source", "source-url", "source-document"], (item, answer) => answer.source(plainSource(item))),
  ...alike(["tool-call", "tool-input-available"], ({ toolCallId, toolName, input }, answer) => {
    answer.call(toolCallId, toolName, input);
  }),
  "tool-input-error"({ toolCallId, toolName, input, errorText }, answer) {
    answer.call(toolCallId, toolName, input);
    answer.thrown(toolCallId, errorText);
  },
  ...alike(["tool-result", "tool-output-available"], (item, answer) => readOutput(item, answer)),
  "tool-error": ({ toolCallId, error }, answer) => answer.thrown(toolCallId, error),
  "tool-output-error": ({ toolCallId, errorText }, answer) => answer.thrown(toolCallId, errorText),
  "tool-output-denied": ({ toolCallId }, answer) => answer.result(toolCallId, DECLINED, true),
  "tool-approval-request": ({ toolCall, toolCallId }, answer) => {
    const { toolCallId: id = toolCallId, toolName, input } = isRecord(toolCall) ? toolCall : {};
    const call = answer.openCallOf(id);
    answer.keepAll = keepMessages;
    answer.askApproval({ id, tool: toolName ?? call?.name, arguments: input ?? call?.arguments });
  },
  finish({ finishReason, totalUsage }, answer) {
    answer.finishedAs(finishReason);
    answer.addUsage(sdkUsage(totalUsage));
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
    return Object.hasOwn(HANDLERS, item.type) || isDataPart(item);
  },
  reader: () => ({
    read: (item, answer) => readByType(HANDLERS, item, answer) || readData(item as Part, answer),
  }),
};

/** Whether this is a part with data of the author's own. Mastra streams such parts, too. */
export function isDataPart(item: Part): boolean {
  return asString(item.type).startsWith("data-");
}

/** A data part with the id of a running call reports what that call is doing. */
function readData(item: Part, answer: Answer): boolean {
  if (answer.isOpen(asString(item.id))) answer.progress(item.id, statusOf(item.data));
  return isDataPart(item);
}

/** Reads a tool's result or, while it runs, a message of the agent within it, or what it says that it is doing. */
function readOutput({ toolCallId, output, preliminary }: Part, answer: AgentAnswer): void {
  const isMessage = isRecord(output) && output.role === "assistant" && Array.isArray(output.parts);
  const parts = isMessage ? records(output.parts) : [];
  if (isMessage) readMessage(parts, answer.within(toolCallId));
  else if (preliminary === true) answer.progress(toolCallId, statusOf(output));
  if (preliminary !== true) answer.result(toolCallId, isMessage ? lastTextOf(parts) : output);
}

/** Reads the message of an agent within a tool, which comes whole each time that it grows. */
function readMessage(parts: readonly Part[], answer: AgentAnswer): void {
  for (const part of parts) {
    const { state, input, errorText } = part;
    const id = asString(part.toolCallId);
    if (!isCall(part) || state === "input-streaming") continue;
    if (!answer.hasCalled(id)) answer.call(id, part.toolName ?? asString(part.type).slice("tool-".length), input);
    if (!answer.isOpen(id)) continue;
    if (state === "output-available") readOutput(part, answer);
    else if (state === "output-error") answer.thrown(id, errorText);
    else if (state === "output-denied") answer.result(id, DECLINED, true);
  }
}

function isCall({ type }: Part): boolean {
  return type === "dynamic-tool" || asString(type).startsWith("tool-");
}

/** The text of an agent after its last tool call: this is what the agent has returned. */
function lastTextOf(parts: readonly Part[]): string {
  const said = parts.slice(parts.findLastIndex(isCall) + 1).filter(({ type }) => type === "text");
  return textsOf(said, "text");
}

/** Calls an agent with the conversation. */
export function callAgent(agent: { stream(options: object): unknown }, input: RunInput): unknown {
  return agent.stream({ messages: toModelMessages(input), abortSignal: input.signal });
}

/** The messages that the SDK added to the conversation, including thinking, which only its result object has. */
async function keepMessages({ responseMessages, response }: Part, input: RunInput): Promise<object[] | undefined> {
  const { messages } = Object((await response) ?? {}) as { messages?: unknown };
  const said = (await responseMessages) ?? messages;
  if (!Array.isArray(said)) return undefined;
  const goesOn = input.ctx.approvals.length > 0 && !isInPlaceOfDecisions(input);
  return goesOn ? [...exchangeOf(input), ...said] : said;
}
