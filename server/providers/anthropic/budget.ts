/** How many tokens Claude before 4.6 may think with, at Anthropic and on Bedrock. */

import type { ReasoningEffort } from "../provider.ts";

const BUDGETS: Record<Exclude<ReasoningEffort, "none">, number> = {
  minimal: 1024,
  low: 2048,
  medium: 4096,
  high: 8192,
  xhigh: 16_384,
};

/** The API takes no smaller budget, and only one below the limit of the answer. */
export const SMALLEST_BUDGET = 1024;

/** The budget for an effort within `maxTokens`, which must be above the smallest budget. */
export function thinkingBudget(effort: Exclude<ReasoningEffort, "none">, maxTokens: number) {
  // A quarter is left for the answer, or what a small limit has beyond the smallest budget.
  const most = Math.max(SMALLEST_BUDGET, Math.floor(maxTokens * 0.75));
  return { type: "enabled" as const, budget_tokens: Math.min(BUDGETS[effort], most) };
}
