/** How an agent's `reasoningEffort` is told to the models on Bedrock: each maker has a field of its own. */

import { SMALLEST_BUDGET, thinkingBudget } from "../anthropic/budget.ts";
import { SetupError } from "../failures/provider-error.ts";
import type { ModelSettings, ReasoningEffort } from "../provider.ts";
import { type BedrockFamily, familyOf } from "./family.ts";

/** What the effort adds to a request. */
export interface BedrockEffort {
  /** For `additionalModelRequestFields`. */
  fields: Record<string, unknown>;
  /** Where the model's default would leave no room for the reasoning. */
  maxTokens?: number;
}

/** Reasoning and answer together, where the agent sets no limit: what each of those models can write. */
const BUDGETED_MAX_TOKENS = 32_000;

/**
 * The request's part for the effort of these settings.
 * @throws SetupError when the model knows no such effort, or not together with another setting
 */
export function bedrockEffort(model: string, settings: ModelSettings): BedrockEffort {
  const { reasoningEffort: effort } = settings;
  const family = familyOf(model);
  if (family.maker === "claude") return claude(model, family, settings);
  if (effort === undefined) return { fields: {} };
  switch (family.maker) {
    case "nova":
      return nova(model, family.version, effort, settings);
    case "gpt-oss":
      if (effort === "none") throw alwaysThinks(model);
      return { fields: { reasoning_effort: threeLevels(effort) } };
    default:
      throw new SetupError(
        `reasoningEffort has no known form for the model "${model}" of AWS Bedrock. Remove it, and name the model's own field in extraBody.`,
      );
  }
}

type Claude = Extract<BedrockFamily, { maker: "claude" }>;

/** https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-adaptive-thinking.html */
function claude(model: string, family: Claude, settings: ModelSettings): BedrockEffort {
  const { reasoningEffort: effort, temperature, maxOutputTokens } = settings;
  const { version } = family;
  if (temperature !== undefined && version >= 4.7) {
    throw new SetupError(`temperature is not taken by the model "${model}": remove it.`);
  }
  if (effort === undefined) return { fields: version >= 5 ? { thinking: VISIBLE } : {} };
  if (effort === "none") return { fields: withoutThinking(model, family) };
  if (version < 3.7) throw neverThinks(model);
  if (temperature !== undefined && temperature !== 1) {
    throw new SetupError("temperature cannot be set together with reasoningEffort: Claude refuses both.");
  }
  if (version < 4.6) return budget(effort, maxOutputTokens);
  if (effort === "xhigh" && version < 4.7) {
    throw new SetupError(`reasoningEffort "xhigh" is not known to the model "${model}": use "high".`);
  }
  const thinking = version < 4.7 ? { type: "adaptive" } : VISIBLE;
  return {
    fields: { thinking, output_config: { effort: effort === "minimal" ? "low" : effort } },
  };
}

/** From 4.7 on the reasoning is left out of the answer unless it is asked for. */
const VISIBLE = { type: "adaptive", display: "summarized" };

function budget(effort: Exclude<ReasoningEffort, "none">, maxOutputTokens: number | undefined): BedrockEffort {
  if (maxOutputTokens === undefined) {
    const thinking = thinkingBudget(effort, BUDGETED_MAX_TOKENS);
    return { fields: { thinking }, maxTokens: BUDGETED_MAX_TOKENS };
  }
  if (maxOutputTokens <= SMALLEST_BUDGET) {
    throw new SetupError(
      `maxOutputTokens must be above ${SMALLEST_BUDGET} together with reasoningEffort: this model counts its reasoning too.`,
    );
  }
  return { fields: { thinking: thinkingBudget(effort, maxOutputTokens) } };
}

function withoutThinking(model: string, { tier, version }: Claude): Record<string, unknown> {
  // Up to there thinking is off unless it is asked for.
  if (version < 5) return {};
  const isSmall = tier === "sonnet" || tier === "haiku";
  if (!isSmall && !(tier === "opus" && version < 5.5)) throw alwaysThinks(model);
  return { thinking: { type: tier === "sonnet" && version >= 5.5 ? "between_tools" : "disabled" } };
}

/** https://docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html */
function nova(
  model: string,
  version: number,
  effort: ReasoningEffort,
  { temperature, maxOutputTokens }: ModelSettings,
): BedrockEffort {
  if (version < 2) throw neverThinks(model);
  if (effort === "none") return { fields: { reasoningConfig: { type: "disabled" } } };
  const level = threeLevels(effort);
  if (level === "high" && (temperature !== undefined || maxOutputTokens !== undefined)) {
    const field = temperature === undefined ? "maxOutputTokens" : "temperature";
    throw new SetupError(
      `${field} cannot be set together with reasoningEffort "${effort}": Nova refuses both. Use "medium" or less.`,
    );
  }
  return { fields: { reasoningConfig: { type: "enabled", maxReasoningEffort: level } } };
}

function threeLevels(effort: Exclude<ReasoningEffort, "none">): "low" | "medium" | "high" {
  if (effort === "minimal") return "low";
  return effort === "xhigh" ? "high" : effort;
}

function neverThinks(model: string): SetupError {
  return new SetupError(`reasoningEffort does not suit the model "${model}", which has no reasoning: remove it.`);
}

function alwaysThinks(model: string): SetupError {
  return new SetupError(
    `reasoningEffort must be "low" or more for the model "${model}": its reasoning cannot be switched off.`,
  );
}
