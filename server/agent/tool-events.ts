/** Calls of tools and their results as they leave the server. */

import type { ToolContent, ToolText } from "../protocol/chat.ts";
import type { ToolCallEvent, ToolResultEvent } from "../protocol/events.ts";
import { resultWords } from "../providers/history.ts";
import type { ToolAnswer, ToolCall } from "../providers/provider.ts";

export interface ToolResult {
  answer: ToolAnswer;
  title?: ToolText | undefined;
  durationMs: number;
  /** Id of the call that this one is a step of. */
  parent?: string | undefined;
}

export function toolCallEvent(
  { id, name, arguments: args }: ToolCall,
  { title, parent }: Pick<ToolResult, "title" | "parent">,
): ToolCallEvent {
  const words = title === undefined ? {} : { title };
  const within = parent === undefined ? {} : { parent };
  return { type: "tool_call", data: { id, tool: name, ...words, arguments: args, status: "running", ...within } };
}

export function toolResultEvent({ answer, title, durationMs, parent }: ToolResult): ToolResultEvent {
  const { id, name, content, sources, images, failed } = answer;
  const { shown: output = resultWords(content, sources) } = answer;
  const words = title === undefined ? {} : { title };
  const status = failed ? "failed" : "completed";
  const within = parent === undefined ? {} : { parent };
  return {
    type: "tool_result",
    data: { id, tool: name, ...words, output, ...images, status, duration_ms: durationMs, ...within },
  };
}

/** The result as it leaves the server: its texts are well-formed Unicode of limited length. */
export function cutContent(content: readonly ToolContent[], maxChars: number): ToolContent[] {
  return content.map((part) => (part.type === "text" ? { ...part, text: cutText(part.text, maxChars) } : part));
}

export function cutText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text.toWellFormed();
  return `${text.slice(0, maxChars).toWellFormed()}\n[cut: ${text.length - maxChars} more characters]`;
}
