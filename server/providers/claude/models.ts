/** The differences between Claude's generations, read from a model's name, for Anthropic's API and Bedrock. */

import { ConfigError } from "../../errors.ts";
import type { ModelSettings, ReasoningEffort } from "../provider.ts";

/** Numbers and not a decimal fraction: 4.10 is newer than 4.9. */
export interface ClaudeModel {
  family: "opus" | "sonnet" | "haiku" | "other";
  major: number;
  minor: number;
}

/**
 * Reads "claude-opus-4-6", "claude-3-7-sonnet-20250219", "claude-sonnet-4@20250514" and identifiers of Bedrock that
 * contain one. `undefined`: the name tells no generation, such as a gateway's.
 */
export function parseClaudeModel(name: string): ClaudeModel | undefined {
  // This model's name has no version number.
  if (/mythos-preview/.test(name)) return { family: "other", major: 5, minor: 0 };
  const old = /claude-(\d{1,2})(?:[-.](\d{1,2}))?-(opus|sonnet|haiku)/.exec(name);
  if (old !== null) return claudeModel(old[3], old[1], old[2]);
  const now = /(opus|sonnet|haiku|fable|mythos)-(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?/.exec(name);
  return now === null ? undefined : claudeModel(now[1], now[2], now[3]);
}

function claudeModel(name: string | undefined, major: string | undefined, minor: string | undefined): ClaudeModel {
  const family = name === "opus" || name === "sonnet" || name === "haiku" ? name : "other";
  return { family, major: Number(major), minor: Number(minor ?? 0) };
}

export function isAtLeast(model: ClaudeModel, major: number, minor: number): boolean {
  return model.major > major || (model.major === major && model.minor >= minor);
}

/** The smallest budget that the API takes; it must be below the limit of the answer. */
const SMALLEST_BUDGET = 1024;

const BUDGETS: Record<Exclude<ReasoningEffort, "none">, number> = {
  minimal: 1024,
  low: 2048,
  medium: 4096,
  high: 8192,
  xhigh: 16_384,
};

/** The fields for thinking, which are the same in both APIs. */
export interface ClaudeThinking {
  thinking?:
    | { type: "adaptive"; display?: "summarized" }
    | { type: "enabled"; budget_tokens: number }
    | { type: "disabled" }
    | { type: "between_tools" }
    | undefined;
  output_config?: { effort: Exclude<ReasoningEffort, "none" | "minimal"> };
}

/** From 4.7 on, the API leaves the thinking out of the answer unless the request asks for it. */
const VISIBLE = { type: "adaptive", display: "summarized" } as const;

/**
 * The request's fields for the agent's effort; `name` is the whole model string, for error messages, and `maxTokens`
 * the limit of the answer. @throws ConfigError for an effort that the model does not take
 */
export function claudeThinking(
  name: string,
  model: ClaudeModel | undefined,
  effort: ReasoningEffort | undefined,
  maxTokens: number,
): ClaudeThinking {
  if (effort === undefined) return model !== undefined && isAtLeast(model, 5, 0) ? { thinking: VISIBLE } : {};
  if (effort === "none") return model === undefined ? {} : withoutThinking(name, model);
  if (model === undefined) return adaptive(effort);
  if (!isAtLeast(model, 3, 7)) throw new ConfigError(`model "${name}" cannot think: remove reasoningEffort.`);
  if (!isAtLeast(model, 4, 6)) return withBudget(name, effort, maxTokens);
  if (effort === "xhigh" && !isAtLeast(model, 4, 7)) {
    throw new ConfigError(`model "${name}" takes no reasoningEffort "xhigh": use low, medium or high.`);
  }
  return adaptive(effort);
}

function adaptive(effort: Exclude<ReasoningEffort, "none">): ClaudeThinking {
  // The API has no "minimal": its lowest level skips thinking that a message does not need.
  return { thinking: VISIBLE, output_config: { effort: effort === "minimal" ? "low" : effort } };
}

/** Before version 5 the model thinks only on request. */
function withoutThinking(name: string, model: ClaudeModel): ClaudeThinking {
  if (!isAtLeast(model, 5, 0)) return {};
  if (model.family === "other" || (model.family === "opus" && isAtLeast(model, 5, 5))) {
    throw new ConfigError(`model "${name}" always thinks: reasoningEffort "none" is not for it, use "low".`);
  }
  const off = model.family === "sonnet" && isAtLeast(model, 5, 5) ? "between_tools" : "disabled";
  return { thinking: { type: off } };
}

/** Up to version 4.5, thinking has a budget of tokens. */
function withBudget(name: string, effort: Exclude<ReasoningEffort, "none">, maxTokens: number): ClaudeThinking {
  if (maxTokens <= SMALLEST_BUDGET) {
    throw new ConfigError(
      `maxOutputTokens must be above ${SMALLEST_BUDGET} for reasoningEffort "${effort}" with model "${name}": thinking counts towards it.`,
    );
  }
  // Leaves a quarter for the answer or, if the limit is small, what exceeds the smallest budget.
  const most = Math.max(SMALLEST_BUDGET, Math.floor(maxTokens * 0.75));
  return { thinking: { type: "enabled", budget_tokens: Math.min(BUDGETS[effort], most) } };
}

/** @throws ConfigError for a temperature that the model does not take */
export function checkClaudeTemperature(
  name: string,
  model: ClaudeModel | undefined,
  { temperature, reasoningEffort }: ModelSettings,
): void {
  if (temperature === undefined) return;
  if (model !== undefined && isAtLeast(model, 4, 7)) {
    throw new ConfigError(`model "${name}" takes no temperature: remove it.`);
  }
  if (temperature > 1) throw new ConfigError(`temperature must be a number from 0 to 1 for model "${name}".`);
  if (reasoningEffort !== undefined && reasoningEffort !== "none") {
    throw new ConfigError(
      `model "${name}" takes no temperature while it thinks: remove temperature or reasoningEffort.`,
    );
  }
}
