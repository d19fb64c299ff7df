/** What an answer comes to, whichever API it came from: the history's message, and the events at its end. */

import type { AssistantMessage, HistoryToolCall, Usage } from "../../protocol/chat.ts";
import type { ChatModelEvent, ToolCall, TurnFinish } from "../provider.ts";

/** One of calls alone has no content. */
export function assistantMessage(said: string, calls: HistoryToolCall[]): AssistantMessage {
  return {
    role: "assistant",
    content: said === "" && calls.length > 0 ? null : said,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

export function toHistoryCall({ id, name, arguments: written }: ToolCall): HistoryToolCall {
  return { id, type: "function", function: { name, arguments: written } };
}

/** The message's calls, and the end. */
export function endOfAnswer(message: AssistantMessage, finish: TurnFinish, usage: Usage | undefined): ChatModelEvent[] {
  const calls = (message.tool_calls ?? []).map(({ id, function: { name, arguments: written } }) => ({
    type: "call" as const,
    call: { id, name, arguments: written },
  }));
  const end = { type: "end" as const, finish, ...(usage === undefined ? {} : { usage }), message };
  return [...calls, end];
}
