/**
 * What the generations of Claude differ in, after Anthropic's pages on thinking, effort and models, and the
 * migration guide to API version 2026-10-21. A name that tells no generation (a gateway's own) gets no
 * settings that only some of them take.
 */

import type { Anthropic } from "@anthropic-ai/sdk";
import { isRecord } from "../../protocol/is-record.ts";
import { SetupError } from "../failures/provider-error.ts";
import type { ModelSettings, ReasoningEffort } from "../provider.ts";
import { SMALLEST_BUDGET, thinkingBudget } from "./budget.ts";

/** What the model's generation makes of an agent's settings. */
export interface ModelParams {
  max_tokens: number;
  thinking?: Anthropic.ThinkingConfigParam;
  output_config?: Anthropic.OutputConfig;
  temperature?: number;
}

interface Generation {
  family: "opus" | "sonnet" | "haiku" | "other";
  /** 3.7 for "claude-3-7-sonnet-20250219". */
  version: number;
}

/** Reads "claude-opus-4-6", "claude-3-7-sonnet-20250219", "claude-sonnet-4@20250514" and the like. */
function generationOf(model: string): Generation | undefined {
  // The first version with a display that can be asked for; it has no number of its own.
  if (/mythos-preview/.test(model)) return { family: "other", version: 5 };
  const name = /(opus|sonnet|haiku|fable|mythos)/.exec(model)?.[1];
  const numbers =
    /claude-(\d)(?:[-.](\d))?-(?:opus|sonnet|haiku)/.exec(model) ??
    /(?:opus|sonnet|haiku|fable|mythos)-(\d{1,2})(?!\d)(?:[-.](\d)(?!\d))?/.exec(model);
  if (name === undefined || numbers === null) return undefined;
  const family = name === "opus" || name === "sonnet" || name === "haiku" ? name : "other";
  return { family, version: Number(`${numbers[1]}.${numbers[2] ?? 0}`) };
}

/** @throws SetupError for a setting that the model is known not to take */
export function modelParams(model: string, settings: ModelSettings): ModelParams {
  const generation = generationOf(model);
  const max_tokens = settings.maxOutputTokens ?? defaultMaxTokens(generation);
  return {
    max_tokens,
    ...thinkingParams(model, generation, settings.reasoningEffort, max_tokens),
    ...temperatureParams(model, generation, settings),
  };
}

/**
 * The API demands a limit. Half of what the model can write, or all of it where that is little: thinking
 * counts towards it, and up to version 4.1 what is reserved here is missing from the context window.
 */
function defaultMaxTokens(generation: Generation | undefined): number {
  if (generation === undefined) return 16_384;
  const { version } = generation;
  if (version >= 4.6) return 64_000;
  if (version >= 4.5) return 32_000;
  if (version >= 3.7) return 16_384;
  return version >= 3.5 ? 8192 : 4096;
}

/** Whether a request with this configuration of thinking can make use of earlier thoughts. */
export function mayThink(model: string, thinking: unknown): boolean {
  // Without a configuration none of the known ones thinks: those that would are given one.
  if (thinking === undefined) return generationOf(model) === undefined;
  return !isRecord(thinking) || thinking.type !== "disabled";
}

type ThinkingParams = Pick<ModelParams, "thinking" | "output_config">;

function thinkingParams(
  model: string,
  generation: Generation | undefined,
  effort: ReasoningEffort | undefined,
  maxTokens: number,
): ThinkingParams {
  if (generation === undefined) {
    return effort === undefined || effort === "none" ? {} : adaptive(effort);
  }
  if (generation.version < 3.7) {
    if (effort === undefined || effort === "none") return {};
    throw new SetupError(`model "anthropic/${model}" cannot think: remove reasoningEffort.`);
  }
  if (generation.version < 4.6) return budgeted(effort, maxTokens);
  if (effort === "none") return withoutThinking(model, generation);
  if (effort === "xhigh" && generation.version < 4.7) {
    throw new SetupError(`model "anthropic/${model}" takes no reasoningEffort "xhigh": use low, medium or high.`);
  }
  if (effort !== undefined) return adaptive(effort);
  // From version 5 on thinking is the default, but nothing of it is shown unless that is asked for.
  return generation.version >= 5 ? { thinking: VISIBLE } : {};
}

const VISIBLE: Anthropic.ThinkingConfigParam = { type: "adaptive", display: "summarized" };

function adaptive(effort: Exclude<ReasoningEffort, "none">): ThinkingParams {
  // The API has no "minimal": its lowest level skips thinking where it is not needed.
  return { thinking: VISIBLE, output_config: { effort: effort === "minimal" ? "low" : effort } };
}

function withoutThinking(model: string, { family, version }: Generation): ThinkingParams {
  if (version < 4.7) return {};
  if (family === "other" || (family === "opus" && version >= 5.5)) {
    throw new SetupError(`model "anthropic/${model}" always thinks: reasoningEffort "none" is not for it, use "low".`);
  }
  const off = family === "sonnet" && version >= 5.5 ? "between_tools" : "disabled";
  return { thinking: { type: off } };
}

/** Up to version 4.5 thinking has a number of tokens. */
function budgeted(effort: ReasoningEffort | undefined, maxTokens: number): ThinkingParams {
  if (effort === undefined || effort === "none") return {};
  if (maxTokens <= SMALLEST_BUDGET) {
    throw new SetupError(
      `maxOutputTokens must be above ${SMALLEST_BUDGET} for reasoningEffort "${effort}" with this model: thinking counts towards it.`,
    );
  }
  return { thinking: thinkingBudget(effort, maxTokens) };
}

function temperatureParams(
  model: string,
  generation: Generation | undefined,
  { temperature, reasoningEffort }: ModelSettings,
): Pick<ModelParams, "temperature"> {
  if (temperature === undefined) return {};
  if (generation !== undefined && generation.version >= 4.7) {
    throw new SetupError(`model "anthropic/${model}" takes no temperature: remove it.`);
  }
  if (temperature > 1) {
    throw new SetupError("temperature must be a number from 0 to 1 for Anthropic's models.");
  }
  if (reasoningEffort !== undefined && reasoningEffort !== "none") {
    throw new SetupError(
      `model "anthropic/${model}" takes no temperature while it thinks: remove temperature or reasoningEffort.`,
    );
  }
  return { temperature };
}
