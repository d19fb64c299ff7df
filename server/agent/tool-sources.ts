/** Where an agent's tools come from: a row for each way to give them. */

import { ConfigError } from "../errors.ts";
import { ApiError } from "../protocol/errors.ts";
import { isFunction } from "./fields.ts";
import { askAuthor } from "./hooks.ts";
import type { RunContext } from "./run-context.ts";
import { checkTool, checkToolTexts, type Tool } from "./tool-definition.ts";

/** When a client may ask again that was refused because something is away. */
const UNREADY_SECONDS = 5;

export interface ToolSource {
  /** What it gives for every message, known at the start. */
  readonly fixed: readonly Tool[];
  /**
   * What it gives for one message in place of that, within `maxMs`; absent where it always gives the same.
   * @throws ApiError `internal`, `overloaded` as `unready` gives it, or the reason of an abort
   */
  toolsFor?(context: RunContext, maxMs: number): Promise<Given>;
  /** Whether messages can be answered now; absent where nothing has to be there for that. */
  isReady?(): boolean;
  /** Called after the agent's last run. */
  close?(): unknown;
}

/** What a source gives for one message. */
export interface Given {
  readonly tools: readonly Tool[];
  /** What is wrong with others, which the model does not get: a sentence for each. */
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

/** The same tools for every message. @throws ConfigError where two have one name */
function listed(tools: readonly Tool[]): ToolSource {
  const [clash] = joined([{ tools, leftOut: [] }]).leftOut;
  if (clash !== undefined) throw new ConfigError(clash);
  return { fixed: tools };
}

/** What a function of the author chooses for each message. */
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

/** What `check` makes of each tool in the list. */
function checkedIn<Checked>(tools: unknown, check: (definition: unknown, at: string) => Checked): Checked[] {
  // A hole becomes a mistake.
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

/** Why no message is answered while something is away. */
export function unready(): ApiError {
  const message = "The assistant cannot reach something that it needs. Please try again in a moment.";
  return new ApiError("overloaded", message, { retryAfter: UNREADY_SECONDS });
}

/** What all sources give for one message. @throws as `ToolSource.toolsFor` does */
export async function askSources(sources: readonly ToolSource[], context: RunContext, maxMs: number): Promise<Joined> {
  const given = sources.map(({ fixed, toolsFor }) => toolsFor?.(context, maxMs) ?? { tools: fixed, leftOut: [] });
  return joined(await Promise.all(given));
}

interface Joined {
  readonly tools: ReadonlyMap<string, Tool>;
  readonly leftOut: readonly string[];
  readonly instructions: readonly string[];
}

/** The second of two tools with one name is left out: a model could call either. */
function joined(given: readonly Given[]): Joined {
  const tools = new Map<string, Tool>();
  const leftOut = given.flatMap((one) => one.leftOut);
  for (const tool of given.flatMap((one) => one.tools)) {
    if (tools.has(tool.name)) leftOut.push(`Two tools are named "${tool.name}". Rename one of them.`);
    else tools.set(tool.name, tool);
  }
  return { tools, leftOut, instructions: given.flatMap((one) => one.instructions ?? []) };
}
