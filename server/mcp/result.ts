/** Converts the result of an MCP server's tool for the model and for people. */

import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/client";
import { ToolError, toolResult } from "../agent/tool-definition.ts";
import { picturesOf, type ToolImage, type ToolResultParts } from "../agent/tool-result.ts";

/** The parts of a result. Its links are not followed. @throws ToolError if the server reports that the tool has failed */
export function readCallResult({ content = [], structuredContent, isError }: CallToolResult): ToolResultParts {
  const parts = content.map(readBlock);
  const images = parts.filter((part) => typeof part !== "string");
  const text = parts.filter((part) => typeof part === "string").join("\n");
  if (isError) throw new ToolError(text.trim() === "" ? "The tool failed without a message." : text);
  const isTextless = text === "" && structuredContent !== undefined;
  return toolResult({ ...(isTextless ? { json: structuredContent } : { text }), images });
}

function readBlock(block: ContentBlock): string | ToolImage {
  switch (block.type) {
    case "text":
      return block.text;
    case "resource_link":
      return `${block.title ?? block.name}: ${block.uri}`;
    case "resource":
      if ("text" in block.resource) return `${block.resource.uri}:\n${block.resource.text}`;
      return readData(block.resource.blob, block.resource.mimeType);
    default:
      return readData(block.data, block.mimeType);
  }
}

/** A picture, or a text in place of data of another kind. */
function readData(data: string, mimeType = "unknown"): string | ToolImage {
  const image = { data, mimeType } as ToolImage;
  try {
    picturesOf([image]);
    return image;
  } catch {
    return `[A file of the type ${mimeType}, which cannot be read here]`;
  }
}
