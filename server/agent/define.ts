/** What the author of an agent project writes, and how it is checked. */

import { isRecord } from "../protocol/is-record.ts";
import { SetupError } from "../providers/failures/provider-error.ts";
import type { HostedTool, ModelSettings, ReasoningEffort } from "../providers/provider.ts";
import { optionalText, text } from "./check-fields.ts";
import { checkSettings } from "./model-settings.ts";
import {
  type JsonSchema,
  type ParameterSchema,
  readParameters,
  type SchemaArguments,
  type StandardSchema,
} from "./schema.ts";

/** What a tool is given besides its arguments. */
export interface ToolContext {
  /** Aborted when the client is gone, the run is stopped, or the tool's time is over. */
  signal: AbortSignal;
  /** Id of this call, as in `tool_call` and `tool_result`. */
  callId: string;
}

/** A tool as an author defines it. */
export interface ToolDefinition<Arguments = never> {
  /** 1 to 64 of `a-z A-Z 0-9 _ -`: what every provider accepts. */
  name: string;
  /** Tells the model what the tool does and when to use it. */
  description: string;
  /** A zod 4 object, any other Standard Schema that describes itself as JSON Schema, or a JSON Schema object. */
  parameters: StandardSchema<Arguments> | JsonSchema;
  /**
   * Does the work. A string goes to the model as it is, anything else as JSON. If it throws, the
   * model gets the message as a failed result, the log gets the stack, and the run goes on. Clients
   * get only "The tool failed.", unless it throws a `ToolError`: its message is for them, too.
   */
  execute(args: Arguments, context: ToolContext): unknown;
  /** Milliseconds until the call counts as failed. Default 30,000. */
  timeoutMs?: number;
}

/** A tool whose arguments have no static type: as it sits in an agent's list. */
// biome-ignore lint/suspicious/noExplicitAny: argument types differ from tool to tool; `check` proves them at run time.
export type AnyToolDefinition = ToolDefinition<any>;

/**
 * A model, as `provider/name`. Editors offer the names that are written out here; they are examples, and any other name
 * that a provider knows is as good.
 */
export type ModelName =
  | "demo"
  | "openai/gpt-5.2"
  | "anthropic/claude-sonnet-5"
  | "gemini/gemini-3-flash-preview"
  | "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"
  | "vertex/gemini-2.5-flash"
  | "ollama/qwen3:8b"
  | "litellm/anthropic/claude-sonnet-4-5"
  | "compatible/qwen3-8b"
  | (string & Record<never, never>);

/** An agent as an author defines it. */
export interface AgentDefinition {
  /** Name of the application: `name` of `/api/info`. */
  name: string;
  /** Name of the agent. Default: the application's name. */
  agent?: string;
  /** `provider/model`, such as `openai/gpt-5.2`; `demo` needs no key and no network. */
  model: ModelName;
  /**
   * Models that are asked, in this order, when the one before fails before it says anything. All of them must
   * keep a conversation in the same way, and all get the same settings.
   */
  fallbacks?: ModelName[];
  /** The system prompt. It never leaves the server but to the model's provider. */
  instructions?: string;
  tools?: AnyToolDefinition[];
  /** Most model requests in one run, 1 to 1,000. Default 10. */
  maxTurns?: number;
  /** How much a reasoning model may think. Default: the provider's. */
  reasoningEffort?: ReasoningEffort;
  /** Randomness of the answer, from 0. Default: the provider's; most reasoning models take none. */
  temperature?: number;
  /** Most tokens of one model turn. Default: the provider's. */
  maxOutputTokens?: number;
  /** Fields that are merged last into each model request, for what Parley does not know. */
  extraBody?: Record<string, unknown>;
  /** OpenAI: `false` has nothing of a conversation kept there; the client holds all of it. Default true. */
  store?: boolean;
  /** OpenAI: tools that run there. An object passes its further fields on, such as `vector_store_ids`. */
  hostedTools?: ("web_search" | "code_interpreter" | HostedTool)[];
  /** What the chat page shows: before the first message, and below the text field. */
  chat?: { welcome?: string; suggestions?: string[]; disclaimer?: string };
}

/** A checked tool, ready to run. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly parameters: ParameterSchema;
  readonly timeoutMs: number;
  execute(args: unknown, context: ToolContext): unknown;
}

/** A checked agent, ready to be served. */
export interface Agent {
  readonly name: string;
  readonly agent: string;
  readonly model: string;
  readonly fallbacks: readonly string[];
  readonly instructions: string;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly maxTurns: number;
  readonly settings: ModelSettings;
  readonly welcome: string | undefined;
  readonly suggestions: readonly string[];
  readonly disclaimer: string | undefined;
}

/** Gives an agent its type; `export default` it from `agent.ts`. */
export function defineAgent(agent: AgentDefinition): AgentDefinition {
  return agent;
}

/** Gives a tool the type of its arguments: a zod object has it. */
export function tool<Output>(
  definition: ToolDefinition<Output> & { parameters: StandardSchema<Output> },
): ToolDefinition<Output>;
/** Gives a tool the type of its arguments: it follows from a JSON Schema that is written in place, or `as const`. */
export function tool<const Schema extends JsonSchema>(
  definition: ToolDefinition<SchemaArguments<Schema>> & { parameters: Schema },
): ToolDefinition<SchemaArguments<Schema>>;
/** Gives a tool the type of its arguments as its author states it, for a JSON Schema that is not known in advance. */
export function tool<Arguments = Record<string, unknown>>(
  definition: ToolDefinition<Arguments> & { parameters: JsonSchema },
): ToolDefinition<Arguments>;
export function tool<Arguments>(definition: ToolDefinition<Arguments>): ToolDefinition<Arguments> {
  return definition;
}

const DEFAULT_TOOL_TIMEOUT_MS = 30_000;
const DEFAULT_MAX_TURNS = 10;

/** Checks what a project exports. @throws SetupError that names the field and what would be right. */
export function checkAgent(exported: unknown): Agent {
  if (!isRecord(exported)) {
    throw new SetupError("The default export must be an agent: export default defineAgent({ … }).");
  }
  const { chat, maxTurns = DEFAULT_MAX_TURNS, tools = [] } = exported;
  const name = text(exported, "name");
  if (typeof maxTurns !== "number" || !Number.isInteger(maxTurns) || maxTurns < 1 || maxTurns > 1000) {
    throw new SetupError("maxTurns must be a whole number from 1 to 1000.");
  }
  if (!Array.isArray(tools)) throw new SetupError("tools must be an array of tool({ … }).");
  if (chat !== undefined && !isRecord(chat)) throw new SetupError("chat must be an object.");
  return Object.freeze({
    name,
    agent: optionalText(exported, "agent") ?? name,
    model: text(exported, "model"),
    fallbacks: checkFallbacks(exported),
    instructions: optionalText(exported, "instructions") ?? "",
    tools: checkTools(tools),
    maxTurns,
    settings: checkSettings(exported),
    welcome: chat && optionalText(chat, "welcome", "chat.welcome"),
    suggestions: checkSuggestions(chat?.suggestions),
    disclaimer: chat && optionalText(chat, "disclaimer", "chat.disclaimer"),
  });
}

function checkFallbacks({ model, fallbacks = [] }: Record<string, unknown>): readonly string[] {
  if (!Array.isArray(fallbacks)) throw new SetupError("fallbacks must be an array of models.");
  return fallbacks.map((name: unknown, index) => {
    if (typeof name !== "string" || name.trim() === "") {
      throw new SetupError(`fallbacks[${index}] must be a model, such as "anthropic/claude-sonnet-5".`);
    }
    if (name === model || fallbacks.indexOf(name) !== index) {
      throw new SetupError(`fallbacks[${index}] names "${name}", which is asked before it already.`);
    }
    return name;
  });
}

function checkTools(tools: readonly unknown[]): ReadonlyMap<string, Tool> {
  const checked = new Map<string, Tool>();
  for (const [index, definition] of tools.entries()) {
    const tool = checkTool(definition, `tools[${index}]`);
    if (checked.has(tool.name)) throw new SetupError(`Two tools are named "${tool.name}".`);
    checked.set(tool.name, tool);
  }
  return checked;
}

function checkTool(definition: unknown, at: string): Tool {
  if (!isRecord(definition)) throw new SetupError(`${at} must be an object: tool({ … }).`);
  const { execute, timeoutMs = DEFAULT_TOOL_TIMEOUT_MS } = definition;
  const name = text(definition, "name", `${at}.name`);
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) {
    throw new SetupError(`${at}.name must be 1 to 64 letters, digits, "_" or "-", but is "${name}".`);
  }
  if (typeof execute !== "function") {
    throw new SetupError(`The tool "${name}" has no execute function.`);
  }
  if (typeof timeoutMs !== "number" || !(timeoutMs > 0 && timeoutMs < 2 ** 31)) {
    throw new SetupError(`timeoutMs of the tool "${name}" must be a number of milliseconds above 0.`);
  }
  return {
    name,
    description: text(definition, "description", `description of the tool "${name}"`),
    parameters: checkParameters(definition.parameters, name),
    timeoutMs,
    execute: (args, context) => execute.call(definition, args, context),
  };
}

function checkParameters(parameters: unknown, toolName: string): ParameterSchema {
  try {
    return readParameters(parameters);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    throw new SetupError(`parameters of the tool "${toolName}" ${problem}.`);
  }
}

function checkSuggestions(suggestions: unknown): readonly string[] {
  if (suggestions === undefined) return [];
  if (Array.isArray(suggestions) && suggestions.every((item) => typeof item === "string")) {
    return suggestions;
  }
  throw new SetupError("chat.suggestions must be an array of strings.");
}
