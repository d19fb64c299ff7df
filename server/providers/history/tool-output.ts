import type { ToolMessage } from "../../protocol/chat.ts";

/** What the model reads of a call that was never finished. */
export const CANCELLED_OUTPUT = "Cancelled: the run ended before this call was finished.";

/** The result of a call, as the history keeps it. */
export function toolMessage(id: string, content: string, failed: boolean): ToolMessage {
  const message: ToolMessage = { role: "tool", tool_call_id: id, content };
  if (failed) message.is_error = true;
  return message;
}

/** The result as text, for an API that has no flag for a failure. */
export function textOfResult({ content, is_error }: ToolMessage): string {
  return is_error ? `Error: ${content}` : content;
}
