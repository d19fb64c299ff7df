/** The tools of an MCP server as tools of the agent. */

import { createHash } from "node:crypto";
import { type McpServer, plainName } from "../agent/mcp-definition.ts";
import { plainText } from "../agent/plain-text.ts";
import type { Tool } from "../agent/tool-definition.ts";
import type { ToolResultParts } from "../agent/tool-result.ts";
import { readParameters } from "../agent/tool-schema.ts";
import type { Given } from "../agent/tool-sources.ts";
import { tryParse } from "../protocol/json.ts";
import type { Offer, OfferedTool } from "./offer.ts";

const MAX_TOOLS = 128;
/** The most characters of descriptions and parameters, which go into each model request. */
const MAX_CHARS = 256 * 1024;
const MAX_DESCRIPTION_CHARS = 64 * 1024;
const MAX_PARAMETER_CHARS = 64 * 1024;
const MAX_NAME_CHARS = 64;

/** The texts that people see of a tool, by its name for the model. */
export type Texts = ReadonlyMap<string, Tool>;

/** Makes a tool's `execute`. */
type Executing = (tool: string) => Tool["execute"];

export function toolsOf(
  server: McpServer,
  { tools: all, instructions }: Offer,
  texts: Texts,
  execute: Executing,
): Given {
  const allowed = all.filter(({ name }) => server.isAllowed(name)).sort((a, b) => (a.name < b.name ? -1 : 1));
  const leftOut: string[] = [];
  const tools: Tool[] = [];
  let descriptions = MAX_DESCRIPTION_CHARS;
  let chars = MAX_CHARS;
  let isFull = false;
  for (const one of allowed) {
    const length = JSON.stringify(one.parameters).length;
    if (length > MAX_PARAMETER_CHARS) {
      leftOut.push(`The parameters of ${plainText(one.name)} on the tool server ${server.name} are too long.`);
      continue;
    }
    descriptions -= one.description.length;
    chars -= one.description.length + length;
    isFull ||= tools.length === MAX_TOOLS || descriptions < 0 || chars < 0;
    if (isFull) break;
    const made = makeTool(server, one, texts, execute);
    if (typeof made === "string") leftOut.push(made);
    else tools.push(made);
  }
  if (isFull) {
    leftOut.push(
      `The tool server ${server.name} has ${allowed.length} tools, which are too many: the model gets the first ${tools.length}. Name those that it needs: mcp: { ${server.name}: { tools: […] } }.`,
    );
  }
  const isSaid = tools.length > 0 && instructions !== "";
  const said = isSaid ? [`The tool server ${server.name} says of its tools:\n${instructions}`] : [];
  return { tools, leftOut, instructions: said };
}

/** A tool, or why it cannot be one. */
function makeTool(server: McpServer, offered: OfferedTool, texts: Texts, execute: Executing): Tool | string {
  const name = nameOf(server.prefix, offered.name);
  const words = texts.get(name);
  const { approves } = server;
  const isAsked = typeof approves === "function" ? approves(offered.name) : approves === true || !offered.isReadOnly;
  const danger = words?.approval?.danger || offered.isDestructive;
  try {
    return {
      name,
      description: offered.description || offered.title || name,
      parameters: readParameters(offered.parameters, name),
      timeoutMs: server.timeoutMs,
      timesItself: true,
      title: words?.title ?? (offered.title || undefined),
      running: words?.running,
      done: words?.done && ((args, result) => words.done?.(args, readOutput(result as ToolResultParts))),
      expose: words?.expose ?? "all",
      approval: isAsked ? { isNeeded: () => true, text: words?.approval?.text, editable: false, danger } : undefined,
      execute: execute(offered.name),
    };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return `The parameters of ${plainText(offered.name)} on the tool server ${server.name} ${why}.`;
  }
}

/** The result as `done` gets it from all tools that run elsewhere. */
function readOutput({ text = "", json }: ToolResultParts): unknown {
  return json ?? tryParse(text) ?? text;
}

/** The tool's name for the model, which every provider accepts. */
export function nameOf(prefix: string, tool: string): string {
  const whole = prefix + plainName(tool);
  if (whole.length <= MAX_NAME_CHARS) return whole;
  const digest = createHash("sha256")
    .update(prefix + tool)
    .digest("hex")
    .slice(0, 8);
  return `${whole.slice(0, MAX_NAME_CHARS - digest.length - 1)}_${digest}`;
}
