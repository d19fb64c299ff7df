/** Mastra: the chunks of `fullStream`, which have everything in a `payload`, and the data parts of tools. */

import { asString, isRecord } from "../protocol/json.ts";
import { sdkUsage } from "../providers/ai-sdk/usage.ts";
import { plainSource } from "../providers/citations.ts";
import { isDataPart } from "./ai-sdk.ts";
import { type Answer, failure } from "./answer.ts";
import { type AgentAnswer, statusOf } from "./inner-answer.ts";
import type { Shape } from "./shape.ts";

type Payload = Record<string, unknown>;

/** Handlers that are also used for agents within tools. */
const CALL_HANDLERS: Record<string, (payload: Payload, answer: AgentAnswer) => void> = {
  "tool-call": ({ toolCallId, toolName, args }, answer) =>
    void answer.call(toolCallId, toolName, withoutMetadata(args)),
  "tool-result": ({ toolCallId, result, isError }, answer) => {
    if (isError === true) answer.thrown(toolCallId, result);
    // What one of an agent's `agents` has done is shown in the steps of the call.
    else answer.result(toolCallId, isRecord(result) && "subAgentToolResults" in result ? result.text : result);
  },
  "tool-error": ({ toolCallId, error }, answer) => answer.thrown(toolCallId, error),
  /** What a tool writes: chunks of an agent within it, or of its own. */
  "tool-output"({ toolCallId, output }, answer) {
    if (!isRecord(output)) return;
    const { type, payload, data = output } = output;
    const inner = isRecord(payload) ? asString(type) : undefined;
    if (inner === undefined) answer.progress(toolCallId, statusOf(data));
    else if (Object.hasOwn(CALL_HANDLERS, inner)) CALL_HANDLERS[inner]?.(payload as Payload, answer.within(toolCallId));
  },
};

/** By type; each gets the payload. Other types mean nothing to clients. */
const HANDLERS: Record<string, (payload: Payload, answer: Answer, runId: unknown) => void> = {
  "step-start": (_payload, answer) => answer.nextStep(),
  "text-delta": ({ text }, answer) => answer.text(text),
  "reasoning-delta": ({ text }, answer) => answer.thinking(text),
  source: (payload, answer) => answer.source(plainSource(payload)),
  ...CALL_HANDLERS,
  "tool-call-approval": ask,
  "tool-call-suspended": ask,
  finish({ stepResult, output }, answer) {
    answer.finishedAs(isRecord(stepResult) ? stepResult.reason : undefined);
    answer.addUsage(sdkUsage(isRecord(output) ? output.usage : undefined));
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
  fits: (item) =>
    isRecord(item) && typeof item.type === "string" && (isRecord(item.payload) ? "from" in item : isDataPart(item)),
  reader: () => ({
    read(item, answer) {
      const { type, payload, runId } = item as { type: string; payload: Payload; runId: unknown };
      if (Object.hasOwn(HANDLERS, type)) HANDLERS[type]?.(payload, answer, runId);
      else if (payload === undefined) readData(item as Payload, answer);
      return true;
    },
  }),
};

/** Reads what a tool passes to `writer.custom`: about the call that it names, or else about the only running one. */
function readData({ id, data }: Payload, answer: Answer): void {
  const [only, ...others] = answer.openCalls();
  const call = answer.isOpen(asString(id)) ? id : others.length === 0 ? only?.id : undefined;
  if (call !== undefined) answer.progress(call, statusOf(data));
}

/** A tool needs approval, or has suspended itself. `kept` is what the agent's methods need to resume it. */
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
