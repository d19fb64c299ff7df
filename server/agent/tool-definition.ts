/** How an author defines a tool, how the definition is checked, and the checked tool. */

import { ConfigError } from "../errors.ts";
import { isRecord } from "../protocol/json.ts";
import { fieldNames, isFunction, meantField, requiredText } from "./fields.ts";
import type { RunContext } from "./run-context.ts";
import type { ToolResultParts } from "./tool-result.ts";
import {
  type JsonSchema,
  type ParameterSchema,
  readParameters,
  type SchemaArguments,
  type StandardSchema,
} from "./tool-schema.ts";
import { checkWords, type ToolWords, type WordsDefinition } from "./tool-words.ts";

/** What a tool gets besides its arguments. */
export interface ToolContext extends RunContext {
  /** Id of this call, as in `tool_call` and `tool_result`. */
  readonly callId: string;
  /**
   * Says what the call is doing, in a plain line, which is cut to 300 characters. Clients that stream get at most four
   * a second, and always the last one. It does not extend the time limit, and does nothing once the call is over.
   */
  readonly progress: (text: string) => void;
}

/** A tool as an author defines it. */
// biome-ignore lint/suspicious/noExplicitAny: what a tool returns has a type only where `done` reads it.
export interface ToolDefinition<Arguments = never, Result = any> extends WordsDefinition<Arguments, Result> {
  /** 1 to 64 of `a-z A-Z 0-9 _ -`: what every provider accepts. */
  name: string;
  /** For the model: what the tool does and when to use it. */
  description: string;
  /** A zod 4 object, any other Standard Schema that describes itself as JSON Schema, or a JSON Schema object. */
  parameters: StandardSchema<Arguments> | JsonSchema;
  /**
   * Does the work. A string goes to the model as it is, `toolResult` with its images and sources, anything else as
   * JSON. If it throws, the model gets the message as a failed result, the log gets the stack, and the run goes on.
   * Clients get only "The tool failed.", unless it throws a `ToolError`, whose message they get.
   */
  execute(args: Arguments, context: ToolContext): Result | Promise<Result>;
  /** Milliseconds until the call counts as failed. Default 30,000. */
  timeoutMs?: number;
  /**
   * Whether a person has to approve calls before they are carried out: all, or those for which the function returns
   * true. The function gets checked arguments; if it throws, the person is asked.
   */
  needsApproval?: boolean | ((args: Arguments, context: ToolContext) => boolean | Promise<boolean>);
  /** What the person is asked, in plain text of at most 1,000 characters. They see the arguments, too. */
  approvalText?(args: Arguments): string | Promise<string>;
  /** Whether the person may change the arguments before they approve the call. */
  editable?: boolean;
  /** Whether the call does something that cannot be undone. */
  danger?: boolean;
}

/** A tool whose arguments have no static type, as in an agent's list. */
// biome-ignore lint/suspicious/noExplicitAny: argument types differ from tool to tool; the schema checks them at run time.
export type AnyToolDefinition = ToolDefinition<any>;

/** Texts for people about a tool that runs elsewhere, as in `tool()`. `done` gets the output, parsed if it is JSON. */
// biome-ignore lint/suspicious/noExplicitAny: the tool's own framework knows the types.
export interface ToolTextsDefinition extends WordsDefinition<any, any> {
  /** What a person is asked, in place of the framework's own text: plain text of at most 1,000 characters. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  approvalText?(args: any): string | Promise<string>;
  /** Whether the call does something that cannot be undone. */
  danger?: boolean;
}

/** A checked tool, ready to run. */
export interface Tool extends ToolWords {
  readonly description: string;
  readonly parameters: ParameterSchema;
  readonly timeoutMs: number;
  /** Whether `execute` itself throws `Late` after `timeoutMs`, because each progress report restarts that time. */
  readonly timesItself?: boolean;
  /** Absent where no call needs it. */
  readonly approval?: ToolApprovalRules | undefined;
  execute(args: unknown, context: ToolContext): unknown;
}

/** Which calls of a tool a person has to approve, and how they are asked. */
export interface ToolApprovalRules {
  isNeeded(args: unknown, context: ToolContext): unknown;
  text: ((args: unknown) => unknown) | undefined;
  readonly editable: boolean;
  readonly danger: boolean;
}

/** Gives a tool the type of its arguments, which its zod object has. */
export function tool<Output, Result>(
  definition: ToolDefinition<Output, Result> & { parameters: StandardSchema<Output> },
): ToolDefinition<Output>;
/** Gives a tool the type of its arguments, which follows from a JSON Schema that is written in place or `as const`. */
export function tool<const Schema extends JsonSchema, Result>(
  definition: ToolDefinition<SchemaArguments<Schema>, Result> & { parameters: Schema },
): ToolDefinition<SchemaArguments<Schema>>;
/** Gives a tool the type of its arguments as its author states it, for a JSON Schema that is not known in advance. */
export function tool<Arguments = Record<string, unknown>>(
  definition: ToolDefinition<Arguments> & { parameters: JsonSchema },
): ToolDefinition<Arguments>;
export function tool<Arguments>(definition: ToolDefinition<Arguments>): ToolDefinition<Arguments> {
  return definition;
}

/** A global symbol, because the project may have another copy of this package than the server. */
const TOOL_ERROR = Symbol.for("parley-agent.ToolError");

/** What clients get in place of what a tool threw. */
export const HIDDEN_FAILURE = "The tool failed.";

/** A failure of a tool whose message is meant for the model and for clients. */
export class ToolError extends Error {
  override readonly name: string = "ToolError";
  readonly [TOOL_ERROR] = true;
}

export function isToolError(thrown: unknown): thrown is ToolError {
  return thrown instanceof Error && TOOL_ERROR in thrown;
}

const TOOL_RESULT = Symbol.for("parley-agent.toolResult");

/** What `execute` returns if its result has images or sources. */
export function toolResult(result: ToolResultParts): ToolResultParts {
  return Object.assign({ [TOOL_RESULT]: true }, result);
}

export function isToolResult(value: unknown): value is ToolResultParts {
  return isRecord(value) && TOOL_RESULT in value;
}

const DEFAULT_TOOL_TIMEOUT_MS = 30_000;

const TEXTS = { title: true, running: true, done: true, expose: true, approvalText: true, danger: true } as const;
const TEXT_FIELDS = fieldNames<ToolTextsDefinition>(TEXTS);
const TOOL_FIELDS = fieldNames<ToolDefinition>({
  ...{ name: true, description: true, parameters: true, execute: true, timeoutMs: true },
  ...{ needsApproval: true, editable: true, ...TEXTS },
});

/** `at` is its place, such as `tools[0]`. @throws ConfigError that names the field and says what is right */
export function checkTool(definition: unknown, at: string): Tool {
  if (!isRecord(definition)) throw new ConfigError(`${at} must be an object: tool({ … }).`);
  const { execute, timeoutMs = DEFAULT_TOOL_TIMEOUT_MS } = definition;
  const name = requiredText(definition, "name", `${at}.name`);
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) {
    throw new ConfigError(`${at}.name must be 1 to 64 letters, digits, "_" or "-", but is "${name}".`);
  }
  refuseMisspeltFields(definition, name);
  if (typeof execute !== "function")
    throw new ConfigError(`The tool "${name}" has no execute function. Add execute: (args) => …`);
  if (typeof timeoutMs !== "number" || !(timeoutMs > 0 && timeoutMs < 2 ** 31)) {
    throw new ConfigError(`timeoutMs of the tool "${name}" must be a number of milliseconds above 0.`);
  }
  return {
    ...checkWords(definition, name),
    description: requiredText(definition, "description", `description of the tool "${name}"`),
    parameters: checkParameters(definition.parameters, name),
    timeoutMs,
    approval: checkApproval(definition, name),
    execute: (args, context) => execute.call(definition, args, context),
  };
}

/** Tools that run elsewhere, of which only the texts for people are known. */
export function checkToolTexts({ toolTexts = {} }: Record<string, unknown>): Tool[] {
  if (!isRecord(toolTexts) || Array.isArray(toolTexts) || !Object.values(toolTexts).every(isRecord)) {
    throw new ConfigError(
      'toolTexts must be an object by names of tools, such as { cancel_order: { title: "Cancel" } }.',
    );
  }
  return Object.entries(toolTexts as Record<string, Record<string, unknown>>).map(([name, definition]) => {
    const field = Object.keys(definition).find((one) => !TEXT_FIELDS.includes(one));
    if (field !== undefined) {
      const meant = meantField(field, TEXT_FIELDS);
      const advice = meant === undefined ? `The fields are ${TEXT_FIELDS.join(", ")}.` : `Did you mean ${meant}?`;
      throw new ConfigError(`toolTexts.${name} has a field ${field}, which does nothing. ${advice}`);
    }
    const { approvalText, danger = false } = definition;
    const asks = approvalText !== undefined || danger !== false;
    return {
      ...checkWords(definition, name),
      runsElsewhere: true,
      description: "",
      parameters: checkParameters({ type: "object" }, name),
      timeoutMs: DEFAULT_TOOL_TIMEOUT_MS,
      approval: asks ? checkApproval({ approvalText, danger, needsApproval: true }, name) : undefined,
      execute: () => undefined,
    };
  });
}

function checkApproval(definition: Record<string, unknown>, name: string): ToolApprovalRules | undefined {
  const { needsApproval = false, approvalText: text, editable = false, danger = false } = definition;
  if (typeof needsApproval !== "boolean" && !isFunction(needsApproval)) {
    throw new ConfigError(`needsApproval of the tool "${name}" must be true, false or a function that says which.`);
  }
  if (text !== undefined && !isFunction(text)) {
    throw new ConfigError(`approvalText of the tool "${name}" must be a function that returns a text.`);
  }
  for (const [field, value] of Object.entries({ editable, danger })) {
    if (typeof value !== "boolean") throw new ConfigError(`${field} of the tool "${name}" must be true or false.`);
  }
  if (needsApproval !== false) {
    const isNeeded = isFunction(needsApproval) ? needsApproval.bind(definition) : () => true;
    return { isNeeded, text: text?.bind(definition), editable: editable === true, danger: danger === true };
  }
  const idle = Object.entries({ approvalText: text !== undefined, editable, danger }).find(([, isSet]) => isSet)?.[0];
  if (idle === undefined) return undefined;
  throw new ConfigError(`${idle} of the tool "${name}" does nothing without needsApproval. Add needsApproval: true.`);
}

/** A tool may be an object with other fields: only one whose name seems meant for a missing field counts as wrong. */
function refuseMisspeltFields(definition: Record<string, unknown>, name: string): void {
  for (const field of Object.keys(definition).filter((one) => !TOOL_FIELDS.includes(one))) {
    const meant = meantField(field, TOOL_FIELDS);
    if (meant === undefined || definition[meant] !== undefined) continue;
    throw new ConfigError(`The tool "${name}" has a field ${field}, which does nothing. Did you mean ${meant}?`);
  }
}

function checkParameters(parameters: unknown, toolName: string): ParameterSchema {
  try {
    return readParameters(parameters, toolName);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    throw new ConfigError(`parameters of the tool "${toolName}" ${problem}.`);
  }
}
