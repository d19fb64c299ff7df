import { isRecord } from "../protocol/is-record.ts";
import { SetupError } from "../providers/failures/provider-error.ts";
import type { HostedTool, HostedToolType } from "../providers/provider.ts";

const TYPES: readonly HostedToolType[] = ["web_search", "file_search", "code_interpreter"];

/** Reads `hostedTools` of an agent. @throws SetupError that names the element and what would be right. */
export function checkHostedTools(value: unknown): readonly HostedTool[] {
  if (!Array.isArray(value)) throw new SetupError("hostedTools must be an array.");
  const tools = value.map((tool: unknown, index) => checkTool(tool, `hostedTools[${index}]`));
  for (const type of TYPES) {
    if (tools.filter((tool) => tool.type === type).length > 1) {
      throw new SetupError(`hostedTools names ${type} twice.`);
    }
  }
  return tools;
}

function checkTool(value: unknown, at: string): HostedTool {
  const fields = typeof value === "string" ? { type: value } : value;
  const type = isRecord(fields) ? TYPES.find((known) => known === fields.type) : undefined;
  if (!isRecord(fields) || type === undefined) {
    throw new SetupError(`${at} must be one of ${TYPES.join(", ")}, or an object of such a type.`);
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
  if (Array.isArray(value) && value.length > 0 && value.every((id) => typeof id === "string")) {
    return value;
  }
  throw new SetupError(`${at} must name what to search: { type: "file_search", vector_store_ids: ["vs_…"] }.`);
}
