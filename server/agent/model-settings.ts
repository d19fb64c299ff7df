/** Checks the fields of an agent that set how its model works and that go to the provider. */

import { ConfigError } from "../errors.ts";
import { isRecord } from "../protocol/json.ts";
import type { HostedTool, HostedToolType, ModelSettings, ReasoningEffort } from "../providers/provider.ts";

const EFFORTS: readonly ReasoningEffort[] = ["none", "minimal", "low", "medium", "high", "xhigh"];

const HOSTED_TOOLS: readonly HostedToolType[] = ["web_search", "file_search", "code_interpreter"];

/** For each field, a check and the end of the sentence about a wrong value. */
const RULES: Record<Exclude<keyof ModelSettings, "hostedTools">, [(value: unknown) => boolean, string]> = {
  reasoningEffort: [(value) => EFFORTS.some((effort) => effort === value), `one of ${EFFORTS.join(", ")}`],
  temperature: [(value) => typeof value === "number" && value >= 0 && value <= 2, "a number from 0 to 2"],
  maxOutputTokens: [(value) => Number.isInteger(value) && Number(value) > 0, "a whole number above 0"],
  extraBody: [isRecord, "an object"],
  providerOptions: [
    (value) => isRecord(value) && Object.values(value).every(isRecord),
    "an object with an object for each provider, such as { anthropic: { … } }",
  ],
  store: [(value) => typeof value === "boolean", "true or false"],
};

/** @throws ConfigError that names the field and says what is right */
export function checkModelSettings(agent: Record<string, unknown>): ModelSettings {
  const settings: Record<string, unknown> = {};
  for (const [field, [isRight, rule]] of Object.entries(RULES)) {
    const value = agent[field];
    if (value === undefined) continue;
    if (!isRight(value)) throw new ConfigError(`${field} must be ${rule}.`);
    settings[field] = value;
  }
  if (agent.hostedTools !== undefined) settings.hostedTools = checkHostedTools(agent.hostedTools);
  return settings;
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
