/** What the AI SDK counts, in each version of its models and of its own, and what counts in its words: Mastra and AG-UI. */

import type { Usage } from "../../protocol/chat.ts";
import { isRecord } from "../../protocol/json.ts";
import { fieldsIn, usageOf } from "../usage.ts";

/**
 * Models count in objects from the third version on, the SDK itself has details beside its numbers from its sixth on. `notes` are
 * those of the end of a model's answer: before that, packages of Claude left out of the input what a cache gave and took.
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
