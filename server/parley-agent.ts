/** The package `parley-agent`, as agent projects import it. */

export {
  type AgentDefinition,
  defineAgent,
  type ModelName,
  type ToolContext,
  type ToolDefinition,
  tool,
} from "./agent/define.ts";
export type { JsonSchema, SchemaArguments, StandardSchema } from "./agent/schema.ts";
export { ToolError } from "./agent/tool-error.ts";
