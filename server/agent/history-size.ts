/** How large a client's history is, measured before anything else looks at it. */

import { ApiError } from "../protocol/api-error.ts";

export interface HistoryLimits {
  /** Most messages, with the parts and tool calls in them. */
  readonly maxHistoryItems: number;
  /** Most bytes of text and base64 in all of it. */
  readonly maxHistoryBytes: number;
}

/** Values (numbers, arrays, …) that one item may hold on average: far above what any provider sends. */
const VALUES_PER_ITEM = 100;

/**
 * Walks the history once, without recursion, and stops where it is too large.
 * @throws ApiError `request_too_large`
 */
export function refuseLargeHistory(history: readonly unknown[], limits: HistoryLimits): void {
  const items = history.reduce((sum: number, message) => sum + 1 + itemsIn(message), 0);
  if (items > limits.maxHistoryItems) {
    throw tooLarge(`holds ${items} messages and parts; at most ${limits.maxHistoryItems} are`);
  }
  let values = limits.maxHistoryItems * VALUES_PER_ITEM;
  let bytes = limits.maxHistoryBytes;
  const open: unknown[] = [...history];
  while (open.length > 0) {
    const value = open.pop();
    values--;
    if (typeof value === "string") bytes -= Buffer.byteLength(value);
    else if (Array.isArray(value)) {
      for (const item of value) open.push(item);
    } else if (typeof value === "object" && value !== null) {
      for (const [key, field] of Object.entries(value)) {
        bytes -= key.length;
        open.push(field);
      }
    }
    if (bytes < 0) throw tooLarge(`is larger than the ${limits.maxHistoryBytes} bytes that are`);
    if (values < 0) throw tooLarge("holds more values than are");
  }
}

function itemsIn(message: unknown): number {
  if (typeof message !== "object" || message === null) return 0;
  const { content, tool_calls: calls }: { content?: unknown; tool_calls?: unknown } = message;
  return (Array.isArray(content) ? content.length : 0) + (Array.isArray(calls) ? calls.length : 0);
}

function tooLarge(problem: string): ApiError {
  return new ApiError("request_too_large", `state.conversation_history ${problem} allowed. Start a new conversation.`, {
    param: "/state/conversation_history",
  });
}
