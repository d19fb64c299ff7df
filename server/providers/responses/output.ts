/** What of a response must go back to the API when the client, and not OpenAI, keeps the conversation. */

import type { AssistantMessage } from "../../protocol/chat.ts";
import { isRecord } from "../../protocol/is-record.ts";
import { assistantMessage, toHistoryCall } from "../history/answer.ts";
import type { ToolCall } from "../provider.ts";
import { text } from "../text.ts";

/** The field of an assistant message that holds it: `OutputPart`s, in the order of the response. */
export const OUTPUT_FIELD = "openai_output";

/**
 * Reasoning and hosted calls as they came; of texts and function calls, which the message holds already,
 * only where they stood. A text is a range of `content`, in UTF-16 units.
 */
export type OutputPart =
  | { type: "message"; start: number; end: number; phase?: string }
  | { type: "function_call"; call_id: string }
  | { type: "item"; item: Readonly<Record<string, unknown>> };

/** The message that the history keeps of a response. */
export function toAssistantMessage(
  said: string,
  calls: readonly ToolCall[],
  parts: readonly OutputPart[],
): AssistantMessage {
  const isPlain = parts.every((part) => part.type !== "item" && !(part.type === "message" && part.phase !== undefined));
  return {
    ...assistantMessage(said, calls.map(toHistoryCall)),
    ...(isPlain ? {} : { [OUTPUT_FIELD]: parts }),
  };
}

/** The item as it is to be kept; `undefined` when there is nothing in it to send back. */
export function keptItem(item: Readonly<Record<string, unknown>>): OutputPart | undefined {
  switch (item.type) {
    case "reasoning":
      return text(item.encrypted_content) === "" ? undefined : { type: "item", item };
    case "web_search_call": {
      if (!isRecord(item.action)) return undefined;
      // The long list of all pages that were looked at: the API does without it.
      const { sources: _shown, ...action } = item.action;
      return { type: "item", item: { ...item, action } };
    }
    case "code_interpreter_call": {
      // An image would be sent to and fro with each message from now on.
      const outputs = Array.isArray(item.outputs) ? item.outputs.filter(isLogs) : item.outputs;
      return { type: "item", item: { ...item, outputs } };
    }
    default:
      return { type: "item", item };
  }
}

function isLogs(output: unknown): boolean {
  return isRecord(output) && output.type === "logs";
}
