/** Pictures in tool results, for APIs that accept none there: they follow in a user message. */

import type { HistoryMessage, ToolMessage, UserMessage } from "../protocol/chat.ts";
import { callsOf, outputText, picturesIn, resultText, textContent } from "./history.ts";

/** The text in place of a missing answer, where an API demands one between tool results and the user's message. */
export const INTERRUPTED = "The answer was interrupted here.";
export const PICTURES_FOLLOW = "The pictures follow.";

/** The text of a result whose pictures follow. */
export function textBeforePictures(result: ToolMessage): string {
  const isBare = picturesIn(result).length > 0 && outputText(result).trim() === "";
  return isBare ? "The result is in the pictures that follow." : resultText(result);
}

/** The history with a user message of pictures after each group of results that contains any. */
export function withPicturesAfter(history: readonly HistoryMessage[]): HistoryMessage[] {
  let results: ToolMessage[] = [];
  return history.flatMap((message, index): HistoryMessage[] => {
    if (message.role !== "tool") return [message];
    results.push(message);
    if (history[index + 1]?.role === "tool") return [message];
    const pictures = picturesAfter(results, history);
    results = [];
    return pictures === undefined ? [message] : [message, pictures];
  });
}

/** The user message with the pictures of these consecutive results; `undefined` if they have none. */
export function picturesAfter(
  results: readonly ToolMessage[],
  history: readonly HistoryMessage[],
): UserMessage | undefined {
  const content = results.flatMap((result) => {
    const pictures = picturesIn(result);
    if (pictures.length === 0) return [];
    const call = callsOf(history).findLast(({ id }) => id === result.tool_call_id);
    return [...textContent(`[From the result of ${call?.function.name ?? "a tool"}:]`), ...pictures];
  });
  return content.length === 0 ? undefined : { role: "user", content };
}
