/** The AI SDK, 5 to 7: the parts of `stream` and `fullStream`, the chunks of a UI message stream, and its agents. */

import type { RunInput } from "../agent/run-function.ts";
import { isRecord } from "../protocol/json.ts";
import { failure } from "./answer.ts";
import { type Handlers, ignored, readByType, type Shape } from "./shape.ts";

/** Parts have what was said as `text`, chunks as `delta`; most types belong to one of the two. */
const HANDLERS: Handlers = {
  ...ignored("start", "finish-step", "text-start", "text-end", "reasoning-start", "reasoning-end", "raw"),
  ...ignored("tool-input-start", "tool-input-delta", "tool-input-end", "message-metadata", "reasoning-file", "custom"),
  ...ignored("source", "source-url", "source-document", "file", "tool-output-delta", "tool-approval-response"),
  "start-step": (_item, answer) => answer.beginAnew(),
  "text-delta": ({ text, delta }, answer) => answer.text(text ?? delta),
  "reasoning-delta": ({ text, delta }, answer) => answer.thinking(text ?? delta),
  "tool-call": ({ toolCallId, toolName, input }, answer) => void answer.call(toolCallId, toolName, input),
  "tool-input-available": ({ toolCallId, toolName, input }, answer) => void answer.call(toolCallId, toolName, input),
  "tool-input-error"({ toolCallId, toolName, input, errorText }, answer) {
    answer.call(toolCallId, toolName, input);
    answer.thrown(toolCallId, errorText);
  },
  "tool-result": ({ toolCallId, output, preliminary }, answer) => {
    if (preliminary !== true) answer.result(toolCallId, output);
  },
  "tool-output-available": ({ toolCallId, output, preliminary }, answer) => {
    if (preliminary !== true) answer.result(toolCallId, output);
  },
  "tool-error": ({ toolCallId, error }, answer) => answer.thrown(toolCallId, error),
  "tool-output-error": ({ toolCallId, errorText }, answer) => answer.thrown(toolCallId, errorText),
  "tool-output-denied": ({ toolCallId }, answer) => answer.failedResult(toolCallId, "It was declined."),
  "tool-approval-request": ({ toolCall, toolCallId }, answer) => {
    answer.askApproval(String(isRecord(toolCall) ? toolCall.toolName : toolCallId));
  },
  finish({ finishReason, totalUsage }, answer) {
    answer.finishedAs(finishReason);
    if (isRecord(totalUsage)) answer.addUsage(totalUsage.inputTokens, totalUsage.outputTokens);
  },
  error: ({ error, errorText }) => {
    throw error ?? failure("The agent's stream has an error.", new Error(String(errorText)));
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

/** Calls an agent with the conversation. The files of this message are parts of its last message. */
export function callAgent(
  agent: { stream(options: object): unknown },
  { messages, attachments, signal }: Pick<RunInput, "messages" | "attachments" | "signal">,
): unknown {
  const files = attachments.map(({ name, mimeType, data }) => ({
    type: "file",
    data,
    mediaType: mimeType,
    filename: name,
  }));
  const last = messages.at(-1);
  const withFiles =
    files.length === 0 || last === undefined
      ? messages
      : [...messages.slice(0, -1), { role: "user", content: [{ type: "text", text: last.content }, ...files] }];
  return agent.stream({ messages: withFiles, abortSignal: signal });
}
