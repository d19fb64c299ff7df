/** What an MCP server offers: cleaned and bounded, with the same objects as before for tools that have not changed. */

import type { Tool } from "@modelcontextprotocol/client";
import { plainText } from "../agent/plain-text.ts";
import type { JsonSchema } from "../agent/tool-schema.ts";

export interface OfferedTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** An unchanged tool has the same object as before, which was parsed then. */
  readonly parameters: JsonSchema;
  readonly isReadOnly: boolean;
  readonly isDestructive: boolean;
}

export interface Offer {
  readonly tools: readonly OfferedTool[];
  readonly instructions: string;
}

/** Further tools of a server are ignored. */
const MAX_LISTED = 1_000;
const MAX_INSTRUCTION_CHARS = 2 * 1024;

/** `onRewritten` is called for each tool that is described differently than before. */
export function readOffer(
  tools: readonly Tool[],
  instructions: string | undefined,
  before: Offer | undefined,
  onRewritten: (tool: string) => void,
): Offer {
  const known = new Map(before?.tools.map((tool) => [tool.name, tool]));
  return {
    tools: tools.slice(0, MAX_LISTED).map((tool) => {
      const now = readTool(tool);
      const then = known.get(now.name);
      if (then !== undefined && then.description !== now.description) onRewritten(now.name);
      return JSON.stringify(then) === JSON.stringify(now) && then !== undefined ? then : now;
    }),
    instructions: visible(instructions ?? "")
      .trim()
      .slice(0, MAX_INSTRUCTION_CHARS)
      .toWellFormed(),
  };
}

function readTool({ name, description = "", inputSchema, annotations, title = annotations?.title }: Tool): OfferedTool {
  return {
    name,
    title: plainText(title ?? ""),
    description: visible(description).trim(),
    parameters: JSON.parse(JSON.stringify(inputSchema), (_key, value) =>
      typeof value === "string" ? visible(value) : value,
    ),
    isReadOnly: annotations?.readOnlyHint === true,
    isDestructive: annotations?.destructiveHint === true,
  };
}

/** A text for the model, in lines, without invisible control characters. */
function visible(text: string): string {
  return text.toWellFormed().replace(/\p{Bidi_Control}|(?![\n\t])\p{Cc}/gu, "");
}
