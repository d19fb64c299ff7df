/** The token usage of model requests, with one meaning for every API and framework. */

import type { Usage } from "../protocol/chat.ts";
import { isRecord, type Json } from "../protocol/json.ts";

/** The counts of an API or a framework. A value that is not a number counts as not reported. */
interface Counts {
  input: unknown;
  output: unknown;
  /** Input tokens that were read from a cache, and those that were written to one. */
  cached?: unknown;
  written?: unknown;
  /** Reasoning tokens, which are a part of the output. */
  reasoning?: unknown;
  /** Some servers and packages count reasoning only in the total. */
  total?: unknown;
  /** Whether `input` leaves out `cached` and `written`. */
  isApart?: boolean;
}

/** The usage, if both input and output are counted. */
export function usageOf({ input, output, cached, written, reasoning, total, isApart }: Counts): Usage | undefined {
  if (!isCount(input) || !isCount(output)) return undefined;
  const fromCache = [cached, written].filter(isCount).reduce((sum, count) => sum + count, 0);
  const others = isCount(total) && !isApart ? total - input : 0;
  return {
    // An input count that is lower than the cached tokens does not include them.
    input_tokens: isApart || input < fromCache ? input + fromCache : input,
    output_tokens: Math.max(output, others),
    ...(isCount(cached) ? { cached_input_tokens: cached } : {}),
    ...(isCount(written) ? { cache_write_tokens: written } : {}),
    ...(isCount(reasoning) ? { reasoning_tokens: reasoning } : {}),
  };
}

/** The usage of OpenAI's Responses API, and of APIs like it. */
export function responsesUsage(usage: unknown): Usage | undefined {
  const { input_tokens: input, output_tokens: output, ...details } = fieldsIn(usage);
  return usageOf({ input, output, ...openAiDetails(details.input_tokens_details, details.output_tokens_details) });
}

/** The details that all of OpenAI's APIs and packages report alike. */
export function openAiDetails(ofInput: unknown, ofOutput: unknown): Pick<Counts, "cached" | "written" | "reasoning"> {
  const { cached_tokens: cached, cache_write_tokens: written } = fieldsIn(ofInput);
  return { cached, written, reasoning: fieldsIn(ofOutput).reasoning_tokens };
}

/** The fields of a value, or none if it is not an object. */
export function fieldsIn(value: unknown): Json {
  return isRecord(value) ? value : {};
}

/** The sum. A field that neither has stays absent; a flag of either is kept. */
export function addUsage<Counted extends Usage>(
  sum: Counted | undefined,
  more: Counted | undefined,
): Counted | undefined {
  if (sum === undefined || more === undefined) return sum ?? more;
  const total: Usage = { ...sum, ...more };
  for (const [name, count] of Object.entries(sum) as [keyof Usage, unknown][]) {
    if (typeof count === "number") total[name] = count + (more[name] ?? 0);
  }
  return total as Counted;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}
