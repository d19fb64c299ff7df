import type { HistoryMessage, HistoryToolCall } from "../../protocol/chat.ts";
import { isRecord } from "../../protocol/is-record.ts";

/** The arguments of a call. APIs take an object only; what a model wrote instead stays readable to it. */
export function argumentsOf(call: HistoryToolCall): Record<string, unknown> {
  const { arguments: written } = call.function;
  try {
    const value: unknown = JSON.parse(written);
    if (isRecord(value)) return value;
  } catch {
    // Cut or broken JSON: told below.
  }
  return { unparsed_arguments: written };
}

/** Every tool call of a history, in its order. */
export function callsOf(history: readonly HistoryMessage[]): HistoryToolCall[] {
  return history.flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []));
}

/** The ids that a new call of the conversation must not have. */
export function callIds(history: readonly HistoryMessage[]): Set<string> {
  return new Set(callsOf(history).map(({ id }) => id));
}
