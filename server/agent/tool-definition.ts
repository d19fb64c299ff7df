/** What the author of a project writes of a tool, and what becomes of it. */

import type { RunContext } from "./run-context.ts";
import type { JsonSchema, ParameterSchema, SchemaArguments, StandardSchema } from "./tool-schema.ts";
import type { ToolWords, WordsDefinition } from "./tool-words.ts";

/** What a tool gets besides its arguments. */
export interface ToolContext extends RunContext {
  /** Id of this call, as in `tool_call` and `tool_result`. */
  readonly callId: string;
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
   * Does the work. A string goes to the model as it is, anything else as JSON. If it throws, the model gets the message as
   * a failed result, the log gets the stack, and the run goes on. Clients get only "The tool failed.", unless it throws a
   * `ToolError`: its message is for them, too.
   */
  execute(args: Arguments, context: ToolContext): Result | Promise<Result>;
  /** Milliseconds until the call counts as failed. Default 30,000. */
  timeoutMs?: number;
  /**
   * Whether a person has to approve the call before it is carried out: each call, or those for which the function says so. It
   * gets checked arguments; if it throws, the person is asked.
   */
  needsApproval?: boolean | ((args: Arguments, context: ToolContext) => boolean | Promise<boolean>);
  /** What the person is asked, in plain text of at most 1,000 characters. They see the arguments, too. */
  approvalText?(args: Arguments): string | Promise<string>;
  /** Whether the person may change the arguments before they approve the call. */
  editable?: boolean;
  /** Whether the call does something that cannot be undone. */
  danger?: boolean;
}

/** A tool whose arguments have no static type: as it is in an agent's list. */
// biome-ignore lint/suspicious/noExplicitAny: argument types differ from tool to tool; the schema checks them at run time.
export type AnyToolDefinition = ToolDefinition<any>;

/** What people read of a tool that runs elsewhere: fields of `tool()`. `done` gets the output, read as JSON where it is JSON. */
// biome-ignore lint/suspicious/noExplicitAny: the tool's own framework knows the types.
export interface ToolTextsDefinition extends WordsDefinition<any, any> {
  /** What a person is asked, in place of what the framework says, in plain text of at most 1,000 characters. */
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

/** Gives a tool the type of its arguments: a zod object has it. */
export function tool<Output, Result>(
  definition: ToolDefinition<Output, Result> & { parameters: StandardSchema<Output> },
): ToolDefinition<Output>;
/** Gives a tool the type of its arguments: it follows from a JSON Schema that is written in place, or `as const`. */
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

/** Global, because the project may have another copy of this package than the server. */
const TOOL_ERROR = Symbol.for("parley-agent.ToolError");

/** A failure of a tool whose message is meant for the model and for clients. */
export class ToolError extends Error {
  override readonly name: string = "ToolError";
  readonly [TOOL_ERROR] = true;
}

export function isToolError(thrown: unknown): thrown is ToolError {
  return thrown instanceof Error && TOOL_ERROR in thrown;
}
