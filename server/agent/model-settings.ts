/** How an agent's author wants the model to work: checks the fields of the agent that go to the provider. */

import { ConfigError } from "../errors.ts";
import { isRecord } from "../protocol/json.ts";
import type { HostedTool, HostedToolType, ModelSettings, ReasoningEffort } from "../providers/provider.ts";

const EFFORTS: readonly ReasoningEffort[] = ["none", "minimal", "low", "medium", "high", "xhigh"];

const HOSTED_TOOLS: readonly HostedToolType[] = ["web_search", "file_search", "code_interpreter"];

/** @throws ConfigError that names the field and says what is right */
export function checkModelSettings(agent: Record<string, unknown>): ModelSettings {
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
  throw new ConfigError(`reasoningEffort must be one of ${EFFORTS.join(", ")}.`);
}

function checkTemperature(value: unknown): number {
  if (typeof value === "number" && value >= 0 && value <= 2) return value;
  throw new ConfigError("temperature must be a number from 0 to 2.");
}

function checkTokens(value: unknown): number {
  if (typeof value === "number" && Number.isInteger(value) && value > 0) return value;
  throw new ConfigError("maxOutputTokens must be a whole number above 0.");
}

function checkBody(value: unknown): Record<string, unknown> {
  if (isRecord(value)) return value;
  throw new ConfigError("extraBody must be an object.");
}

function checkStore(value: unknown): boolean {
  if (typeof value === "boolean") return value;
  throw new ConfigError("store must be true or false.");
}

function checkHostedTools(value: unknown): readonly HostedTool[] {
  if (!Array.isArray(value)) throw new ConfigError("hostedTools must be an array.");
  const tools = value.map((tool: unknown, index) => checkHostedTool(tool, `hostedTools[${index}]`));
  for (const type of HOSTED_TOOLS) {
    if (tools.filter((tool) => tool.type === type).length > 1) {
      throw new ConfigError(`hostedTools names ${type} twice.`);
    }
  }
  return tools;
}

function checkHostedTool(value: unknown, at: string): HostedTool {
  const fields = typeof value === "string" ? { type: value } : value;
  const type = isRecord(fields) ? HOSTED_TOOLS.find((known) => known === fields.type) : undefined;
  if (!isRecord(fields) || type === undefined) {
    throw new ConfigError(`${at} must be one of ${HOSTED_TOOLS.join(", ")}, or an object of such a type.`);
  }
  switch (type) {
    case "web_search":
      return { ...fields, type };
    case "code_interpreter":
      return { container: { type: "auto" }, ...fields, type };
    case "file_search":
      return { ...fields, type, vector_store_ids: checkStores(fields.vector_store_ids, at) };
  }
}

function checkStores(value: unknown, at: string): readonly string[] {
  if (Array.isArray(value) && value.length > 0 && value.every((id) => typeof id === "string")) return value;
  throw new ConfigError(`${at} must name what to search: { type: "file_search", vector_store_ids: ["vs_…"] }.`);
}
