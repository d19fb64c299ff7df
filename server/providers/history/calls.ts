import type { HistoryMessage, HistoryToolCall } from "../../protocol/chat.ts";

/** Every tool call of a history, in its order. */
export function callsOf(history: readonly HistoryMessage[]): HistoryToolCall[] {
  return history.flatMap((message) =>
    message.role === "assistant" ? (message.tool_calls ?? []) : [],
  );
}

/** The ids that a new call of the conversation must not have. */
export function callIds(history: readonly HistoryMessage[]): Set<string> {
  return new Set(callsOf(history).map(({ id }) => id));
}
