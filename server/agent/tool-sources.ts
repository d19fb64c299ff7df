/** Where an agent's tools come from: a `ToolSource` for each way to define them. */

import { ConfigError } from "../errors.ts";
import { ApiError } from "../protocol/errors.ts";
import { isFunction } from "./fields.ts";
import { askAuthor } from "./hooks.ts";
import type { RunContext } from "./run-context.ts";
import { checkTool, checkToolTexts, type Tool } from "./tool-definition.ts";

/** Seconds until a client may retry that was refused because a tool source is unreachable. */
const UNREADY_SECONDS = 5;

export interface ToolSource {
  /** The tools for every message, known at the start. */
  readonly fixed: readonly Tool[];
  /**
   * The tools for one message, in place of `fixed`, within `maxMs`; absent if they are always the same.
   * @throws ApiError `internal`, `overloaded` as `unready` gives it, or the reason of an abort
   */
  toolsFor?(context: RunContext, maxMs: number): Promise<Given>;
  /** Whether messages can be answered now; absent if they always can. */
  isReady?(): boolean;
  /** Called after the agent's last run. */
  close?(): unknown;
}

/** What a source gives for one message. */
export interface Given {
  readonly tools: readonly Tool[];
  /** For each tool that the model does not get, a sentence that says what is wrong with it. */
  readonly leftOut: readonly string[];
  /** What the model gets below the agent's own instructions. */
  readonly instructions?: readonly string[];
}

/** The sources of an agent. @throws ConfigError that names the field and says what is right */
export function checkTools(agent: Record<string, unknown>): ToolSource[] {
  const { run, tools = [] } = agent;
  if (run !== undefined) return [listed(checkToolTexts(agent))];
  return [isFunction(tools) ? chosen(tools.bind(agent)) : listed(checkedIn(tools, checkTool))];
}

/** The same tools for every message. @throws ConfigError if two have the same name */
function listed(tools: readonly Tool[]): ToolSource {
  const [clash] = joined([{ tools, leftOut: [] }]).leftOut;
  if (clash !== undefined) throw new ConfigError(clash);
  return { fixed: tools };
}

/** The tools that a function of the author chooses for each message. */
function chosen(choose: (ctx: RunContext) => unknown): ToolSource {
  const ask = async (ctx: RunContext) => checkedIn(await choose(ctx), checkedOrNot);
  return {
    fixed: [],
    async toolsFor(context, maxMs) {
      const checked = await askAuthor("tools(ctx)", ask, context, maxMs);
      return {
        tools: checked.filter((one) => typeof one !== "string"),
        leftOut: checked.filter((one) => typeof one === "string"),
      };
    },
  };
}

/** The result of `check` for each tool in the list. */
function checkedIn<Checked>(tools: unknown, check: (definition: unknown, at: string) => Checked): Checked[] {
  // The copy has `undefined` in place of a hole, which `check` refuses.
  if (Array.isArray(tools)) return [...tools].map((definition, index) => check(definition, `tools[${index}]`));
  throw new ConfigError("tools must be an array of tool({ … }), or a function that returns one.");
}

/** The tool, or what is wrong with it. */
function checkedOrNot(definition: unknown, at: string): Tool | string {
  try {
    return checkTool(definition, at);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    return `${at} cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** The error for messages while a tool source that they need is unreachable. */
export function unready(): ApiError {
  const message = "The assistant cannot reach something that it needs. Please try again in a moment.";
  return new ApiError("overloaded", message, { retryAfter: UNREADY_SECONDS });
}

/** The tools and instructions of all sources for one message. @throws as `ToolSource.toolsFor` does */
export async function askSources(sources: readonly ToolSource[], context: RunContext, maxMs: number): Promise<Joined> {
  const given = sources.map(({ fixed, toolsFor }) => toolsFor?.(context, maxMs) ?? { tools: fixed, leftOut: [] });
  return joined(await Promise.all(given));
}

interface Joined {
  readonly tools: ReadonlyMap<string, Tool>;
  readonly leftOut: readonly string[];
  readonly instructions: readonly string[];
}

/** Leaves out the second of two tools with the same name: a call could mean either. */
function joined(given: readonly Given[]): Joined {
  const tools = new Map<string, Tool>();
  const leftOut = given.flatMap((one) => one.leftOut);
  for (const tool of given.flatMap((one) => one.tools)) {
    if (tools.has(tool.name)) leftOut.push(`Two tools are named "${tool.name}". Rename one of them.`);
    else tools.set(tool.name, tool);
  }
  return { tools, leftOut, instructions: given.flatMap((one) => one.instructions ?? []) };
}
