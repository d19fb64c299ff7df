/** Mastra: the chunks of `fullStream`, which have everything in a `payload`. */

import { asString, isRecord } from "../protocol/json.ts";
import { type Answer, failure } from "./answer.ts";
import type { Shape } from "./shape.ts";

type Payload = Record<string, unknown>;

/** By type; each gets the payload. Whatever else a stream has says nothing to clients, agents within tools included. */
const HANDLERS: Record<string, (payload: Payload, answer: Answer, runId: unknown) => void> = {
  "step-start": (_payload, answer) => answer.nextStep(),
  "text-delta": ({ text }, answer) => answer.text(text),
  "reasoning-delta": ({ text }, answer) => answer.thinking(text),
  "tool-call": ({ toolCallId, toolName, args }, answer) =>
    void answer.call(toolCallId, toolName, withoutMetadata(args)),
  "tool-result": ({ toolCallId, result, isError }, answer) => {
    if (isError === true) answer.thrown(toolCallId, result);
    else answer.result(toolCallId, result);
  },
  "tool-error": ({ toolCallId, error }, answer) => answer.thrown(toolCallId, error),
  "tool-call-approval": ask,
  "tool-call-suspended": ask,
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
    throw failure("A processor of the agent has stopped the answer.", new Error(asString(reason ?? tripwireReason)));
  },
};

export const MASTRA: Shape = {
  name: "Mastra",
  fits: (item) => isRecord(item) && typeof item.type === "string" && isRecord(item.payload) && "from" in item,
  reader: () => ({
    read(item, answer) {
      const { type, payload, runId } = item as { type: string; payload: Payload; runId: unknown };
      if (Object.hasOwn(HANDLERS, type)) HANDLERS[type]?.(payload, answer, runId);
      return true;
    },
  }),
};

/** A tool that needs approval, or has suspended itself. `kept` is what the agent's methods take that go on. */
function ask({ toolCallId, toolName, args, suspendPayload }: Payload, answer: Answer, runId: unknown): void {
  answer.askApproval({
    ...{ id: toolCallId, tool: toolName, arguments: withoutMetadata(args ?? suspendPayload) },
    kept: { runId, toolCallId },
  });
}

function withoutMetadata(args: unknown): unknown {
  if (!isRecord(args)) return args;
  const { __mastraMetadata, ...own } = args;
  return own;
}
