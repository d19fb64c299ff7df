import { isRecord } from "../protocol/is-record.ts";
import { SetupError } from "../providers/failures/provider-error.ts";
import type { ModelSettings, ReasoningEffort } from "../providers/provider.ts";
import { checkHostedTools } from "./hosted-tools.ts";

const EFFORTS: readonly ReasoningEffort[] = ["none", "minimal", "low", "medium", "high", "xhigh"];

/** Reads the model settings of an agent. @throws SetupError that names the field and what would be right. */
export function checkSettings(agent: Record<string, unknown>): ModelSettings {
  const { reasoningEffort, temperature, maxOutputTokens, extraBody, store, hostedTools } = agent;
  return {
    ...(reasoningEffort === undefined ? {} : { reasoningEffort: checkEffort(reasoningEffort) }),
    ...(temperature === undefined ? {} : { temperature: checkTemperature(temperature) }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens: checkTokens(maxOutputTokens) }),
    ...(extraBody === undefined ? {} : { extraBody: checkBody(extraBody) }),
    ...(store === undefined ? {} : { store: checkStore(store) }),
    ...(hostedTools === undefined ? {} : { hostedTools: checkHostedTools(hostedTools) }),
  };
}

function checkEffort(value: unknown): ReasoningEffort {
  const effort = EFFORTS.find((known) => known === value);
  if (effort !== undefined) return effort;
  throw new SetupError(`reasoningEffort must be one of ${EFFORTS.join(", ")}.`);
}

function checkTemperature(value: unknown): number {
  if (typeof value === "number" && value >= 0 && value <= 2) return value;
  throw new SetupError("temperature must be a number from 0 to 2.");
}

function checkTokens(value: unknown): number {
  if (typeof value === "number" && Number.isInteger(value) && value > 0) return value;
  throw new SetupError("maxOutputTokens must be a whole number above 0.");
}

function checkBody(value: unknown): Record<string, unknown> {
  if (isRecord(value)) return value;
  throw new SetupError("extraBody must be an object.");
}

function checkStore(value: unknown): boolean {
  if (typeof value === "boolean") return value;
  throw new SetupError("store must be true or false.");
}
