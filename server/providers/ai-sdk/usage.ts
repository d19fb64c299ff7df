/** Reads the usage of all versions of the AI SDK and its models, and of Mastra and AG-UI, which use the same names. */

import type { Usage } from "../../protocol/chat.ts";
import { isRecord } from "../../protocol/json.ts";
import { fieldsIn, usageOf } from "../usage.ts";

/**
 * Models report usage as objects from their third version on; the SDK itself has details beside its numbers from its sixth on.
 * `notes` are those at the end of a model's answer: before v3, Claude's packages left cached tokens out of the input.
 */
export function sdkUsage(usage: unknown, notes?: unknown): Usage | undefined {
  const {
    inputTokens: input,
    outputTokens: output,
    inputTokenDetails,
    outputTokenDetails,
    ...counts
  } = fieldsIn(usage);
  if (isRecord(input) && isRecord(output)) {
    const { cacheRead: cached, cacheWrite: written } = input;
    return usageOf({ input: input.total, output: output.total, cached, written, reasoning: output.reasoning });
  }
  const { anthropic, bedrock } = fieldsIn(notes);
  const ofBedrock = fieldsIn(bedrock).usage;
  const { cacheReadTokens, cacheWriteTokens } = fieldsIn(inputTokenDetails);
  return usageOf({
    input,
    output,
    cached: cacheReadTokens ?? counts.cachedInputTokens,
    written:
      cacheWriteTokens ??
      counts.cacheCreationInputTokens ??
      counts.cacheWriteInputTokens ??
      fieldsIn(anthropic).cacheCreationInputTokens ??
      fieldsIn(ofBedrock).cacheWriteInputTokens,
    reasoning: fieldsIn(outputTokenDetails).reasoningTokens ?? counts.reasoningTokens,
    total: counts.totalTokens,
    isApart: isRecord(anthropic) || isRecord(ofBedrock),
  });
}
