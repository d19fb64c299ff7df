/** Computes what answers cost by the agent's own prices. Loaded only if an agent has prices. */

import { ConfigError } from "../errors.ts";
import type { CostOf } from "../observe/run-observer.ts";
import type { Usage } from "../protocol/chat.ts";
import { isRecord } from "../protocol/json.ts";
import { type AiSdkLanguageModel, modelName } from "../providers/ai-sdk/language-model.ts";
import { fieldNames, unknownField } from "./fields.ts";

/** Prices of a model, in USD per million tokens. */
export interface Price {
  input: number;
  /** For output tokens, thinking included. */
  output: number;
  /** For input tokens that were read from a cache. Default: as `input`. */
  cachedInput?: number;
  /** For input tokens that were written to a cache. Default: as `input`. */
  cacheWrite?: number;
}

const FIELDS = fieldNames<Price>({ input: true, output: true, cachedInput: true, cacheWrite: true });

const EXAMPLE = '{ "openai/gpt-5.2": { input: 1.75, output: 14, cachedInput: 0.175 } }';

/** The fields of an agent that are needed here. */
interface PricedAgent {
  readonly prices: unknown;
  readonly model: string;
  readonly models: readonly (string | AiSdkLanguageModel)[];
}

/**
 * Returns a function that computes what requests cost together. `warn` gets a sentence if models have no price.
 * @throws ConfigError that names the field
 */
export function checkPrices({ prices, model, models }: PricedAgent, warn: (sentence: string) => void): CostOf {
  if (!isRecord(prices) || Object.keys(prices).length === 0) {
    throw new ConfigError(`prices must be an object with the price of each model, such as ${EXAMPLE}.`);
  }
  const checked = new Map(Object.entries(prices).map(([name, price]) => [name, checkPrice(name, price)]));
  checkNames([...checked.keys()], models.length === 0 ? [model] : models.map(modelName), warn);
  return (requests) => {
    let sum = 0;
    for (const { model: name, usage } of requests) {
      const price = checked.get(name);
      if (price === undefined || usage === undefined) return undefined;
      sum += costOf(usage, price);
    }
    // Rounded to a billionth of a dollar: further digits are rounding errors of the sum.
    return Math.round(sum * 1e3) / 1e9;
  };
}

/** In millionths of a dollar. */
function costOf(usage: Usage, { input, output, cachedInput = input, cacheWrite = input }: Price): number {
  const {
    input_tokens: all,
    output_tokens: said,
    cached_input_tokens: cached = 0,
    cache_write_tokens: written = 0,
  } = usage;
  return (all - cached - written) * input + cached * cachedInput + written * cacheWrite + said * output;
}

/** @throws ConfigError */
function checkPrice(name: string, price: unknown): Price {
  const at = `prices[${JSON.stringify(name)}]`;
  if (!isRecord(price)) {
    throw new ConfigError(
      `${at} must be an object with USD for a million tokens, such as { input: 1.75, output: 14 }.`,
    );
  }
  const unknown = unknownField(price, FIELDS, "a price");
  if (unknown !== undefined) throw new ConfigError(`${at}.${unknown}`);
  for (const field of FIELDS) {
    const usd = price[field];
    if (usd === undefined && field.startsWith("cache")) continue;
    if (typeof usd === "number" && Number.isFinite(usd) && usd >= 0) continue;
    throw new ConfigError(`${at}.${field} must be a number from 0: USD for a million tokens.`);
  }
  return price as unknown as Price;
}

/** Refuses a misspelt name, which would leave its model without a price. Others may be listed. @throws ConfigError */
function checkNames(names: readonly string[], models: readonly string[], warn: (sentence: string) => void): void {
  const lacking = models.filter((model) => !names.includes(model)).map((model) => `"${model}"`);
  const unknown = names.find((name) => !models.includes(name));
  if (lacking.length === 0) return;
  if (unknown === undefined) {
    warn(`prices has none for ${lacking.join(" and ")}: what is answered with that has no cost.`);
    return;
  }
  throw new ConfigError(
    `prices has none for ${lacking[0]}, but one for "${unknown}", which is no model of this agent. Name the models as the log does, or add the price.`,
  );
}
