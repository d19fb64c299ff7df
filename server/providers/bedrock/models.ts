/** The differences between models on Bedrock, read from their identifiers and ARNs. */

import { ConfigError } from "../../errors.ts";
import {
  type ClaudeModel,
  checkClaudeTemperature,
  claudeThinking,
  isAtLeast,
  parseClaudeModel,
} from "../claude/models.ts";
import type { ModelSettings, ReasoningEffort } from "../provider.ts";

/** An ARN that names no model, such as that of an application inference profile, is of an "other" maker. */
export type Maker = "claude" | "nova" | "gpt-oss" | "kimi" | "mistral" | "other";

/** Reads identifiers such as "us.anthropic.claude-sonnet-4-5-20250929-v1:0" and ARNs that contain one. */
export function makerOf(model: string): Maker {
  if (/\bclaude-/.test(model)) return "claude";
  if (/\bamazon\.nova-/.test(model)) return "nova";
  if (/\bopenai\.gpt-oss/.test(model)) return "gpt-oss";
  if (/\bmoonshot(?:ai)?\.|\bkimi/.test(model)) return "kimi";
  return /\bmistral\./.test(model) ? "mistral" : "other";
}

/** What an agent's `reasoningEffort` adds to a request. */
export interface BedrockEffort {
  /** For `additionalModelRequestFields`: each maker has a field of its own. */
  fields: Record<string, unknown>;
  /** Set if the model's default would leave no room for the reasoning. */
  maxTokens?: number;
}

/** @throws ConfigError when the model does not support the effort or temperature, or not with another setting */
export function bedrockEffort(model: string, settings: ModelSettings): BedrockEffort {
  const name = `bedrock/${model}`;
  const { reasoningEffort: effort, temperature = 0 } = settings;
  if (temperature > 1) throw new ConfigError("temperature must be a number from 0 to 1 for AWS Bedrock.");
  const maker = makerOf(model);
  if (maker === "claude") return claudeEffort(name, parseClaudeModel(model), settings);
  if (effort === undefined) return { fields: {} };
  switch (maker) {
    case "nova":
      return novaEffort(name, effort, settings);
    case "gpt-oss":
      if (effort === "none") {
        throw new ConfigError(`model "${name}" always thinks: reasoningEffort "none" is not for it, use "low".`);
      }
      return { fields: { reasoning_effort: threeLevels(effort) } };
    default:
      throw new ConfigError(
        `reasoningEffort has no known form for model "${name}": remove it, and name the model's own field in extraBody.`,
      );
  }
}

/** The limit of reasoning and answer together if the agent sets none: every model that needs one can write as much. */
const BUDGETED_MAX_TOKENS = 32_000;

/** https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-adaptive-thinking.html */
function claudeEffort(name: string, model: ClaudeModel | undefined, settings: ModelSettings): BedrockEffort {
  const { reasoningEffort, maxOutputTokens } = settings;
  checkClaudeTemperature(name, model, settings);
  const fields = claudeThinking(name, model, reasoningEffort, maxOutputTokens ?? BUDGETED_MAX_TOKENS);
  if (fields.thinking?.type === "enabled" && maxOutputTokens === undefined) {
    return { fields: { ...fields }, maxTokens: BUDGETED_MAX_TOKENS };
  }
  // Claude 4.6 on Bedrock shows its reasoning unasked, and is not known to take `display`.
  const isPlain = fields.thinking?.type === "adaptive" && model !== undefined && !isAtLeast(model, 4, 7);
  return { fields: isPlain ? { ...fields, thinking: { type: "adaptive" } } : { ...fields } };
}

/** https://docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html */
function novaEffort(
  name: string,
  effort: ReasoningEffort,
  { temperature, maxOutputTokens }: ModelSettings,
): BedrockEffort {
  if (!/\bamazon\.nova-2/.test(name)) throw new ConfigError(`model "${name}" cannot think: remove reasoningEffort.`);
  if (effort === "none") return { fields: { reasoningConfig: { type: "disabled" } } };
  const level = threeLevels(effort);
  if (level === "high" && (temperature !== undefined || maxOutputTokens !== undefined)) {
    const field = temperature === undefined ? "maxOutputTokens" : "temperature";
    throw new ConfigError(
      `model "${name}" takes no ${field} together with reasoningEffort "${effort}": remove it, or use "medium" or less.`,
    );
  }
  return { fields: { reasoningConfig: { type: "enabled", maxReasoningEffort: level } } };
}

function threeLevels(effort: Exclude<ReasoningEffort, "none">): "low" | "medium" | "high" {
  if (effort === "minimal") return "low";
  return effort === "xhigh" ? "high" : effort;
}
