/** Mastra: the chunks of `fullStream`, which have everything in a `payload`. */

import { asString, isRecord } from "../protocol/json.ts";
import { failure } from "./answer.ts";
import type { Handlers, Shape } from "./shape.ts";

/** By type; each gets the payload. Whatever else a stream has says nothing to clients, agents within tools included. */
const HANDLERS: Handlers = {
  "step-start": (_payload, answer) => answer.beginAnew(),
  "text-delta": ({ text }, answer) => answer.text(text),
  "reasoning-delta": ({ text }, answer) => answer.thinking(text),
  "tool-call": ({ toolCallId, toolName, args }, answer) =>
    void answer.call(toolCallId, toolName, withoutMetadata(args)),
  "tool-result": ({ toolCallId, result, isError }, answer) => {
    if (isError === true) answer.thrown(toolCallId, result);
    else answer.result(toolCallId, result);
  },
  "tool-error": ({ toolCallId, error }, answer) => answer.thrown(toolCallId, error),
  "tool-call-approval": ({ toolName }, answer) => answer.askApproval(asString(toolName)),
  "tool-call-suspended": ({ toolName }, answer) => answer.askApproval(asString(toolName)),
  finish({ stepResult, output }, answer) {
    answer.finishedAs(isRecord(stepResult) ? stepResult.reason : undefined);
    const usage = isRecord(output) && isRecord(output.usage) ? output.usage : {};
    answer.addUsage(usage.inputTokens, usage.outputTokens);
  },
  error: ({ error }) => {
    throw error ?? failure("The agent's stream has an error.");
  },
  abort: () => {
    throw failure("The agent has ended its own answer.");
  },
  tripwire: ({ reason, tripwireReason }) => {
    throw failure("A processor of the agent has stopped the answer.", new Error(String(reason ?? tripwireReason)));
  },
};

export const MASTRA: Shape = {
  name: "Mastra",
  fits: (item) => isRecord(item) && typeof item.type === "string" && isRecord(item.payload) && "from" in item,
  reader: () => ({
    read(item, answer) {
      const { type, payload } = item as { type: string; payload: Record<string, unknown> };
      if (Object.hasOwn(HANDLERS, type)) HANDLERS[type]?.(payload, answer);
      return true;
    },
  }),
};

function withoutMetadata(args: unknown): unknown {
  if (!isRecord(args)) return args;
  const { __mastraMetadata, ...own } = args;
  return own;
}
