/** The AI SDK, 5 to 7: the parts of `stream` and `fullStream`, the chunks of a UI message stream, and its agents. */

import { isInPlaceOfDecisions, messagesUntilAsked, type RunInput, textParts } from "../agent/run-function.ts";
import type { HistoryMessage } from "../protocol/chat.ts";
import { asString, isRecord, records, tryParse } from "../protocol/json.ts";
import { partsOf, textOf } from "../providers/history.ts";
import { failure } from "./answer.ts";
import { alike, type Handlers, ignored, readByType, type Shape } from "./shape.ts";

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

/**
 * The conversation as the AI SDK takes it: with the files of this message as parts of it and, where calls have waited for a
 * person, with the calls and what came of them.
 */
// biome-ignore lint/suspicious/noExplicitAny: each version of the AI SDK has types of its own.
export function toModelMessages(input: RunInput): any[] {
  const { message, messages, attachments, ctx } = input;
  const files = attachments.map(({ name, mimeType, data }) => {
    return { type: "file", data, mediaType: mimeType, filename: name };
  });
  const said = (text: string) => ({ role: "user", content: [...textParts(text), ...files] });
  if (ctx.approvals.length > 0) {
    const now = isInPlaceOfDecisions(input) ? [said(message)] : [];
    return [...messagesUntilAsked(input), ...exchangeOf(input), ...now];
  }
  const last = messages.at(-1);
  return files.length === 0 || last === undefined ? messages : [...messages.slice(0, -1), said(last.content)];
}

type Part = Record<string, unknown>;

/** What followed the message that is still being answered, up to what the person has decided. */
function exchangeOf(input: RunInput): object[] {
  const { approvals } = input.ctx;
  const { kept: first } = approvals[0] ?? {};
  const kept: Part[] = Array.isArray(first) ? first : input.exchange.slice(1).map((one) => toModelMessage(one, input));
  const parts = kept.flatMap(({ content }) => records(content));
  const responses = approvals.map(({ id, tool, approved, reason }) => {
    // The SDK reads responses at the end of the conversation alone.
    const denied = { type: "execution-denied", reason: "The user did not decide on this, and wrote something else." };
    if (isInPlaceOfDecisions(input)) return { type: "tool-result", toolCallId: id, toolName: tool, output: denied };
    const request = parts.findLast(({ type, toolCallId }) => type === REQUEST && toolCallId === id);
    return { type: "tool-approval-response", approvalId: request?.approvalId, approved, reason };
  });
  return [...kept, { role: "tool", content: responses }];
}

const REQUEST = "tool-approval-request";

/** What the SDK itself has added to the conversation, thoughts included: only its result has it. */
async function keepMessages({ responseMessages, response }: Part, input: RunInput): Promise<object[] | undefined> {
  const { messages } = Object((await response) ?? {}) as { messages?: unknown };
  const said = (await responseMessages) ?? messages;
  if (!Array.isArray(said)) return undefined;
  const goesOn = input.ctx.approvals.length > 0 && !isInPlaceOfDecisions(input);
  return goesOn ? [...exchangeOf(input), ...said] : said;
}

/** A message of the exchange, for a stream whose result is not known. */
function toModelMessage(message: HistoryMessage, { exchange, ctx }: RunInput): Part {
  if (message.role === "user") return { role: "user", content: textOf(partsOf(message)) };
  if (message.role === "tool") {
    const calls = exchange.flatMap((one) => (one.role === "assistant" ? (one.tool_calls ?? []) : []));
    const { tool_call_id: id, content } = message;
    const name = calls.find((call) => call.id === id)?.function.name;
    const output = { type: "text", value: typeof content === "string" ? content : textOf(content) };
    return { role: "tool", content: [{ type: "tool-result", toolCallId: id, toolName: name, output }] };
  }
  const text = textParts(message.content ?? "");
  const calls = (message.tool_calls ?? []).flatMap(({ id, function: { name, arguments: args } }): Part[] => {
    const call = { type: "tool-call", toolCallId: id, toolName: name, input: tryParse(args) ?? {} };
    const hasWaited = ctx.approvals.some((decision) => decision.id === id);
    return hasWaited ? [call, { type: REQUEST, approvalId: id, toolCallId: id }] : [call];
  });
  return { role: "assistant", content: [...text, ...calls] };
}
